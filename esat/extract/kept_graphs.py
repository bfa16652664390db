"""Saturated e-graphs on disk: what a process found, the next one need not search for again.

An e-graph is a function of what its engine is told, the rules and the budgets, if the clock decided nothing,
and of what the algebra reads of the terms beside that. The key covers all of it by its text. Costs, the
machine and the elements of real constants are not part of it: extraction is done anew each time. Kept is
plain data, and only numbers and names are read back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np

from esat.base.storage import DiskStore, default_directory, digest_of
from esat.egraph.algebra.findings import Finding
from esat.egraph.language.terms import TermGraph
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.saturation_report import RuleStatistics, SaturationReport
from esat.egraph.saturation.schedule import Budgets
from esat.errors import CompileError
from esat.extract.arrays import EGraphArrays

VARIABLE = "ESAT_EGRAPH_CACHE"
"""Environment variable: with the value 0, e-graphs are neither kept nor taken from disk."""

LARGEST = 500_000
"""E-nodes of the largest e-graph that is kept."""

_INDICES = ("operator", "class_of", "operand_start", "operands", "attribute", "class_start", "term_class")

Kept = tuple[EGraphArrays, SaturationReport]


class KeptGraphs:
    """E-graphs by key.

    Parameters
    ----------
    store
        Where they are.
    """

    def __init__(self, store: DiskStore) -> None:
        self._store = store

    def load(self, key: str) -> Kept | None:
        """The e-graph of a key, if there is one."""
        return self._store.load(key, _decoded)

    def save(self, key: str, arrays: EGraphArrays, report: SaturationReport) -> None:
        """Keep an e-graph, unless the clock had a part in it or it is very large."""
        if report.hurried or arrays.node_count > LARGEST:
            return
        self._store.save(key, _encoded(arrays, report))


@cache
def kept_graphs() -> KeptGraphs | None:
    """Those of the user's cache directory; None where :data:`VARIABLE` says so."""
    if os.environ.get(VARIABLE) == "0":
        return None
    return KeptGraphs(DiskStore(default_directory(), "egraph"))


def graph_key(program: RuleProgram, budgets: Budgets, texts: Iterable[str], terms: TermGraph) -> str:
    """The key of the e-graph that saturation makes of a program and texts loaded into its engine.

    Parameters
    ----------
    program, budgets
        The rules, and how far they go.
    texts
        What the engine is told of the terms.
    terms
        These: the algebra takes parts of arrays and lengths of axes from them.
    """
    beside = () if program.strict else _read_by_algebra(terms)
    return digest_of([program.digest, repr(budgets), *texts, *beside])


def _read_by_algebra(terms: TermGraph) -> Iterator[str]:
    """Lengths, what parts ops take, and complex constants (:class:`.axes.lengths.Symbols`)."""
    yield repr([type.shape for type in terms.types])
    yield repr([(str(opaque.op), opaque.operand_ranks) for opaque in terms.opaque])
    for number, constant in enumerate(terms.arrays):
        if constant.data.dtype.kind == "c":
            yield f"{number} {constant.data.shape} {constant.data.tobytes().hex()}"


def _encoded(arrays: EGraphArrays, report: SaturationReport) -> bytes:
    """A line of JSON, then the index arrays as int64, then the flags of subsumption."""
    head = {
        "operator_names": arrays.operator_names,
        "attribute_values": arrays.attribute_values,
        "facts": {name: [list(column), list(column.values())] for name, column in arrays.facts.items()},
        "lengths": [len(getattr(arrays, name)) for name in _INDICES],
        "origins": _numbered(arrays.origins),
        "report": asdict(report),
    }
    indices = [np.ascontiguousarray(getattr(arrays, name), "<i8").tobytes() for name in _INDICES]
    return b"".join([json.dumps(head).encode(), b"\n", *indices, arrays.subsumed.tobytes()])


def _numbered(names: Sequence[str]) -> tuple[list[str], list[int]]:
    """Each name once, and the number of each in its place."""
    numbers: dict[str, int] = {}
    places = [numbers.setdefault(name, len(numbers)) for name in names]
    return list(numbers), places


def _decoded(payload: memoryview) -> Kept:
    content = bytes(payload)
    head_text, _, body = content.partition(b"\n")
    head: dict[str, Any] = json.loads(head_text)
    lengths = head["lengths"]
    total = sum(lengths)
    numbers = np.frombuffer(body, "<i8", total).astype(np.int64)
    subsumed = np.frombuffer(body, np.bool_, offset=8 * total).copy()
    indices = dict(zip(_INDICES, np.split(numbers, np.cumsum(lengths)[:-1]), strict=True))
    facts = {
        name: dict(zip(classes, values, strict=True)) for name, (classes, values) in head["facts"].items()
    }
    names, numbers_of_names = head["origins"]
    arrays = EGraphArrays(
        operator_names=tuple(head["operator_names"]),
        attribute_values=tuple(map(tuple, head["attribute_values"])),
        subsumed=subsumed,
        facts=facts,
        origins=[names[number] for number in numbers_of_names],
        **indices,
    )
    _verify(arrays)
    return arrays, _report(head["report"])


def _verify(arrays: EGraphArrays) -> None:
    """Raise CompileError unless all indices are in range: nothing else of an e-graph could break a reader."""
    nodes, classes = arrays.node_count, arrays.class_count
    ranges = (
        (arrays.operator, 0, len(arrays.operator_names)),
        (arrays.class_of, 0, classes),
        (arrays.operands, 0, classes),
        (arrays.attribute, 0, len(arrays.attribute_values)),
        (arrays.term_class, -1, classes),
        (arrays.operand_start, 0, len(arrays.operands) + 1),
        (arrays.class_start, 0, nodes + 1),
    )
    sound = all(np.all((values >= low) & (values < high)) for values, low, high in ranges)
    sizes = {len(arrays.class_of), len(arrays.attribute), len(arrays.subsumed), len(arrays.operand_start) - 1}
    if not sound or sizes != {nodes}:
        raise CompileError("a kept e-graph is inconsistent")


def _report(data: dict[str, Any]) -> SaturationReport:
    for name in ("culprits", "exhausted"):
        data[name] = tuple(data[name])
    data["rules"] = tuple(RuleStatistics(**rule) for rule in data["rules"])
    data["findings"] = tuple(Finding(**finding) for finding in data["findings"])
    return SaturationReport(**data)
