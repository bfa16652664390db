"""Programs in parts, so that an engine loads only what can matter to the graph at hand.

A rule whose patterns mention a constructor that no term has, and that no rule could make, never matches. Yet
it costs time when it is loaded, and in every run. A :class:`Module` is one form
with the tables it needs and those it makes; :func:`relevant` is the closure over them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from esat.egraph.engine import split_forms
from esat.egraph.rule_compiler.compiled import Chunk
from esat.egraph.structure import STRUCTURE_TABLES

_TABLE = r'[A-Z]\w*|[a-z]+/[^\s()"]+|' + "|".join(sorted(STRUCTURE_TABLES, key=len, reverse=True))
_NAME = re.compile(rf"\(({_TABLE})(?=[\s)])")
_QUOTED = re.compile(rf'unstable-fn "({_TABLE})"')
_DECLARED = re.compile(r"\((?:constructor|function|relation) (\S+)")
_RULESET = re.compile(r":ruleset (\S+)")
_PARENTHESIS = re.compile(r"[()]")


@dataclass(frozen=True, slots=True)
class Module:
    """One form of a program.

    Attributes
    ----------
    text
        The form; a rule stands in a rule set of its own, so that the order in which rules run does not
        depend on the order in which they were loaded.
    needs
        Tables without rows of which it has no effect.
    makes
        Tables that it may add rows to.
    declares
        The table it declares; empty for other forms.
    ruleset, member
        The rule set a rule belongs to, and the one it is loaded into; empty for other forms.
    chunk
        The compiled rule it is of, to report errors.
    """

    text: str
    needs: frozenset[str] = frozenset()
    makes: frozenset[str] = frozenset()
    declares: str = ""
    ruleset: str = ""
    member: str = ""
    chunk: Chunk | None = None


def modules_of(layers: Iterable[str], chunks: Iterable[Chunk]) -> tuple[Module, ...]:
    """The modules of texts and compiled rules, in order; :func:`members_of` says what rule sets unite."""
    forms = [(form.text, None) for layer in layers for form in split_forms(layer)]
    compiled = [(form.text, chunk) for chunk in chunks for form in split_forms(chunk.text)]
    return tuple(
        _module(text, chunk, number)
        for number, (text, chunk) in enumerate([*forms, *compiled])
        if not text.startswith("(ruleset ")
    )


def _module(text: str, chunk: Chunk | None, number: int) -> Module:
    if not text.startswith("(rule "):
        declared = _DECLARED.match(text)
        return Module(text, declares=declared.group(1) if declared else "", chunk=chunk)
    needs, makes, ruleset = _tables(text)
    member = f"{ruleset}.{number}"
    own = _RULESET.sub(f":ruleset {member}", text)
    return Module(f"(ruleset {member}) {own}", needs, makes, "", ruleset, member, chunk)


@lru_cache(maxsize=4096)
def _tables(rule: str) -> tuple[frozenset[str], frozenset[str], str]:
    """Tables that a rule needs, those it makes, and its rule set."""
    depth = 0
    end = len(rule)
    for parenthesis in _PARENTHESIS.finditer(rule):
        depth += 1 if parenthesis.group() == "(" else -1
        if depth == 1 and parenthesis.group() == ")":
            end = parenthesis.end()
            break
    made = {*_NAME.findall(rule, end), *_QUOTED.findall(rule)}
    ruleset = _RULESET.search(rule)
    assert ruleset is not None, "compiled rules always name their rule set"
    return frozenset(_NAME.findall(rule[:end])), frozenset(made), ruleset.group(1)


def relevant(modules: Sequence[Module], tables: Collection[str], given: Collection[str]) -> tuple[int, ...]:
    """Numbers of the modules that can matter, in order.

    Parameters
    ----------
    modules
        All of a program.
    tables
        Tables that modules make; of others it is not known what they hold.
    given
        Tables that hold rows to begin with.
    """
    available = set(given)
    waiting: dict[str, list[int]] = {}
    missing = [0] * len(modules)
    ready: list[int] = []
    for number, module in enumerate(modules):
        needs = [name for name in module.needs if name in tables and name not in available]
        missing[number] = len(needs)
        for name in needs:
            waiting.setdefault(name, []).append(number)
        if not needs and module.ruleset:
            ready.append(number)
    chosen: set[int] = set()
    while ready:
        number = ready.pop()
        chosen.add(number)
        for name in modules[number].makes:
            if name in tables and name not in available:
                available.add(name)
                for other in waiting.get(name, ()):
                    missing[other] -= 1
                    if not missing[other]:
                        ready.append(other)
    for number, module in enumerate(modules):
        if not module.ruleset and (module.declares not in tables or module.declares in available):
            chosen.add(number)
    return tuple(sorted(chosen))


def members_of(modules: Iterable[Module]) -> dict[str, tuple[str, ...]]:
    """The members of each rule set that are among the modules, in order."""
    members: dict[str, list[str]] = {}
    for module in modules:
        if module.ruleset:
            members.setdefault(module.ruleset, []).append(module.member)
    return {ruleset: tuple(own) for ruleset, own in members.items()}


def declared_tables(modules: Iterable[Module], signature: Mapping[str, object]) -> frozenset[str]:
    """Tables that only modules and loaded terms fill: constructors, and helpers of compiled rules."""
    helpers = (module.declares for module in modules if "/" in module.declares)
    return frozenset((*signature, "NarySum", "NaryProd", *helpers, *STRUCTURE_TABLES))
