"""Compiled rules on disk: compiling all rules of esat takes ten times as long as reading the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache

from esat.egraph.rule_compiler import Chunk, CompiledRules
from esat.rules.rule import Rule
from esat.storage import Store, default_directory


@cache
def _store() -> Store:
    return Store(default_directory(), "rules")


def compiled_rules(
    digest: str, rules: Sequence[Rule], compile: Callable[[], CompiledRules], store: Store | None = None
) -> CompiledRules:
    """What ``compile`` gives for these rules, from disk where it has been kept.

    Parameters
    ----------
    digest
        Stands for all that the result depends on.
    rules
        The rules, in the order that the digest was made of.
    store
        Where it is kept; by default in the user's cache.
    """
    kept = _store() if store is None else store
    known = kept.load(digest, lambda payload: _from_text(bytes(payload).decode(), rules))
    if known is None:
        known = compile()
        kept.save(digest, _to_text(known, rules).encode())
    return known


def _to_text(compiled: CompiledRules, rules: Sequence[Rule]) -> str:
    number = {id(rule): position for position, rule in enumerate(rules)}

    def of(rule: Rule | None) -> int:
        return -1 if rule is None else number[id(rule)]

    return json.dumps(
        {
            "chunks": [(chunk.text, of(chunk.rule), chunk.names, chunk.ruleset) for chunk in compiled.chunks],
            "rulesets": compiled.rulesets,
            "expanding": compiled.expanding,
            "origins": {name: of(rule) for name, rule in compiled.origins.items()},
            "dropped": [(of(rule), reason) for rule, reason in compiled.dropped],
        }
    )


def _from_text(text: str, rules: Sequence[Rule]) -> CompiledRules:
    data = json.loads(text)
    return CompiledRules(
        tuple(
            Chunk(text, None if rule < 0 else rules[rule], tuple(names), ruleset)
            for text, rule, names, ruleset in data["chunks"]
        ),
        tuple(data["rulesets"]),
        tuple(data["expanding"]),
        {name: rules[rule] for name, rule in data["origins"].items()},
        tuple((rules[rule], reason) for rule, reason in data["dropped"]),
    )
