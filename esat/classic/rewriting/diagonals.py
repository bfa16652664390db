"""Diagonals: those of results computed from what they depend on, those chosen by index arrays, those added.

``diagonal(x + y) = diagonal(x) + diagonal(y)``; ``diagonal(x @ y)`` is a sum of products of rows and columns,
of as many as both have.
"""

from __future__ import annotations

import numpy as np

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, used_once
from esat.classic.rules.graph_terms import same
from esat.classic.rules.matrix_facts import is_known_square
from esat.classic.simplify import are_same_size, traced, traced_size
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Constant, Family, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.creation import ARange
from esat.ops.arrays.diagonal import Diagonal, DiagonalOf
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import swapaxes
from esat.ops.contraction import MATMUL
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSubtensor
from esat.ops.index.basic import subtensor
from esat.ops.index.entries import ARRAY
from esat.ops.reduction import SUM, reduce


@local_optimizer([Diagonal])
def local_diagonal_lift(node: Apply) -> Transformed:
    """The diagonal of an elementwise result, from those of its operands."""
    source = node.inputs[0].owner
    if source is None or source.op.family is not Family.ELEMENTWISE or not used_once(node.inputs[0]):
        return False
    flags = [operand.tensor_type.broadcastable for operand in source.inputs]
    scalar = [all(one) for one in flags]
    if any(any(one[-2:]) and not alone for one, alone in zip(flags, scalar, strict=True)):
        return False
    parts = [
        swapaxes(operand, -1, -2)[..., 0] if alone else node.op(operand)
        for operand, alone in zip(source.inputs, scalar, strict=True)
    ]
    return fitting(node, source.op.make_node(*parts).outputs[0])


@local_optimizer([Diagonal])
def local_diagonal_of_dot(node: Apply) -> Transformed:
    """diagonal(x @ y) -> sum(x * y.T, axis=-1), of the rows and columns that are on the diagonal."""
    source = node.inputs[0].owner
    if source is None or source.op is not MATMUL or not used_once(node.inputs[0]):
        return False
    left, right = source.inputs
    if left.tensor_type.kind not in "fc" or True in node.inputs[0].tensor_type.broadcastable[-2:]:
        return False
    assert isinstance(node.op, Diagonal)
    above, before = max(-node.op.offset, 0), max(node.op.offset, 0)
    rank = node.inputs[0].tensor_type.ndim
    rows = op_named("sub")(size_of(left, rank - 2), above)
    columns = op_named("sub")(size_of(right, rank - 1), before)
    length = op_named("maximum")(op_named("minimum")(rows, columns), 0)
    first = _from(left, rank - 2, above, length)
    second = _from(right, rank - 1, before, length)
    products = op_named("mul")(first, swapaxes(second, -1, -2))
    return fitting(node, reduce(SUM, products, -1))


@local_optimizer([AdvancedSubtensor])
def local_adv_idx_to_diagonal(node: Apply) -> Transformed:
    """x[arange(n), arange(n)] -> diagonal(x), for all n elements of it: a view."""
    return fitting(node, Diagonal()(node.inputs[0])) if _chooses_diagonal(node, *node.inputs) else False


@local_optimizer([AdvancedIncSubtensor])
def local_diagonal_increment(node: Apply) -> Transformed:
    """x[arange(n), arange(n)] += v -> x + diag(v) for a square x: the sum is symmetric where x is."""
    matrix, value, *numbers = node.inputs
    if not _chooses_diagonal(node, matrix, *numbers) or not is_known_square(matrix):
        return False
    return fitting(node, op_named("add")(matrix, DiagonalOf()(op_named("fill")(Diagonal()(matrix), value))))


def _chooses_diagonal(node: Apply, matrix: Variable, *numbers: Variable) -> bool:
    """Whether index arrays are those of the whole main diagonal, from the first element on."""
    if node.op.properties()[0] != (ARRAY, ARRAY) or not same(*numbers):
        return False
    places = numbers[0]
    if isinstance(places, Constant):
        sizes = [size for size in matrix.tensor_type.shape if size is not None]
        return len(sizes) == 2 and np.array_equal(places.data, np.arange(min(sizes)))
    made = places.owner
    if made is None or not isinstance(made.op, ARange) or not is_known_square(matrix):
        return False
    start, stop, step = made.inputs
    counted = value_of(start) == 0 and value_of(step) == 1
    return counted and any(are_same_size(traced(stop), traced_size(matrix, axis)) for axis in (0, 1))


def _from(variable: Variable, axis: int, start: int, length: Variable) -> Variable:
    """So many elements of an axis, from a place on."""
    index: list[slice] = [slice(None)] * variable.tensor_type.ndim
    index[axis] = slice(start, op_named("add")(length, start))
    return subtensor(variable, tuple(index))
