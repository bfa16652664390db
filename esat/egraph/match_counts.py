"""Matches of users' rules, counted before they run.

egglog cannot be interrupted while it finds matches, and some rules have millions: patterns that nothing
relates, of which every match goes with every match of the others; patterns related by a key that many rows
share; and rules that feed the relations they read. Counting needs no enumeration: the rows of one pattern
are summed up by what it shares with another one, whose rows take these sums as weights (Yannakakis,
"Algorithms for acyclic database schemes", 1981). A circle of patterns is cut, so that matches are counted too
high; only where that counts too many are two of them joined first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.egraph.modules import Module
from esat.records import record
from esat.rules.reader import Sexp, head_of, is_variable, read_forms

_FEW_VALUES = frozenset({"dt", "bp", "val"})
"""Functions that have one value on many terms: a variable bound to it does not relate these terms."""

MOST_JOINED = 100_000
"""Rows that two patterns of a circle are joined to at most."""

_TRIED = 4
"""Pairs of patterns, of the shortest ones, of which the two that make the fewest rows are joined."""


@record(frozen=True, slots=True)
class Pattern:
    """Rows of a table, and the variables for its columns; empty for what is no variable."""

    table: str
    variables: tuple[str, ...]


class Tables:
    """The rows of egglog's tables as numbers, each table read when first asked for.

    Parameters
    ----------
    tables
        Of a frozen e-graph, by name.
    """

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables
        self._columns: dict[str, NDArray[np.int64]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._tables

    def columns(self, name: str) -> NDArray[np.int64]:
        """Operands and value of the rows that rules see, a table column in each row of the array."""
        columns = self._columns.get(name)
        if columns is None:
            table = self._tables[name]
            rows = [row for row in table.rows if not row.subsumed]
            numbers = [[*map(hash, row.inputs), hash(row.output)] for row in rows]
            columns = np.array(numbers, np.int64).reshape(len(rows), len(table.input_sorts) + 1).T
            self._columns[name] = columns
        return columns


@record(frozen=True, slots=True)
class WeightedRows:
    """Rows of a pattern: a column for each of its variables, and how many matches each row stands for."""

    columns: Mapping[str, NDArray[np.int64]]
    weights: NDArray[np.float64]

    def keys(self, other: WeightedRows, shared: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Numbers of the rows of both parts, equal where the shared variables are."""
        keys = _numbered([np.concatenate([self.columns[name], other.columns[name]]) for name in shared])
        return keys[: len(self.weights)], keys[len(self.weights) :]

    def times(self, other: WeightedRows, shared: Sequence[str]) -> WeightedRows:
        """These rows, each as often as the other part has rows of the same values of the shared variables."""
        own, others = self.keys(other, shared)
        sums = np.bincount(others, other.weights, minlength=len(own) + len(others))[own]
        kept = sums > 0
        columns = {variable: column[kept] for variable, column in self.columns.items()}
        return WeightedRows(columns, (self.weights * sums)[kept])

    def joined_rows(self, other: WeightedRows, shared: Sequence[str]) -> int:
        """Rows of both parts joined."""
        own, others = self.keys(other, shared)
        return int(np.bincount(others, minlength=len(own) + len(others))[own].sum())

    def joined(self, other: WeightedRows, shared: Sequence[str], needed: Collection[str]) -> WeightedRows:
        """The pairs of rows that agree in the shared variables, summed up by the needed ones."""
        own, others = self.keys(other, shared)
        order = np.argsort(others, kind="stable")
        counts = np.bincount(others, minlength=len(own) + len(others))
        partners = counts[own]
        left = np.repeat(np.arange(len(own)), partners)
        within = np.arange(len(left)) - np.repeat(partners.cumsum() - partners, partners)
        right = order[(counts.cumsum() - counts)[own[left]] + within]
        columns = {name: column[right] for name, column in other.columns.items()}
        columns |= {name: column[left] for name, column in self.columns.items()}
        names = sorted(columns.keys() & needed)
        numbers = _numbered([columns[name] for name in names])
        first = np.unique(numbers, return_index=True)[1]
        weights = np.bincount(numbers, self.weights[left] * other.weights[right])
        return WeightedRows({name: columns[name][first] for name in names}, weights.astype(np.float64))


def _numbered(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.intp]:
    """Numbers of rows from 0 on, equal where all columns are."""
    numbers = np.unique(columns[0], return_inverse=True)[1]
    for column in columns[1:]:
        values, ids = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(values) + ids, return_inverse=True)[1]
    return numbers


@record(frozen=True, slots=True)
class MatchBound:
    """A rule that may have too many matches.

    Attributes
    ----------
    name
        Of the compiled rule, which may be one of several that stand for one rule of a file.
    member
        The rule set that holds it alone.
    patterns
        What it matches.
    terms
        Terms that a match makes at most.
    is_related
        Whether variables relate all its patterns of terms to each other.
    """

    name: str
    member: str
    patterns: tuple[Pattern, ...]
    terms: int
    is_related: bool

    def most(self, sizes: Mapping[str, int]) -> float:
        """Matches there may be at most where tables have so many rows."""
        return prod(sizes.get(pattern.table, inf) or 1 for pattern in self.stored(sizes))

    def stored(self, tables: Collection[str] | Tables) -> list[Pattern]:
        """The patterns of tables, without those of primitives."""
        return [pattern for pattern in self.patterns if pattern.table in tables]

    def matches(self, tables: Tables, most_joined: int = 0) -> float:
        """Matches in these tables; more where patterns are related in a circle.

        Parameters
        ----------
        tables
            The rows.
        most_joined
            Rows that two patterns of a circle may be joined to, rather than cutting it.
        """
        parts = [_part(pattern, tables) for pattern in self.stored(tables)]
        while len(parts) > 1 and all(len(part.weights) for part in parts):
            parts = _fewer(sorted(parts, key=lambda part: len(part.weights)), most_joined)
        return prod(float(part.weights.sum()) for part in parts)


