"""The immutable array form of an e-graph: what extraction, pricing and decoding read.

E-nodes are sorted by class, so the e-nodes of a class are a range. All indices are int64. The numbering is
canonical (see ``numbering``): the same e-graph gives the same arrays in every process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.analyses.distinct import distinct
from esat.extract.choice.inner_loops import Links

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Attribute = int | float


class NodeLists(NamedTuple):
    """The vectors of the same names as lists, which Python reads faster, one by one."""

    operator: list[int]
    attribute: list[int]
    operand_start: list[int]
    operands: list[int]
    class_start: list[int]

    def operands_of(self, node: int) -> list[int]:
        """Operand classes of an e-node, repeated ones repeated."""
        return self.operands[self.operand_start[node] : self.operand_start[node + 1]]


@record(frozen=True, eq=False)
class EGraphArrays:
    """An e-graph as compressed sparse rows.

    Attributes
    ----------
    operator_names
        Names of the operators, sorted.
    operator
        int64 ``(nodes,)``: operator of each e-node.
    class_of
        int64 ``(nodes,)``: class of each e-node, ascending.
    operand_start, operands
        int64 ``(nodes + 1,)`` and ``(edges,)``: the operand classes of e-node ``i`` are
        ``operands[operand_start[i]:operand_start[i + 1]]``. The operands of an n-ary e-node are the
        elements of its multisets one after the other (positives, then negatives), each multiset in
        ascending class order.
    attribute, attribute_values
        int64 ``(nodes,)`` into a tuple of attribute tuples; use :meth:`attributes_of`. The attributes of an
        n-ary e-node are the sizes of all its multisets but the last: the number of positives.
    subsumed
        bool ``(nodes,)``: e-nodes that a rule replaced for good. They are still equal to their class.
    class_start
        int64 ``(classes + 1,)``: the e-nodes of class ``c`` are ``class_start[c]`` to ``class_start[c + 1]``.
    term_class
        int64 ``(terms,)``: class of each loaded term by its number, -1 where the number was not loaded.
    origins
        Names of the rules that made e-nodes, in order, empty for those that were loaded; no names at all
        where the engine does not tell.
    facts
        E-class analyses by name (``"dt"``, ``"bp"``, ``"val"``, ...): class to value. A relation holds True.
    """

    operator_names: tuple[str, ...]
    operator: IntArray
    class_of: IntArray
    operand_start: IntArray
    operands: IntArray
    attribute: IntArray
    attribute_values: tuple[tuple[Attribute, ...], ...]
    subsumed: BoolArray
    class_start: IntArray
    term_class: IntArray
    facts: Mapping[str, Mapping[int, Attribute]]
    origins: Sequence[str] = ()

    @property
    def node_count(self) -> int:
        """Number of e-nodes."""
        return len(self.operator)

    @property
    def class_count(self) -> int:
        """Number of e-classes, those without e-nodes included."""
        return len(self.class_start) - 1

    def operator_of(self, node: int) -> str:
        """Operator name of an e-node."""
        return self.operator_names[int(self.operator[node])]

    def operands_of(self, node: int) -> IntArray:
        """Operand classes of an e-node, repeated ones repeated."""
        return self.operands[self.operand_start[node] : self.operand_start[node + 1]]

    def attributes_of(self, node: int) -> tuple[Attribute, ...]:
        """Attributes of an e-node."""
        return self.attribute_values[self.attribute[node]]

    def nodes_of(self, klass: int) -> range:
        """E-nodes of a class."""
        return range(int(self.class_start[klass]), int(self.class_start[klass + 1]))

    def parents_of(self, klass: int) -> IntArray:
        """E-nodes that have the class as an operand, each once, ascending."""
        start, parents = self.parents
        return parents[start[klass] : start[klass + 1]]

    @cached_property
    def arity(self) -> IntArray:
        """int64 ``(nodes,)``: operands of each e-node, repeated ones counted each time."""
        return np.diff(self.operand_start)

    @cached_property
    def distinct_operands(self) -> tuple[IntArray, IntArray]:
        """Operand classes of each e-node without repetition, ascending, as (starts, classes)."""
        owner = np.repeat(np.arange(self.node_count, dtype=np.int64), self.arity)
        pairs, _number = distinct(owner * np.int64(max(self.class_count, 1)) + self.operands)
        nodes, classes = np.divmod(pairs, np.int64(max(self.class_count, 1)))
        return starts_of(nodes, self.node_count), classes

    @cached_property
    def lists(self) -> NodeLists:
        """The e-nodes for loops in Python."""
        return NodeLists(*(getattr(self, name).tolist() for name in NodeLists._fields))

    @cached_property
    def links(self) -> Links:
        """The edges of the e-graph for compiled loops."""
        vectors = self.class_of, self.class_start, *self.distinct_operands, *self.parents
        return Links(*map(np.ascontiguousarray, vectors))

    @cached_property
    def operand_lists(self) -> tuple[list[int], list[int]]:
        """:attr:`distinct_operands` as lists, for loops in Python."""
        start, classes = self.distinct_operands
        return start.tolist(), classes.tolist()

    @cached_property
    def parents(self) -> tuple[IntArray, IntArray]:
        """E-nodes by operand class, each once, ascending, as (starts, e-nodes)."""
        start, classes = self.distinct_operands
        owner = np.repeat(np.arange(self.node_count, dtype=np.int64), np.diff(start))
        return starts_of(classes, self.class_count), owner[np.argsort(classes, kind="stable")]

    def describe(self, node: int) -> str:
        """An e-node as text: operator, attributes and operand classes, for messages and explanations."""
        parts = [repr(value) for value in self.attributes_of(node)]
        parts += [f"c{klass}" for klass in self.operands_of(node).tolist()]
        return f"{self.operator_of(node)}({', '.join(parts)})"


def starts_of(keys: IntArray, count: int) -> IntArray:
    """Row starts, int64 ``(count + 1,)``, of items with these row numbers once they are sorted by row."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=count), out=starts[1:])
    return starts
