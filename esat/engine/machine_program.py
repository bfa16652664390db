"""Declarations and rules as the machine has them: what e-graphs begin with, and what is kept on disk."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.engine.rule_words import RulePlace
from esat.engine.vocabulary import TableDeclaration, Vocabulary

_LEVEL = 1
"""Of compression: the words of all rules take 10 ms, and a twelfth of the room."""


@record(frozen=True, eq=False)
class MachineProgram:
    """What a MatchingEngine holds before there are terms.

    Attributes
    ----------
    vocabulary
        What is declared.
    rules
        In the order they were read.
    members
        Numbers of the rules of each rule set.
    actions
        Words of what is done outside of rules.
    arrays
        What the machine's arrays ``tables``, ``sorts``, ``rules`` and ``registers`` begin with, int64.
    """

    vocabulary: Vocabulary
    rules: Sequence[RulePlace]
    members: Mapping[str, Sequence[int]]
    actions: Sequence[int]
    arrays: Mapping[str, NDArray[np.int64]]

    def encoded(self) -> bytes:
        """The program as bytes, the same on all platforms."""
        vocabulary = self.vocabulary
        data = {
            "tables": {name: astuple(table) for name, table in vocabulary.tables.items()},
            "containers": vocabulary.containers,
            "elements": vocabulary.elements,
            "classes": sorted(vocabulary.classes),
            "others": sorted(vocabulary.others),
            "constants": list(vocabulary.constants.items()),
            "rules": [tuple(rule) for rule in self.rules],
            "members": {name: list(own) for name, own in self.members.items()},
            "actions": list(self.actions),
            "sizes": {name: len(array) for name, array in self.arrays.items()},
        }
        head = json.dumps(data, separators=(",", ":")).encode()
        words = np.concatenate([*self.arrays.values()]).astype("<i8").tobytes()
        return zlib.compress(len(head).to_bytes(8, "little") + head + words, _LEVEL)

    @classmethod
    def decoded(cls, content: bytes) -> MachineProgram:
        """The program that :meth:`encoded` gave these bytes."""
        content = zlib.decompress(content)
        end = 8 + int.from_bytes(content[:8], "little")
        data = json.loads(content[8:end])
        words = np.frombuffer(content, "<i8", offset=end).astype(np.int64)
        arrays: dict[str, NDArray[np.int64]] = {}
        begin = 0
        for name, size in data["sizes"].items():
            arrays[name] = words[begin : begin + size]
            begin += size
        vocabulary = Vocabulary(
            {
                name: TableDeclaration(number, tuple(inputs), *rest)
                for name, (number, inputs, *rest) in data["tables"].items()
            },
            data["containers"],
            {name: tuple(sorts) for name, sorts in data["elements"].items()},
            {*data["classes"]},
            {*data["others"]},
            dict(data["constants"]),
        )
        rules = [RulePlace(*rule) for rule in data["rules"]]
        return cls(vocabulary, rules, data["members"], data["actions"], arrays)
