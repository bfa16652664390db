"""Shapes and dtypes of e-classes as numbers, for costs.

Loaded terms bring their sizes from the graph. Classes that rules made get theirs from any of
their e-nodes; a class whose size cannot be told is never chosen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from esat.egraph.analyses.matrices import BY_CONSTRUCTOR, matrix_shape
from esat.egraph.language.result_shapes import EXPECTED, of_sparse, product
from esat.egraph.language.terms import SCALAR, Dimension, TermGraph, TermType
from esat.extract.arrays import EGraphArrays
from esat.extract.prices.nary import Shape, broadcast_shape
from esat.extract.prices.value import UNKNOWN_SIZE, Value
from esat.graph.registry import op_constructed
from esat.ops.linalg.structured import PRODUCTS
from esat.ops.sparse.record import SparseOp
from esat.rules.language.macros import permutation_axes

Hints = Mapping[tuple[int, int], float]
"""Expected sizes of axes that the types leave open: (term number, axis) -> size."""

_KEEPS_SHAPE = ("Output", "Cast", "Softmax", "LogSoftmax")


def term_value(type: TermType, hints: Hints | None = None) -> Value:
    """Expected shape and dtype of a loaded term."""
    known = hints or {}
    sizes = [float(size) if isinstance(size, int) else known.get(size, UNKNOWN_SIZE) for size in type.shape]
    return Value(() if type.broadcast == SCALAR else tuple(sizes), type.dtype)


def _expected_values(types: Sequence[TermType], hints: Hints | None) -> Iterator[Value]:
    """:func:`term_value` of each type; most are alike."""
    known: dict[tuple[tuple[Dimension, ...], bool, int], Value] = {}
    for type in types:
        key = (type.shape, type.broadcast == SCALAR, type.dtype)
        value = known.get(key)
        if value is None:
            value = known[key] = term_value(type, hints)
        yield value


def term_values(terms: TermGraph, hints: Hints | None = None) -> list[Value]:
    """Expected shape and dtype of each loaded term, and whether it is but a transposed view."""
    values: list[Value] = []
    for term, expected in zip(terms.terms, _expected_values(terms.types, hints), strict=True):
        value = expected
        if term.constructor == "DimShuffle" and transposes(
            int(term.attributes[0]), values[term.operands[0]].shape
        ):
            value = expected._replace(transposed=True)
        values.append(value)
    return values


def class_values(arrays: EGraphArrays, source: TermGraph, hints: Hints | None = None) -> list[Value | None]:
    """Expected shape and dtype of each e-class, and whether it is a transposed view; None where unknown."""
    values: list[Value | None] = [None] * arrays.class_count
    loaded = arrays.term_class.tolist()
    for klass, value in zip(loaded, _expected_values(source.types[: len(loaded)], hints), strict=True):
        if klass >= 0 and values[klass] is None:
            values[klass] = value
    dtypes = arrays.facts.get("dt", {})
    broadcasts = arrays.facts.get("bp", {})
    pending = deque(klass for klass, value in enumerate(values) if value is None and klass in dtypes)
    patience = len(pending)
    while pending and patience:
        klass = pending.popleft()
        shape = () if broadcasts.get(klass, 0) == SCALAR else _class_shape(arrays, klass, values)
        if shape is None:
            pending.append(klass)
            patience -= 1
        else:
            values[klass] = Value(shape, int(dtypes[klass]))
            patience = len(pending)
    return _with_views(arrays, values)


def _with_views(arrays: EGraphArrays, values: Sequence[Value | None]) -> list[Value | None]:
    """Mark the classes whose e-nodes are all transposed views."""
    if "DimShuffle" not in arrays.operator_names:
        return list(values)
    shuffles = arrays.operator == arrays.operator_names.index("DimShuffle")
    others = np.bincount(arrays.class_of[~shuffles], minlength=arrays.class_count)
    marked = list(values)
    nodes = np.flatnonzero(shuffles & (others[arrays.class_of] == 0))
    classes, operands = arrays.class_of[nodes], arrays.operands[arrays.operand_start[nodes]]
    attributes = arrays.attribute[nodes].tolist()
    for klass, below, attribute in zip(classes.tolist(), operands.tolist(), attributes, strict=True):
        value, operand = values[klass], values[below]
        if value is None or operand is None:
            continue
        if transposes(int(arrays.attribute_values[attribute][0]), operand.shape):
            marked[klass] = value._replace(transposed=True)
    return marked


def transposes(word: int, operand: Shape) -> bool:
    """Whether a DimShuffle changes the order of axes that are longer than 1."""
    if not operand:
        return False
    axes = [axis for axis in permutation_axes(word) if axis != "x" and operand[int(axis)] > 1.0]
    return axes != sorted(axes)


def _class_shape(arrays: EGraphArrays, klass: int, values: Sequence[Value | None]) -> Shape | None:
    """Shape of a class, from the first of its e-nodes that tells it."""
    rows = arrays.lists
    for node in range(rows.class_start[klass], rows.class_start[klass + 1]):
        operands = rows.operands_of(node)
        shapes = [value.shape for value in map(values.__getitem__, operands) if value is not None]
        if shapes and len(shapes) == len(operands):
            attributes = arrays.attribute_values[rows.attribute[node]]
            shape = node_shape(arrays.operator_names[rows.operator[node]], attributes, shapes)
            if shape is not None:
                return shape
    return None


def node_shape(
    constructor: str, attributes: Sequence[int | float], operands: Sequence[Shape]
) -> Shape | None:
    """Shape of an e-node that a rule made; None where only the op itself could tell."""
    if constructor == "DimShuffle":
        order = permutation_axes(int(attributes[0]))
        sizes = operands[0] or (1.0,) * 8
        return tuple(1.0 if axis == "x" else sizes[int(axis)] for axis in order)
    if constructor in PRODUCTS:
        return product(operands[0], operands[1], int(attributes[0]), EXPECTED)
    # Rules make outputs of one op only: signs and logarithms of determinants, which have one shape.
    if constructor in _KEEPS_SHAPE:
        return operands[0]
    if constructor in BY_CONSTRUCTOR:
        return matrix_shape(constructor, attributes, operands)
    op = op_constructed(constructor)
    if isinstance(op, SparseOp):
        return of_sparse(op.typing, operands, EXPECTED, int(attributes[0]) if attributes else 0)
    if constructor.startswith(("Reduce", "Arg")) or constructor == "LogSumExp":
        mask = int(attributes[0])
        return tuple(1.0 if mask >> axis & 1 else size for axis, size in enumerate(operands[0]))
    if constructor in ("NarySum", "NaryProd") or not attributes:
        shape: Shape = ()
        for operand in operands:
            if shape and operand and len(shape) != len(operand):
                return None
            shape = broadcast_shape(shape, operand)
        return shape
    return None
