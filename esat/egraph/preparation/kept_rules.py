"""Prepared rules on disk: compiling all rules of esat takes a hundred times as long as reading the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from esat.base.records import record
from esat.base.storage import SHIPPED, DiskStore, default_directory, digest_of
from esat.egraph.preparation.modules import Module
from esat.egraph.preparation.rule_compiler import Chunk, CompiledRules
from esat.engine.machine_program import MachineProgram
from esat.rules.language.rule import Rule


@record(frozen=True, slots=True)
class PreparedRules:
    """All that is loaded before terms are, compiled and taken apart.

    Attributes
    ----------
    modules
        The forms, in the order they are loaded.
    rulesets
        The rule sets of files to run in every round, in order.
    expanding
        Those of expanding rules; see :class:`esat.egraph.preparation.rule_compiler.CompiledRules`.
    """

    modules: tuple[Module, ...]
    rulesets: tuple[str, ...]
    expanding: tuple[str, ...]


@cache
def _store() -> DiskStore:
    return DiskStore(default_directory(), "rules", shipped=SHIPPED)


def prepared_rules(
    digest: str, rules: Sequence[Rule], prepare: Callable[[], PreparedRules], store: DiskStore | None = None
) -> PreparedRules:
    """What ``prepare`` gives for these rules, from disk where it has been kept.

    Parameters
    ----------
    digest
        Stands for all that the result depends on.
    rules
        The rules, in the order that the digest was made of.
    prepare
        Makes it anew; what it raises is raised here.
    store
        Where it is kept; by default in the user's cache.
    """
    kept = _store() if store is None else store
    known = kept.load(digest, lambda payload: _decoded(bytes(payload), rules))
    if known is None:
        known = prepare()
        kept.save(digest, _encoded(known, rules))
    return known


def compiled_rules(
    digest: str, rules: Sequence[Rule], compile: Callable[[], CompiledRules], store: DiskStore | None = None
) -> CompiledRules:
    """What ``compile`` gives for these rules, from disk where it has been kept.

    Parameters are those of :func:`prepared_rules`. This is of use where rules come to others that are known.
    """
    kept = _store() if store is None else store
    key = digest_of([digest, "compiled"])
    known = kept.load(key, lambda payload: _decoded_chunks(bytes(payload), rules))
    if known is None:
        known = compile()
        kept.save(key, _encoded_chunks(known, rules))
    return known


def machine_program(
    digest: str, make: Callable[[], MachineProgram | None], store: DiskStore | None = None
) -> MachineProgram | None:
    """What ``make`` gives for the rules of a digest, from disk where it has been kept; None is not."""
    kept = _store() if store is None else store
    key = digest_of([digest, "machine"])
    known = kept.load(key, lambda payload: MachineProgram.decoded(bytes(payload)))
    if known is None:
        known = make()
        if known is not None:
            kept.save(key, known.encoded())
    return known


def _encoded_chunks(compiled: CompiledRules, rules: Sequence[Rule]) -> bytes:
    """JSON; rules are given by their numbers."""
    number = {id(rule): position for position, rule in enumerate(rules)}
    rows = [
        (chunk.text, None if chunk.rule is None else number[id(chunk.rule)], chunk.names, chunk.ruleset)
        for chunk in compiled.chunks
    ]
    dropped = [(number[id(rule)], reason) for rule, reason in compiled.dropped]
    data = (rows, compiled.rulesets, compiled.expanding, dropped)
    return json.dumps(data, separators=(",", ":")).encode()


def _decoded_chunks(payload: bytes, rules: Sequence[Rule]) -> CompiledRules:
    rows, rulesets, expanding, dropped = json.loads(payload)
    chunks = tuple(
        Chunk(text, None if rule is None else rules[rule], tuple(names), ruleset)
        for text, rule, names, ruleset in rows
    )
    origins = {name: chunk.rule for chunk in chunks if chunk.rule is not None for name in chunk.names}
    drops = tuple((rules[rule], reason) for rule, reason in dropped)
    return CompiledRules(chunks, tuple(rulesets), tuple(expanding), origins, drops)


def _encoded(prepared: PreparedRules, rules: Sequence[Rule]) -> bytes:
    """JSON; tables and rules are given by their numbers, of tables there are few and they are named often."""
    number = {id(rule): position for position, rule in enumerate(rules)}
    tables: dict[str, int] = {}

    def numbers(names: Iterable[str]) -> list[int]:
        return [tables.setdefault(name, len(tables)) for name in sorted(names)]

    rows = [
        (
            module.text,
            numbers(module.needs),
            numbers(module.makes),
            module.declares,
            module.ruleset,
            module.name,
            None if module.rule is None else number[id(module.rule)],
        )
        for module in prepared.modules
    ]
    data = (list(tables), rows, prepared.rulesets, prepared.expanding)
    return json.dumps(data, separators=(",", ":")).encode()


def _decoded(payload: bytes, rules: Sequence[Rule]) -> PreparedRules:
    tables, rows, rulesets, expanding = json.loads(payload)

    def names(numbers: list[int]) -> frozenset[str]:
        return frozenset([tables[number] for number in numbers])

    modules = tuple(
        Module(
            text,
            names(needs),
            names(makes),
            declares,
            ruleset,
            name,
            None if rule is None else rules[rule],
        )
        for text, needs, makes, declares, ruleset, name, rule in rows
    )
    return PreparedRules(modules, tuple(rulesets), tuple(expanding))
