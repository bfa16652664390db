"""The e-nodes of an engine as vectors of numbers.

Classes and e-nodes are numbered in the engine's order, which depends on what it did before. Nothing that the
phase adds to the e-graph may depend on these numbers: ties are broken by hashes of what the terms are
(:mod:`esat.egraph.algebra.equal_forms.smallest_trees`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.analyses.distinct import distinct
from esat.egraph.engine import AnyEngine

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Attributes = tuple[int | float, ...]

UNKNOWN = -1
"""The dtype of a class that has none yet, and the number of one that is no loaded term."""
NO_SHAPE = 0
"""The broadcast word of a class that has none yet: all others are odd or not 0."""


@record(frozen=True, eq=False)
class Reading:
    """An e-graph as compressed sparse rows.

    Attributes
    ----------
    names
        Of the operators.
    operator, class_of
        int64 ``(nodes,)``.
    start, operands
        int64 ``(nodes + 1,)`` and ``(edges,)``: the operand classes of e-node ``i`` are
        ``operands[start[i]:start[i + 1]]``, positives (numerators) before negatives.
    positives
        int64 ``(nodes,)``: how many operands of an n-ary e-node are positive; 0 for others.
    attributes
        Literals of each e-node.
    dtype, word, value
        int64, int64, float64 ``(classes,)``: ``UNKNOWN``, ``NO_SHAPE`` and NaN where there is none.
    term
        int64 ``(classes,)``: the first loaded term of a class, ``UNKNOWN`` where there is none.
    facts
        By name of a relation, the classes it holds of.
    term_class
        int64 ``(terms,)``: class of each loaded term, ``UNKNOWN`` where the number was not loaded.
    """

    names: tuple[str, ...]
    operator: Integers
    class_of: Integers
    start: Integers
    operands: Integers
    positives: Integers
    attributes: Sequence[Attributes]
    dtype: Integers
    word: Integers
    value: Floats
    term: Integers
    facts: Mapping[str, Integers]
    term_class: Integers

    @property
    def nodes(self) -> int:
        """How many e-nodes there are."""
        return len(self.operator)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.dtype)

    @cached_property
    def owner(self) -> Integers:
        """int64 ``(edges,)``: the e-node of each operand."""
        return np.repeat(np.arange(self.nodes), np.diff(self.start))

    @cached_property
    def operand_lists(self) -> tuple[list[int], list[int]]:
        """``start`` and ``operands`` for loops in Python."""
        return self.start.tolist(), self.operands.tolist()

    def class_of_term(self, terms: Integers) -> Integers:
        """Classes of loaded terms by their numbers, ``UNKNOWN`` for numbers without a class."""
        known = terms < len(self.term_class)
        result = np.full(len(terms), UNKNOWN, np.int64)
        result[known] = self.term_class[terms[known]]
        return result

    def operands_of(self, node: int) -> list[int]:
        """Operand classes of an e-node."""
        start, operands = self.operand_lists
        return operands[start[node] : start[node + 1]]


def read(engine: AnyEngine, operators: Collection[str], facts: Collection[str] = ()) -> Reading:
    """All e-nodes of these operators.

    Parameters
    ----------
    engine
        Holds the e-graph; its terms are typed.
    operators
        Names of constructors.
    facts
        Names of relations over one term.
    """
    tables = engine.freeze().functions
    reader = _Reader(engine.values)
    for name in sorted(operators):
        table = tables.get(name)
        if table is not None:
            reader.add(name, table.input_sorts, table.rows)
    return reader.finish(tables, facts)


class _Reader:
    """Gathers e-nodes table by table, with hashes of the engine's values as names of classes."""

    def __init__(self, values: Any) -> None:
        self._integer, self._float = values.value_to_i64, values.value_to_f64
        self._elements = values.value_to_multiset
        self._sets: dict[int, list[int]] = {}
        self._names: list[str] = []
        self._counts: list[int] = []
        self._classes: list[int] = []
        self._arity: list[int] = []
        self._operands: list[int] = []
        self._positives: list[int] = []
        self._attributes: list[Attributes] = []

    def add(self, name: str, sorts: Sequence[str], rows: Sequence[Any]) -> None:
        """All e-nodes of one operator."""
        if not rows:
            return
        self._names.append(name)
        self._counts.append(len(rows))
        self._classes += [hash(row.output) for row in rows]
        if list(sorts) == ["MS", "MS"]:
            self._add_sides([row.inputs for row in rows])
            return
        terms = sum(sort == "T" for sort in sorts)
        self._arity += [terms] * len(rows)
        self._positives += [0] * len(rows)
        if terms == len(sorts):
            self._attributes += [()] * len(rows)
            self._operands += [hash(value) for row in rows for value in row.inputs]
            return
        columns = list(zip(*[row.inputs for row in rows], strict=True))
        operands = [list(map(hash, column)) for column in columns[:terms]]
        self._operands += chain.from_iterable(zip(*operands, strict=True))
        literals = [
            list(map(self._integer if sort == "i64" else self._float, column))
            for sort, column in zip(sorts[terms:], columns[terms:], strict=True)
        ]
        self._attributes += zip(*literals, strict=True)

    def _add_sides(self, rows: Sequence[Sequence[Any]]) -> None:
        """All sums, or all products."""
        for above, below in rows:
            first, second = self._elements_of(above), self._elements_of(below)
            self._operands += first
            self._operands += second
            self._positives.append(len(first))
            self._arity.append(len(first) + len(second))
        self._attributes += [()] * len(rows)

    def _elements_of(self, value: Any) -> list[int]:
        key = hash(value)
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = [hash(element) for element in self._elements(value)]
        return known

    def finish(self, tables: Mapping[str, Any], facts: Collection[str]) -> Reading:
        """What was gathered, with classes numbered from 0."""
        numbers, named = self._column(tables["N"], self._integer, is_named_by_key=False)
        nodes, edges = len(self._classes), len(self._operands)
        everything = np.array([*self._classes, *self._operands, *named.tolist()], np.int64)
        known, number_of = distinct(everything)
        start = np.zeros(nodes + 1, np.int64)
        np.cumsum(np.array(self._arity, np.int64), out=start[1:])
        term_class = np.full(numbers.max(initial=-1) + 1, UNKNOWN, np.int64)
        term_class[numbers] = number_of[nodes + edges :]
        term = np.full(len(known), UNKNOWN, np.int64)
        descending = np.argsort(-numbers, kind="stable")
        term[number_of[nodes + edges :][descending]] = numbers[descending]

        def filled(name: str, missing: int | float, reader: Any) -> NDArray[Any]:
            values, keys = self._column(tables[name], reader)
            place, is_known = _places(known, keys)
            result = np.full(len(known), missing)
            result[place[is_known]] = values[is_known]
            return result

        held = {}
        for name in facts:
            keys = np.array(
                [hash(row.inputs[0]) for row in tables[name].rows] if name in tables else [], np.int64
            )
            place, is_known = _places(known, keys)
            held[name] = place[is_known]
        return Reading(
            names=tuple(self._names),
            operator=np.repeat(np.arange(len(self._names)), self._counts),
            class_of=number_of[:nodes],
            start=start,
            operands=number_of[nodes : nodes + edges],
            positives=np.array(self._positives, np.int64),
            attributes=self._attributes,
            dtype=filled("dt", UNKNOWN, self._integer),
            word=filled("bp", NO_SHAPE, self._integer),
            value=filled("val", float("nan"), self._float),
            term=term,
            facts=held,
            term_class=term_class,
        )

    def _column(self, table: Any, reader: Any, is_named_by_key: bool = True) -> tuple[NDArray[Any], Integers]:
        """The numbers of a table between numbers and terms, and the names of the terms."""
        rows = table.rows
        keys, values = [row.inputs[0] for row in rows], [row.output for row in rows]
        if not is_named_by_key:
            keys, values = values, keys
        dtype = np.float64 if reader is self._float else np.int64
        return np.array(list(map(reader, values)), dtype), np.array(list(map(hash, keys)), np.int64)


def _places(known: Integers, keys: Integers) -> tuple[Integers, NDArray[np.bool_]]:
    """Where keys are among ascending ones, and whether they are there."""
    place = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
    return place, known[place] == keys
