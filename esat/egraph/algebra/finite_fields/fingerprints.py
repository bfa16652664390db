"""The values of e-nodes and classes at one point in each field."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from esat.base.records import record
from esat.egraph.algebra.axes.lengths import Axes, Symbols, axes_of
from esat.egraph.algebra.equal_forms.smallest_trees import SmallestTrees
from esat.egraph.algebra.finite_fields.backend import compiled
from esat.egraph.algebra.finite_fields.coded import COPY, FILL, GATHER, GIVEN, OPAQUE, SHUFFLE, Nodes
from esat.egraph.algebra.finite_fields.coding import Coded, coded
from esat.egraph.algebra.finite_fields.field_values import is_quotient
from esat.egraph.algebra.finite_fields.fields import FIELDS, Field
from esat.egraph.algebra.finite_fields.modular import mixed
from esat.egraph.algebra.finite_fields.reading import UNKNOWN, Floats, Integers, Reading
from esat.egraph.algebra.finite_fields.singular import without_meaning
from esat.egraph.algebra.finite_fields.space import Space
from esat.egraph.algebra.finite_fields.structured_matrices import structured

_LARGEST_RANK = 16
"""Of permutation words."""
_WORD = (1 << 62) - 1
"""The bits of a hash."""


@record(frozen=True, eq=False)
class Fingerprints:
    """What is known of an e-graph's classes and e-nodes.

    Attributes
    ----------
    reading, coded
        The e-graph.
    chosen, cost, names
        By class: the e-node of the smallest tree (-1: none), the size of that tree, and a hash of it, by
        which ties are broken.
    order
        The classes that have one, operands first.
    evaluated
        The e-nodes that have a value, operands first.
    values
        int64 ``(fields, nodes)``: a word for the value of each e-node.
    lengths
        int64 ``(classes, ranks)``: equal numbers, equal lengths; -1 for axes of length 1.
    known_lengths
        int64 by such a number: the length, where it is known; else 0.
    """

    reading: Reading
    coded: Coded
    chosen: Integers
    cost: Floats
    names: Integers
    order: Integers
    evaluated: Integers
    values: Integers
    lengths: Integers
    known_lengths: Integers

    @cached_property
    def chosen_list(self) -> list[int]:
        """:attr:`chosen` for loops in Python."""
        chosen: list[int] = self.chosen.tolist()
        return chosen

    @cached_property
    def code_list(self) -> list[int]:
        """What the loops do for each e-node, for loops in Python."""
        code: list[int] = self.coded.nodes.code.tolist()
        return code

    @cached_property
    def number_list(self) -> list[int]:
        """The numbers of e-nodes, for loops in Python."""
        number: list[int] = self.coded.nodes.number.tolist()
        return number

    @cached_property
    def rank(self) -> list[int]:
        """Places of the classes in an order that depends on what they are, whatever the engine calls them."""
        rank = np.empty(len(self.names), np.int64)
        rank[np.argsort(self.names, kind="stable")] = np.arange(len(self.names))
        places: list[int] = rank.tolist()
        return places

    @cached_property
    def shape(self) -> Integers:
        """int64 ``(classes,)``: equal numbers, equal dtype, broadcast word and lengths."""
        columns = [self.reading.dtype, self.reading.word, *self.lengths.T]
        order = np.lexsort(columns)
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = False
        for column in columns:
            is_first[1:] |= column[order[1:]] != column[order[:-1]]
        number = np.empty(len(order), np.int64)
        number[order] = np.cumsum(is_first) - 1
        return number

    def is_ring(self, node: int) -> bool:
        """Whether an e-node's value follows from those of its operands by arithmetic."""
        return self.code_list[node] >= FILL

    def value_of(self, klass: int) -> tuple[int, int]:
        """A class's value in each field."""
        first, second = self.values[:, self.chosen[klass]].tolist()
        return first, second


def fingerprints(reading: Reading, symbols: Symbols) -> Fingerprints:
    """Choose an e-node for each class, and evaluate all that can be."""
    backend, code = compiled(), coded(reading, symbols.operators, symbols.told_of(reading), symbols.complexes)
    nodes, classes = reading.nodes, reading.classes
    chosen = np.full(classes, -1, np.int64)
    names, order = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    cost = np.zeros(classes)
    choice = SmallestTrees(
        chosen,
        names,
        cost,
        order,
        np.zeros(nodes, np.int64),
        np.zeros(nodes),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
    )
    order = order[: backend.choose(code.nodes, choice)]
    axes = axes_of(reading, code, symbols)
    if _moves(code.nodes) or axes.parts:
        whole = np.ones(len(axes.identity), np.bool_)
        whole[[*axes.pieces, *axes.mirrored]] = False
        found = structured(reading, code, chosen, names, axes.names, whole)
        axes = replace(axes, structured=found) if found else axes
    code = replace(code, nodes=_with_tables(code.nodes, axes, chosen))
    code = replace(
        code, nodes=_with_shapes(_with_meaning(code.nodes, axes, chosen, order), reading.word, axes)
    )
    evaluated = _evaluated(reading, chosen, order)
    drawn = _Drawn(reading, code, chosen, evaluated, axes if _moves(code.nodes) else axes.without_lengths())
    is_needed = np.zeros(classes, np.int64)
    backend.mark_exponents(code.nodes, chosen, order, is_needed)
    of_exponents = chosen[order[is_needed[order] == 1]]
    values = np.zeros((len(FIELDS), nodes), np.int64)
    nothing = np.zeros(0, np.int64)
    for place, field in enumerate(FIELDS):
        exponents = nothing
        if len(of_exponents):
            exponents = drawn.computed(field.of_exponents, place, nothing, of_exponents).values
        space = drawn.computed(field, place, exponents, evaluated)
        backend.condense(code.nodes, space, evaluated, values[place])
    return Fingerprints(reading, code, chosen, cost, names, order, evaluated, values, axes.names, axes.known)


