"""Read-out: from a frozen e-graph of the engine to ``EGraphArrays``.

The engine comes in through three small protocols, so that this module does not import it. Values are
compared by ``hash``, which the engine defines as a one-to-one function of a value's id within its sort.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Literal, Protocol

import numpy as np

from esat.base.records import record
from esat.egraph.analyses.distinct import distinct
from esat.errors import CompileError
from esat.extract.arrays import Attribute, EGraphArrays, IntArray
from esat.extract.numbering import RawNodes, canonical_arrays

ContainerKind = Literal["multiset", "vector"]


class TableRow(Protocol):
    """One row of a table of the engine."""

    @property
    def inputs(self) -> Sequence[object]: ...
    @property
    def output(self) -> object: ...
    @property
    def subsumed(self) -> bool: ...


class Table(Protocol):
    """One function, constructor or relation of the engine."""

    @property
    def input_sorts(self) -> Sequence[str]: ...
    @property
    def output_sort(self) -> str: ...
    @property
    def is_let_binding(self) -> bool: ...
    @property
    def rows(self) -> Sequence[TableRow]: ...


class FrozenEGraph(Protocol):
    """A snapshot of the whole e-graph."""

    @property
    def functions(self) -> Mapping[str, Table]: ...


class ValueReader(Protocol):
    """Converters from the engine's values to Python's."""

    def value_to_i64(self, value: object, /) -> int: ...
    def value_to_f64(self, value: object, /) -> float: ...
    def value_to_bool(self, value: object, /) -> bool: ...
    def value_to_multiset(self, value: object, /) -> Sequence[object]: ...
    def value_to_vec(self, value: object, /) -> Sequence[object]: ...


@record(frozen=True)
class TableLayout:
    """What the tables of an e-graph mean.

    Attributes
    ----------
    term_sort
        The sort of the e-classes.
    term_table
        The table from the numbers of loaded terms to their classes; its rows are no e-nodes.
    containers
        Sorts of collections of terms; a multiset's elements have no order.
    not_operators
        Tables with a term as output that are no operators (functions, unextractable constructors).
    facts
        Names of the analyses to read, None for all. An analysis is a table from one term to a primitive
        value, or a relation over one term.
    """

    term_sort: str = "T"
    term_table: str = "N"
    containers: Mapping[str, ContainerKind] = field(default_factory=lambda: {"MS": "multiset"})
    not_operators: Collection[str] = ()
    facts: Collection[str] | None = None


def read_out(frozen: FrozenEGraph, reader: ValueReader, layout: TableLayout | None = None) -> EGraphArrays:
    """All e-nodes, classes and facts of an e-graph.

    Parameters
    ----------
    frozen
        The snapshot.
    reader
        Converters for the values in it.
    layout
        What the tables mean; by default as in the engine's own signature.
    """
    collector = _Collector(reader, layout if layout is not None else TableLayout())
    tables = frozen.functions  # the engine makes a new dictionary, and new lists of rows, at every access
    for name in sorted(tables):
        collector.add_table(name, tables[name])
    return canonical_arrays(collector.finish())


class _Collector:
    """Gathers e-nodes and facts table by table, with the engine's hashes as class names."""

    def __init__(self, reader: ValueReader, layout: TableLayout) -> None:
        self._layout = layout
        self._primitives: dict[str, Callable[[object], Attribute]] = {
            "i64": reader.value_to_i64,
            "f64": reader.value_to_f64,
            "bool": reader.value_to_bool,
        }
        self._elements: dict[ContainerKind, Callable[[object], Sequence[object]]] = {
            "multiset": reader.value_to_multiset,
            "vector": reader.value_to_vec,
        }
        self._containers: dict[tuple[str, int], list[int]] = {}
        self._operators: list[str] = []
        self._operator: list[IntArray] = []
        self._classes: list[int] = []
        self._counts: list[int] = []
        self._operands: list[int] = []
        self._places: list[int] = []
        self._attribute: list[int] = []
        self._attribute_values: list[tuple[Attribute, ...]] = [()]
        self._subsumed: list[bool] = []
        self._origins: list[str] = []
        self._terms: dict[int, int] = {}
        self._facts: dict[str, dict[int, Attribute]] = {}

    def add_table(self, name: str, table: Table) -> None:
        """Sort one table into e-nodes, term numbers, facts, or nothing of ours."""
        layout = self._layout
        if table.is_let_binding or name in layout.not_operators:
            return
        if name == layout.term_table:
            to_number = self._primitives[table.input_sorts[0]]
            self._terms = {int(to_number(row.inputs[0])): hash(row.output) for row in table.rows}
        elif table.output_sort == layout.term_sort:
            rows = table.rows
            if rows:
                self._add_operator(name, table.input_sorts, rows)
        elif list(table.input_sorts) == [layout.term_sort] and (layout.facts is None or name in layout.facts):
            self._add_fact(name, table)

    def _add_fact(self, name: str, table: Table) -> None:
        convert = self._primitives.get(table.output_sort)
        if convert is not None:
            self._facts[name] = {hash(row.inputs[0]): convert(row.output) for row in table.rows}
        elif table.output_sort == "Unit" or table.output_sort.startswith("@"):  # a relation
            self._facts[name] = {hash(row.inputs[0]): True for row in table.rows}

    def _add_operator(self, name: str, sorts: Sequence[str], rows: Sequence[TableRow]) -> None:
        count = len(rows)
        self._operator.append(np.full(count, len(self._operators), np.int64))
        self._operators.append(name)
        self._classes.extend([hash(row.output) for row in rows])
        self._subsumed.extend([row.subsumed for row in rows])
        self._origins.extend([getattr(row, "origin", "") for row in rows])  # egglog's rows have none
        attributes: list[list[Attribute]] = []
        operands: list[list[int]] = []
        collections: list[tuple[ContainerKind, list[list[int]]]] = []
        for sort, column in zip(sorts, zip(*[row.inputs for row in rows], strict=True), strict=True):
            if sort == self._layout.term_sort:
                operands.append([hash(value) for value in column])
            elif sort in self._primitives:
                attributes.append(list(map(self._primitives[sort], column)))
            elif sort in self._layout.containers:
                kind = self._layout.containers[sort]
                collections.append((kind, [self._elements_of(sort, kind, value) for value in column]))
            else:
                raise CompileError(
                    f"read-out: operator {name!r} takes a {sort!r}, which is no term or number"
                )
        sizes = [[len(elements) for elements in column] for _kind, column in collections[:-1]]
        self._add_attributes([*sizes, *attributes], count)
        if collections:
            self._add_collections(operands, collections, count)
            return
        self._operands.extend(chain.from_iterable(zip(*operands, strict=True)))
        self._places.extend(list(range(len(operands))) * count)
        self._counts.extend([len(operands)] * count)

    def _add_attributes(self, columns: Sequence[Sequence[Attribute]], count: int) -> None:
        if not columns:
            self._attribute.extend([0] * count)
            return
        # Interned per operator: the attributes (1,) and (1.0,) of two operators are equal as Python tuples.
        known: dict[tuple[Attribute, ...], int] = {}
        for values in zip(*columns, strict=True):
            index = known.get(values)
            if index is None:
                index = known[values] = len(self._attribute_values)
                self._attribute_values.append(values)
            self._attribute.append(index)

    def _add_collections(
        self,
        operands: Sequence[Sequence[int]],
        collections: Sequence[tuple[ContainerKind, Sequence[Sequence[int]]]],
        count: int,
    ) -> None:
        """Append operands of varying number: single terms first, then the elements of each collection."""
        for index in range(count):
            before = len(self._operands)
            self._operands.extend([column[index] for column in operands])
            self._places.extend(range(len(operands)))
            position = len(operands)
            for kind, column in collections:
                elements = column[index]
                self._operands.extend(elements)
                if kind == "multiset":
                    self._places.extend([position] * len(elements))
                    position += 1
                else:
                    self._places.extend(range(position, position + len(elements)))
                    position += len(elements)
            self._counts.append(len(self._operands) - before)

    def _elements_of(self, sort: str, kind: ContainerKind, value: object) -> list[int]:
        key = (sort, hash(value))
        elements = self._containers.get(key)
        if elements is None:
            elements = self._containers[key] = [hash(element) for element in self._elements[kind](value)]
        return elements

    def finish(self) -> RawNodes:
        """Everything collected, with classes numbered from 0 in the order of their hashes."""
        terms = self._terms
        names = np.fromiter(
            chain(self._classes, self._operands, terms.values()),
            np.int64,
            len(self._classes) + len(self._operands) + len(terms),
        )
        hashes, number = distinct(names)
        first_operand, first_term = len(self._classes), len(self._classes) + len(self._operands)
        term_class = np.full(max(terms, default=-1) + 1, -1, np.int64)
        term_class[list(terms)] = number[first_term:]
        index = dict(zip(hashes.tolist(), range(len(hashes)), strict=True))
        return RawNodes(
            operator_names=tuple(self._operators),
            operator=np.concatenate(self._operator) if self._operator else np.empty(0, np.int64),
            class_of=number[:first_operand],
            operand_count=np.array(self._counts, np.int64),
            operands=number[first_operand:first_term],
            place=np.array(self._places, np.int64),
            attribute=np.array(self._attribute, np.int64),
            attribute_values=tuple(self._attribute_values),
            subsumed=np.array(self._subsumed, np.bool_),
            origins=self._origins,
            class_count=len(hashes),
            term_class=term_class,
            facts={
                name: {index[klass]: value for klass, value in column.items() if klass in index}
                for name, column in self._facts.items()
            },
        )