@dataclass(slots=True)
class Counts:
    """What was counted of one rule when it ran last, or did not.

    Attributes
    ----------
    sizes
        Rows of its tables.
    is_large
        Whether there were too many new matches.
    cut, joined
        Matches of the last run, by the two ways to count.
    """

    sizes: list[int] = field(default_factory=list)
    is_large: bool = False
    cut: float = 0
    joined: float = 0

    def renew(self, join: MatchBound, tables: Tables, sizes: Mapping[str, int], limit: float) -> None:
        """Count again, if the tables have other sizes, and see whether new matches exceed the limit.

        Rows that were subsumed since are still among the sizes, and match no more: too many are counted anew.
        """
        own = [sizes[pattern.table] for pattern in join.stored(sizes)]
        if own == self.sizes and not self.is_large:
            return
        self.sizes = own
        cut = join.matches(tables)
        joined = self.joined
        self.is_large = cut - self.cut > limit
        if self.is_large:
            joined = join.matches(tables, MOST_JOINED)
            self.is_large = joined - self.joined > limit
        if not self.is_large:
            self.cut, self.joined = cut, joined


def _part(pattern: Pattern, tables: Tables) -> WeightedRows:
    """The rows that a pattern matches."""
    table = tables.columns(pattern.table)
    kept = np.ones(table.shape[1], np.bool_)
    columns: dict[str, NDArray[np.int64]] = {}
    for variable, column in zip(pattern.variables, table, strict=False):
        if variable in columns:
            kept &= columns[variable] == column
        elif variable:
            columns[variable] = column
    return WeightedRows({name: column[kept] for name, column in columns.items()}, np.ones(int(kept.sum())))


def _fewer(parts: list[WeightedRows], most_joined: int) -> list[WeightedRows]:
    """One part fewer, with as many matches of all, or more; from the shortest on."""
    related: list[tuple[WeightedRows, WeightedRows, list[str]]] = []
    for part in parts:
        others = [other for other in parts if other is not part]
        shared = part.columns.keys() & {name for other in others for name in other.columns}
        if not shared:
            total = WeightedRows(others[0].columns, others[0].weights * part.weights.sum())
            return [total, *others[1:]]
        for other in others:
            common = sorted(shared & other.columns.keys())
            if len(common) == len(shared):
                return [other.times(part, common), *(rest for rest in others if rest is not other)]
            if common:
                related.append((part, other, common))
    if most_joined:
        rows = [part.joined_rows(other, common) for part, other, common in related[:_TRIED]]
        part, other, common = related[rows.index(min(rows))]
    else:
        part, other, common = related[0]
    others = [rest for rest in parts if rest is not part and rest is not other]
    if not most_joined or min(rows) > most_joined:
        return [other.times(part, common), *others]
    return [part.joined(other, common, {name for rest in others for name in rest.columns}), *others]


def join_of(module: Module, tables: Collection[str], own: Collection[str] = ()) -> MatchBound | None:
    """What to foresee of a rule over these tables, ``own`` being the user's; None where there is nothing."""
    ((_, body, actions, *_),) = read_forms(module.text[module.text.index("(rule ") :])
    facts = [fact for fact in body if not isinstance(fact, str)]
    patterns = tuple(_patterns(facts))
    if sum(pattern.table in tables or pattern.table in own for pattern in patterns) < 2:
        return None
    name = re.search(r':name "([^"]*)"', module.text)
    terms = sum(head in tables for action in actions for head in _heads(action))
    related = _is_related([p for p in patterns if p.table in tables or p.table in own], patterns)
    return MatchBound(name.group(1) if name else "", module.member, patterns, terms, related)


def _is_related(stored: Sequence[Pattern], patterns: Sequence[Pattern]) -> bool:
    """Whether some of the patterns are all related, be it by others."""
    named = [{*pattern.variables} - {""} for pattern in patterns]
    reached = {*stored[0].variables} - {""}
    size = -1
    while size != len(reached):
        size = len(reached)
        reached.update(*(variables for variables in named if reached & variables))
    return all(reached & {*pattern.variables} for pattern in stored)


def _patterns(facts: Sequence[Sexp]) -> Iterator[Pattern]:
    """All patterns of facts, each term with a variable for its value; primitives are among them."""
    found: list[Pattern] = []
    equal: dict[str, str] = {}

    def root(variable: str) -> str:
        while variable in equal:
            variable = equal[variable]
        return variable

    def value(form: Sexp) -> str:
        """The variable for the value of a term; empty for a literal."""
        if isinstance(form, str):
            return form if is_variable(form) else ""
        variable = f" {len(found)}"
        own = Pattern(head_of(form), ())
        found.append(own)
        place = len(found) - 1
        found[place] = Pattern(own.table, (*map(value, form[1:]), variable))
        return variable

    for fact in facts:
        if head_of(fact) != "=":
            value(fact)
            continue
        few = len(fact) == 3 and head_of(fact[2]) in _FEW_VALUES
        if not few:
            first, *others = [variable for variable in map(value, fact[1:]) if variable] or [""]
            for other in others:
                if root(first) != root(other):
                    equal[root(other)] = root(first)
    for pattern in found:
        yield Pattern(pattern.table, tuple(map(root, pattern.variables)))


def _heads(form: Sexp) -> Iterator[str]:
    if not isinstance(form, str):
        yield head_of(form)
        for part in form[1:]:
            yield from _heads(part)
