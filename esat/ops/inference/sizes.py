"""The size of a result from the sizes of what it is computed from."""

from __future__ import annotations

import functools

from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.along_axis import AlongAxis
from esat.ops.arrays.creation import Alloc, DiagonalMatrix
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join
from esat.ops.arrays.shape import size_of
from esat.ops.contraction import MatMul
from esat.ops.index.advanced import AdvancedSetSubtensor
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import Slice
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction

_WHOLE = (Slice(), Slice(step=-1))


def size_before(node: Apply, axis: int) -> Variable | None:
    """The size of an axis of a node's first result, by those of its operands; None where they do not tell.

    Not asked are ops that need more than their operands' sizes: which part of an axis a slice takes, which
    branch is chosen, whether a matrix is square.
    """
    op, operands = node.op, node.inputs
    if op.family is Family.ELEMENTWISE:
        lasting = (one for one in operands if not one.tensor_type.broadcastable[axis])
        operand = next(lasting, None)
        return None if operand is None else size_of(operand, axis)
    if isinstance(op, DimShuffle):
        before = op.order[axis]
        return None if before == "x" else size_of(operands[0], int(before))
    if isinstance(op, Reduction):
        rank = operands[0].tensor_type.ndim
        kept = [one for one in range(rank) if op.keepdims or one not in op.axes]
        return None if kept[axis] in op.axes else size_of(operands[0], kept[axis])
    if isinstance(op, (SetSubtensor, AdvancedSetSubtensor, Normalization, AlongAxis)):
        return size_of(operands[0], axis)
    if isinstance(op, (Alloc, DiagonalMatrix)):
        return operands[axis + isinstance(op, Alloc)]
    if isinstance(op, MatMul):
        rank = operands[0].tensor_type.ndim
        return size_of(operands[int(axis == rank - 1)], axis) if axis >= rank - 2 else None
    if isinstance(op, Join):
        sizes = [size_of(one, axis) for one in operands]
        total: Variable = functools.reduce(op_named("add"), sizes) if axis == op.axis else sizes[0]
        return total
    if isinstance(op, Subtensor):
        place, entry = sliced_axis(op, axis)
        return size_of(operands[0], place) if entry in _WHOLE else None
    return None


def sliced_axis(op: Subtensor, axis: int) -> tuple[int, Slice]:
    """The axis of the operand that an axis of the result is a part of, and which part."""
    slices = [(place, entry) for place, entry in enumerate(op.entries) if isinstance(entry, Slice)]
    return slices[axis]