def _moves(nodes: Nodes) -> bool:
    """Whether any e-node has other axes than its operands, or a table that tells its elements apart."""
    return bool(((nodes.code >= SHUFFLE) & (nodes.code <= GIVEN)).any())


def _with_tables(nodes: Nodes, axes: Axes, chosen: Integers) -> Nodes:
    """The e-nodes, with what puts arrays together or takes parts of them, and matrices of known structure."""
    if not axes.parts and not axes.structured:
        return nodes
    code, number, divides = nodes.code.copy(), nodes.number.copy(), nodes.divides.copy()
    for place, part in enumerate(axes.parts):
        code[part.node], number[part.node] = GATHER, place
    for place, matrix in enumerate(axes.structured, len(axes.parts)):
        code[matrix.node], number[matrix.node] = GIVEN, place
    nodes = replace(nodes, code=code, number=number, divides=divides)
    if not axes.parts:
        return nodes
    pending = True
    while pending:
        pending = False
        for part in axes.parts:
            known = [klass for klass in part.operands if chosen[klass] >= 0]
            if not divides[part.node] and any(is_quotient(nodes, chosen, klass) for klass in known):
                divides[part.node] = 1
                pending = True
    return nodes


def _with_meaning(nodes: Nodes, axes: Axes, chosen: Integers, order: Integers) -> Nodes:
    """The e-nodes, without those that ask more of a matrix than is known in the small arrays."""
    singular = [matrix.node for matrix in axes.structured if matrix.is_singular]
    wrong = without_meaning(nodes, chosen, order, (axes.names != UNKNOWN).sum(axis=1), singular)
    if not wrong:
        return nodes
    code = nodes.code.copy()
    code[wrong] = OPAQUE
    return replace(nodes, code=code)


def _with_shapes(nodes: Nodes, words: Integers, axes: Axes) -> Nodes:
    """The e-nodes, with seeds of opaque ones that tell the shapes of their operands.

    What such an op does with a row is not what it does with a column of the same elements, nor with one that
    is longer.
    """
    own: Any = words & _WORD
    shapes: Any = mixed(own)
    for names in axes.names.T:
        lengths = axes.identity[names] if len(axes.identity) else names
        shapes = mixed(shapes ^ np.where(names == UNKNOWN, _WORD, lengths))
    may_be_opaque = (nodes.code == OPAQUE) | ((nodes.code > COPY) & (nodes.code < FILL))
    owners = nodes.owner
    place = np.arange(len(owners)) - nodes.start[owners]
    told = np.where(may_be_opaque[owners], mixed(shapes[nodes.operands] ^ place), 0)
    seed = nodes.seed.copy()
    np.bitwise_xor.at(seed, owners, told)
    return replace(nodes, seed=seed)


@record(frozen=True, eq=False)
class _Drawn:
    """What values in a field depend on beside the field."""

    reading: Reading
    code: Coded
    chosen: Integers
    evaluated: Integers
    axes: Axes

    def computed(self, field: Field, place: int, exponents: Integers, order: Integers) -> Space:
        """The values of e-nodes, in the order given."""
        space, conjugate = self._spaces(field, place, exponents)
        nodes = self.code.nodes
        compiled().evaluate(nodes, space, conjugate, order, field.prime, field.inverse, field.seed)
        return space

    def _spaces(self, field: Field, place: int, exponents: Integers) -> tuple[Space, Space]:
        """Room for the elements of e-nodes, and for their conjugates, which real numbers share."""
        reading, evaluated = self.reading, self.evaluated
        layout = self.axes.laid_out(field, place)
        count = layout.sizes.reshape(reading.classes, -1).prod(axis=1)
        elements = count[reading.class_of[evaluated]]
        offset = np.full(reading.nodes, UNKNOWN, np.int64)
        offset[evaluated] = np.cumsum(elements) - elements
        constants = np.array([field.element(value) for value in self.code.constants], np.int64)
        total = int(elements.sum())
        room = (np.zeros(_LARGEST_RANK, np.int64) for _ in range(2))
        is_doubled = self.code.is_doubled[reading.class_of] & (offset != UNKNOWN)
        values, bases = np.zeros(total * (1 + is_doubled.any()), np.int64), np.array(field.bases)
        of_axes = self.chosen, layout.sizes, count, offset, constants, layout.weights, layout.weight
        space = Space(*of_axes, values, exponents, bases, layout.tables, *room)
        if not is_doubled.any():
            return space, space
        constants = np.array([field.element(value, True) for value in self.code.constants], np.int64)
        offset = np.where(is_doubled, offset + total, offset)
        return space, replace(space, offset=offset, constants=constants)


def _evaluated(reading: Reading, chosen: Integers, order: Integers) -> Integers:
    """The chosen e-nodes, operands first, then the others whose operands have values."""
    has_value = chosen >= 0
    open_operands = np.bincount(reading.owner[~has_value[reading.operands]], minlength=reading.nodes)
    is_other = (open_operands == 0) & has_value[reading.class_of]
    is_other[chosen[order]] = False
    return np.concatenate([chosen[order], np.flatnonzero(is_other)])
