"""Which axes of classes have the same length."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.egraph.algebra.axes.array_parts import PART_OPS, PlacedParts
from esat.egraph.algebra.axes.cuts import Cuts
from esat.egraph.algebra.axes.forest import has_length
from esat.egraph.algebra.axes.pieces import UNIT
from esat.egraph.algebra.finite_fields.backend import compiled
from esat.egraph.algebra.finite_fields.coded import LENGTH
from esat.egraph.algebra.finite_fields.coding import LENGTH_OP, Coded, ranks_of
from esat.egraph.algebra.finite_fields.fields import Field
from esat.egraph.algebra.finite_fields.modular import mixed
from esat.egraph.algebra.finite_fields.reading import UNKNOWN, Integers, Reading
from esat.egraph.algebra.finite_fields.structured_matrices import SQUARE, Structured, identities
from esat.egraph.analyses.distinct import distinct
from esat.egraph.language.constructors import opaque_constructor
from esat.egraph.language.terms import RankedOp, TermGraph
from esat.graph.registry import registered_ops
from esat.ops.arrays.shape import ShapeI
from esat.ops.control import Assert
from esat.ops.sparse.record import SparseOp

LARGEST_SIZE = 4
"""Of the small axes that stand for those of square matrices. Of three rows more is true than of many: there
``K @ K @ K`` is a multiple of ``K`` for all ``K`` that are minus their transposes.
"""


@record(frozen=True, eq=False)
class Symbols:
    """Lengths of the axes of loaded terms, by what they are called.

    Attributes
    ----------
    terms, axes, names
        int64, of equal length: an axis of a term, and a number for its length. Equal numbers, equal lengths.
    known
        int64 by number, the length, where it is known; else 0.
    operators
        Of ops that tell the length of an axis, by their number: the axis.
    told
        Terms and axes whose length such an op tells, and which may be taken for what ops on these axes need.
    stored
        Terms that are sparse matrices: they have the shape of what they stand for, and are no arrays of it.
    parts
        Ops that put arrays together or take parts of them, by their number.
    complexes
        Constant arrays all of whose elements are one finite complex number, by their number.
    """

    terms: Integers
    axes: Integers
    names: Integers
    known: Integers
    operators: Mapping[int, int]
    told: tuple[tuple[int, int], ...]
    stored: Integers
    parts: Mapping[int, RankedOp]
    complexes: Mapping[int, complex]

    @classmethod
    def of(cls, graph: TermGraph) -> Symbols:
        """The lengths that are known of a graph's terms."""
        known: dict[object, int] = {}
        found = [
            (number, axis, known.setdefault(size, len(known)))
            for number, type in enumerate(graph.types)
            for axis, size in enumerate(type.shape[: type.rank])
        ]
        terms, axes, names = np.ascontiguousarray(np.array(found, np.int64).reshape(-1, 3).T)
        operators = {
            number: opaque.op.axis
            for number, opaque in enumerate(graph.opaque)
            if isinstance(opaque.op, ShapeI)
        }
        sizes = np.array([size if isinstance(size, int) else 0 for size in known], np.int64)
        stored = [number for number, type in enumerate(graph.types) if len(type.shape) > type.rank]
        told = tuple(_told(graph, operators))
        parts = {
            number: ranked for number, ranked in enumerate(graph.opaque) if isinstance(ranked.op, PART_OPS)
        }
        return cls(
            terms, axes, names, sizes, operators, told, np.array(stored, np.int64), parts, _complexes(graph)
        )

    def told_of(self, reading: Reading) -> frozenset[tuple[int, int]]:
        """:attr:`told` with classes in the place of terms."""
        classes = reading.class_of_term(np.array([term for term, _ in self.told], np.int64)).tolist()
        return frozenset((klass, axis) for klass, (_, axis) in zip(classes, self.told, strict=True))

    def stored_of(self, reading: Reading) -> frozenset[int]:
        """Classes of sparse matrices: of such terms, and of what ops take for one."""
        found = set(reading.class_of_term(self.stored).tolist()) - {UNKNOWN}
        places = {
            number: [place for place, kind in enumerate(_sparse_kinds().get(name, ())) if kind == "sparse"]
            for number, name in enumerate(reading.names)
        }
        taking = [number for number, where in places.items() if where]
        for node in np.flatnonzero(np.isin(reading.operator, taking)):
            operands = reading.operands_of(int(node))
            found.update(operands[place] for place in places[int(reading.operator[node])])
        return frozenset(found)


def _complexes(graph: TermGraph) -> dict[int, complex]:
    found = {}
    for number, constant in enumerate(graph.arrays):
        data = constant.data
        if (
            data.dtype.kind == "c"
            and data.size
            and np.isfinite(data.flat[0])
            and (data == data.flat[0]).all()
        ):
            found[number] = complex(data.flat[0])
    return found


@functools.cache
def _sparse_kinds() -> Mapping[str, tuple[Any, ...]]:
    """By constructor of an op on sparse matrices, what its operands are."""
    return {op.constructor: op.kinds for op in registered_ops() if isinstance(op, SparseOp)}


