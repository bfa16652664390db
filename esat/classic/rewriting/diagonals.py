"""Diagonals of results, computed from what they depend on, whatever sizes the matrices have.

``diagonal(x + y) = diagonal(x) + diagonal(y)``; ``diagonal(x @ y)`` is a sum of products of rows and columns,
of as many as both have.
"""

from __future__ import annotations

from esat.classic.local import Transformed, local_optimizer
from esat.classic.rewriting.parts import fitting, used_once
from esat.graph import Apply, Family, Variable
from esat.graph.registry import op_named
from esat.ops.contraction import MATMUL
from esat.ops.diagonal import Diagonal
from esat.ops.index.basic import subtensor
from esat.ops.reduction import SUM, reduce
from esat.ops.shape import size_of
from esat.ops.view import swapaxes


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


def _from(variable: Variable, axis: int, start: int, length: Variable) -> Variable:
    """So many elements of an axis, from a place on."""
    index: list[slice] = [slice(None)] * variable.tensor_type.ndim
    index[axis] = slice(start, op_named("add")(length, start))
    return subtensor(variable, tuple(index))
