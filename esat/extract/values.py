"""Shapes and dtypes of e-classes as numbers, for costs.

Loaded terms bring their sizes from the graph. Classes that rules made get theirs from any of
their e-nodes; a class whose size cannot be told is never chosen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from esat.egraph.matrices import BY_CONSTRUCTOR, matrix_shape
from esat.egraph.terms import SCALAR, TermGraph, TermType
from esat.extract.arrays import EGraphArrays
from esat.extract.cost import CostModel
from esat.extract.nary import Shape, broadcast_shape
from esat.extract.value import IMPOSSIBLE, UNKNOWN_SIZE, Value
from esat.ops.linalg.structured import PRODUCTS
from esat.rules.macros import permutation_axes

Hints = Mapping[tuple[int, int], float]
"""Expected sizes of axes that the types leave open: (term number, axis) -> size."""

_KEEPS_SHAPE = ("Output", "Cast", "Softmax", "LogSoftmax")


def _stored(shape: Shape) -> Shape:
    """Shape of the vector of stored values; a sparse matrix of one element may hold that."""
    return shape[2:] or (1.0,)


_SPARSE: Mapping[str, Callable[[Sequence[Shape], Sequence[int | float]], Shape]] = {
    "StoredValues": lambda shapes, _: _stored(shapes[0]),
    "DenseAt": lambda shapes, _: _stored(shapes[0]),
    "ValuesAt": lambda shapes, _: _stored(shapes[0]),
    "SampledValues": lambda shapes, _: _stored(shapes[0]),
    "WithValues": lambda shapes, _: shapes[0],
    "DenseFromSparse": lambda shapes, _: shapes[0][:2],
    "SparseTranspose": lambda shapes, _: (*shapes[0][1::-1], *shapes[0][2:]),
    "SparseSum": lambda shapes, attributes: shapes[0][:2][1 - int(attributes[0]) :][:1],
    "StructuredDot": lambda shapes, _: _matmul_shape(shapes[0][:2], shapes[1], 2),
    "Usmm": lambda shapes, _: _matmul_shape(shapes[1][:2], shapes[2], 2),
}
"""Shapes of results, where that of a sparse matrix is rows, columns and the number of stored values."""


def term_value(type: TermType, hints: Hints | None = None) -> Value:
    """Expected shape and dtype of a loaded term."""
    known = hints or {}
    sizes = (float(size) if isinstance(size, int) else known.get(size, UNKNOWN_SIZE) for size in type.shape)
    return Value(() if type.broadcast == SCALAR else tuple(sizes), type.dtype)


def term_values(terms: TermGraph, hints: Hints | None = None) -> list[Value]:
    """Expected shape and dtype of each loaded term, and whether it is but a transposed view."""
    values: list[Value] = []
    for term, type in zip(terms.terms, terms.types, strict=True):
        value = term_value(type, hints)
        if term.constructor == "DimShuffle" and transposes(
            int(term.attributes[0]), values[term.operands[0]].shape
        ):
            value = replace(value, transposed=True)
        values.append(value)
    return values


def class_values(arrays: EGraphArrays, source: TermGraph, hints: Hints | None = None) -> list[Value | None]:
    """Expected shape and dtype of each e-class, and whether it is a transposed view; None where unknown."""
    values: list[Value | None] = [None] * arrays.class_count
    for number, klass in enumerate(arrays.term_class.tolist()):
        if klass >= 0 and values[klass] is None:
            values[klass] = term_value(source.types[number], hints)
    dtypes = arrays.facts.get("dt", {})
    broadcasts = arrays.facts.get("bp", {})
    pending = deque(klass for klass, value in enumerate(values) if value is None and klass in dtypes)
    patience = len(pending)
    while pending and patience:
        klass = pending.popleft()
        shape = _class_shape(arrays, klass, int(broadcasts.get(klass, 0)), values)
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
    for node in np.flatnonzero(shuffles).tolist():
        klass = int(arrays.class_of[node])
        value, operand = values[klass], values[int(arrays.operands_of(node)[0])]
        if others[klass] or value is None or operand is None:
            continue
        if transposes(int(arrays.attributes_of(node)[0]), operand.shape):
            marked[klass] = replace(value, transposed=True)
    return marked


def transposes(word: int, operand: Shape) -> bool:
    """Whether a DimShuffle changes the order of axes that are longer than 1."""
    if not operand:
        return False
    axes = [axis for axis in permutation_axes(word) if axis != "x" and operand[int(axis)] > 1.0]
    return axes != sorted(axes)


def _class_shape(
    arrays: EGraphArrays, klass: int, broadcast: int, values: Sequence[Value | None]
) -> Shape | None:
    if broadcast == SCALAR:
        return ()
    for node in arrays.nodes_of(klass):
        operands = [values[operand] for operand in arrays.operands_of(node).tolist()]
        if operands and None not in operands:
            known = [operand.shape for operand in operands if operand is not None]
            shape = node_shape(arrays.operator_of(node), arrays.attributes_of(node), known)
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
        return _matmul_shape(operands[0], operands[1], int(attributes[0]))
    # Rules make outputs of one op only: signs and logarithms of determinants, which have one shape.
    if constructor in _KEEPS_SHAPE:
        return operands[0]
    if constructor in BY_CONSTRUCTOR:
        return matrix_shape(constructor, attributes, operands)
    if constructor in _SPARSE:
        return _SPARSE[constructor](operands, attributes)
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


def _matmul_shape(left: Shape, right: Shape, rank: int) -> Shape:
    left, right = left or (1.0,) * rank, right or (1.0,) * rank
    return (*broadcast_shape(left[:-2], right[:-2]), left[-2], right[-1])


def node_costs(
    arrays: EGraphArrays, values: Sequence[Value | None], model: CostModel
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Predicted seconds of every e-node, infinite where it cannot be computed."""
    costs = np.full(arrays.node_count, IMPOSSIBLE)
    starts = arrays.operand_start.tolist()
    operands = arrays.operands.tolist()
    classes = arrays.class_of.tolist()
    operators = arrays.operator.tolist()
    attributes = arrays.attribute.tolist()
    for node in range(arrays.node_count):
        result = values[classes[node]]
        identities = operands[starts[node] : starts[node + 1]]
        inputs = [values[operand] for operand in identities]
        if result is None or None in inputs:
            continue
        known = [value for value in inputs if value is not None]
        costs[node] = model.price(
            arrays.operator_names[operators[node]],
            arrays.attribute_values[attributes[node]],
            known,
            result,
            identities,
        )
    return costs