def _told(graph: TermGraph, operators: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Axes of arrays, not the stored values of a sparse matrix, and not what an assertion asks for.

    An assertion may ask whether sizes fit each other: for it they are not taken to do so. A size that others
    are named after stands for itself.
    """
    asserted = _asserted(graph)
    for number, term in enumerate(graph.terms):
        if term.constructor != LENGTH_OP:
            continue
        (operand,), axis = term.operands, operators[int(term.attributes[0])]
        type = graph.types[operand]
        if axis < type.rank and (number not in asserted or type.shape[axis] == (operand, axis)):
            yield operand, axis


def _asserted(graph: TermGraph) -> frozenset[int]:
    """Terms that the conditions of assertions depend on."""
    names = {
        opaque_constructor(opaque.op, len(opaque.operand_ranks))
        for opaque in graph.opaque
        if isinstance(opaque.op, Assert)
    }
    pending = [operand for term in graph.terms if term.constructor in names for operand in term.operands[1:]]
    found: set[int] = set()
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending += graph.terms[number].operands
    return frozenset(found)


@record(frozen=True, eq=False)
class Axes:
    """The axes of classes, by what their lengths are called.

    Attributes
    ----------
    names
        int64 ``(classes, ranks)``: equal numbers, equal lengths, from 0 on; -1 for axes of length 1.
    identity
        int64 by number: what the length is in the graph, by which its weights are drawn.
    known
        int64 by number: the length, where it is known; else 0.
    pieces
        By number of a length that is put together of others: these, -1 for a length 1.
    mirrored
        Numbers of the lengths of axes that are read from their ends.
    is_square
        bool by number: lengths of rows and columns of one matrix.
    parts
        What is put together of parts.
    structured
        Matrices of which the structure is known.
    """

    names: Integers
    identity: Integers
    known: Integers
    pieces: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    mirrored: tuple[int, ...] = ()
    is_square: NDArray[np.bool_] | None = None
    parts: tuple[PlacedParts, ...] = ()
    structured: tuple[Structured, ...] = ()

    @property
    def ranks(self) -> int:
        """Axes of each class, those that it has not included."""
        return int(self.names.shape[1])

    def without_lengths(self) -> Axes:
        """All axes of length 1: that is enough where every op does the same for all elements."""
        none = np.zeros(0, np.int64)
        return Axes(np.full_like(self.names, UNKNOWN), none, none)

    def laid_out(self, field: Field, place: int) -> LengthArrays:
        """Small sizes of the axes, and weights of their indices.

        Parameters
        ----------
        field
            Where the weights are from.
        place
            Its number: each axis has another size in each of two fields.
        """
        count = len(self.identity)
        small: Integers = 2 + ((self.identity + place) & 1)
        if self.is_square is not None:
            small[self.is_square & (small > 2)] = LARGEST_SIZE
        small[list(self.mirrored)] += 2
        width = int(small.max(initial=0))
        weights = np.ones(1 + width * count, np.int64)
        rows = weights[1:].reshape(count, width)
        word: Any = self.identity ^ field.seed
        total = np.zeros(count, np.int64)
        word = mixed(word)
        for index in range(width):
            word = mixed(word ^ index)
            is_last = (small == index + 1) & (self.known > 0)
            rows[:, index] = np.where(is_last, (self.known - total) % field.prime, word % field.prime)
            total = (total + rows[:, index]) % field.prime
        for name in self.mirrored:
            _mirror(rows[name, : small[name]], int(self.known[name]), field.prime)
        begins = 1 + width * np.arange(count)
        lengths = {UNIT: 1, **dict(enumerate(small.tolist()))} if self.parts else {}
        together = [weights]
        for name, pieces in self.pieces.items():
            begins[name] = sum(map(len, together))
            one = [rows[piece, : lengths[piece]] if piece != UNIT else weights[:1] for piece in pieces]
            together += one
            small[name] = sum(map(len, one))
        has_length = self.names != UNKNOWN
        sizes = np.where(has_length, small[self.names] if count else 1, 1)
        starts = np.where(has_length, begins[self.names] if count else 0, 0)
        if self.pieces:
            weights = np.concatenate(together)
        known: dict[object, Integers] = {}
        tables = []
        for part in self.parts:
            alike = (
                part.op,
                part.ranks,
                part.windows,
                *(sizes[operand].tobytes() for operand in part.operands),
            )
            if alike not in known:
                known[alike] = part.elements(sizes, lengths).reshape(-1)
            tables.append(known[alike])
        for matrix in self.structured:
            last = int(starts[matrix.klass, matrix.rank - 1])
            of_last = weights[last : last + int(sizes[matrix.klass, matrix.rank - 1])]
            tables.append(matrix.elements(field, sizes[matrix.klass], of_last))
        return LengthArrays(sizes.reshape(-1), starts.reshape(-1), weights, _together(tables))


@record(frozen=True, eq=False)
class LengthArrays:
    """Small arrays for classes.

    Attributes
    ----------
    sizes, weight
        int64 by axis of a class: its size, and where its weights begin.
    weights
        Those of the indices of all axes.
    tables
        What is put together of parts, and which elements there are given, behind where each begins.
    """

    sizes: Integers
    weight: Integers
    weights: Integers
    tables: Integers


def _together(tables: Sequence[Integers]) -> Integers:
    """Tables one after the other, behind where each begins."""
    if not tables:
        return np.zeros(0, np.int64)
    ends = np.cumsum([len(tables), *map(len, tables)])
    return np.concatenate([ends[:-1], *tables])


def _of_square(names: Integers, count: int) -> NDArray[np.bool_]:
    """Bool ``(count,)``: lengths that two axes of one class have."""
    is_square = np.zeros(count, np.bool_)
    for axis in range(1, names.shape[1]):
        same = (names[:, :axis] == names[:, axis : axis + 1]).any(axis=1) & (names[:, axis] != UNKNOWN)
        is_square[names[same, axis]] = True
    return is_square


def _mirror(weights: Integers, known: int, prime: int) -> None:
    """Make weights the same from both ends, and their sum what it is known to be."""
    size = len(weights)
    half = size // 2
    if known:
        rest = known - 2 * sum(weights[: (size - 1) // 2].tolist())
        inner = rest if size % 2 else rest * pow(2, -1, prime)
        weights[(size - 1) // 2] = inner % prime
    weights[size - half :] = weights[:half][::-1]


def _square(reading: Reading, coded: Coded, ranks: int) -> tuple[Integers, Integers]:
    """Axes of one length: of square matrices, and of identity matrices with as many rows as it is long."""
    pairs: set[tuple[int, int]] = set()
    for fact in SQUARE:
        for klass in reading.facts.get(fact, ()):
            word = int(reading.word[klass])
            last = word.bit_length() - 2
            if word > 0 and 0 < last < ranks and word >> (last - 1) & 3 == 0:
                pairs.add((int(klass) * ranks + last - 1, int(klass) * ranks + last))
    lengths = np.flatnonzero(coded.nodes.code == LENGTH)
    for node in identities(reading, coded):
        klass, rows = int(reading.class_of[node]), reading.operands_of(node)[0]
        if reading.word[klass] != 4:
            continue
        pairs.add((klass * ranks, klass * ranks + 1))
        for length in lengths[reading.class_of[lengths] == rows].tolist():
            axis, other = int(coded.nodes.number[length]), reading.operands_of(length)[0]
            if has_length(int(reading.word[other]), axis):
                pairs.add((klass * ranks, other * ranks + axis))
    left, right = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    return np.ascontiguousarray(left), np.ascontiguousarray(right)


def axes_of(reading: Reading, coded: Coded, symbols: Symbols) -> Axes:
    """What is known of the lengths of axes."""
    ranks = max(int(ranks_of(reading.word).max(initial=0)), 1)
    backend = compiled()
    first, count = reading.classes * ranks, len(symbols.known)
    parent = np.arange(first + count)
    classes = reading.class_of_term(symbols.terms)
    is_known = (classes >= 0) & (symbols.axes < ranks)
    places = classes[is_known] * ranks + symbols.axes[is_known]
    backend.unite_pairs(parent, places, first + symbols.names[is_known])
    backend.unite_pairs(parent, *_square(reading, coded, ranks))
    for _ in range(2):  # whether a matrix is square may be found out after its diagonal was met
        backend.unite(coded.nodes, coded.is_pointwise, reading.word, ranks, parent)
    backend.find_all(parent)
    numbers = np.arange(ranks)
    is_long = (reading.word[:, None] > 0) & (reading.word[:, None] >> numbers & 1 == 0)
    is_long &= reading.word[:, None] >> (numbers + 1) > 0
    cuts = Cuts(reading, coded, symbols.parts, parent, is_long, symbols.known) if symbols.parts else None
    if cuts is not None:
        parent = cuts.parent
    roots = parent[:first].reshape(reading.classes, ranks)
    met = roots[is_long]
    found, place = distinct(met if cuts is None else np.concatenate([met, cuts.leaves]))
    names = np.full(roots.shape, UNKNOWN, np.int64)
    names[is_long] = place[: len(met)]
    identity, known = count + found, np.zeros(len(found), np.int64)
    owners = parent[first : first + count]
    at = np.minimum(np.searchsorted(found, owners), max(len(found) - 1, 0))
    is_met = found[at] == owners if len(found) else np.zeros(count, np.bool_)
    np.minimum.at(identity, at[is_met], np.arange(count)[is_met])
    np.maximum.at(known, at[is_met], symbols.known[is_met])
    if cuts is None:
        return Axes(names, identity, known, is_square=_of_square(names, len(found)))
    pieces, mirrored, parts, lengths = cuts.numbered(found)
    for name, length in lengths.items():
        known[name] = length
    return Axes(names, identity, known, pieces, mirrored, _of_square(names, len(found)), parts)
