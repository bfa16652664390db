"""Zeros with a value added at some places, as gradients of indexing make them, inside sums and products."""

from __future__ import annotations

import numpy as np

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.classic.rewriting.indices.writes import is_zero
from esat.classic.simplify import are_same_size, traced_size
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Constant, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.creation import ALLOC, ARange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import ShapeI, size_of
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSubtensor
from esat.ops.index.basic import IncSubtensor, Subtensor
from esat.ops.index.entries import ARRAY
from esat.ops.inference.promotion import wrap
from esat.ops.reduction import SUM, Reduction


@local_optimizer([Elementwise])
def local_subtract_increments(node: Apply) -> Transformed:
    """inc_subtensor(0, v, i) - x -> inc_subtensor(-x, v, i), and x - inc_subtensor(0, v, i) likewise.

    The increment can then be made in place, and a whole array of zeros is saved.
    """
    if node.op.name != "sub":
        return False
    left, right = node.inputs
    if left.type != right.type or left.tensor_type.kind not in "fc":
        return False
    negative = op_named("neg")
    increment = _increments_in(left)
    if increment is not None:
        return fitting(node, increment.op(negative(right), *increment.inputs[1:]))
    increment = _increments_in(right)
    if increment is not None:
        value, *indices = increment.inputs[1:]
        return fitting(node, increment.op(left, negative(value), *indices))
    return False


@local_optimizer([Elementwise])
def local_increments_times(node: Apply) -> Transformed:
    """inc_subtensor(0, v, i) * x -> inc_subtensor(0, v * x[i], i): only what was added is multiplied."""
    if node.op.name != "mul":
        return False
    product = _product_of_increments(node.outputs[0])
    return False if product is None else fitting(node, product.outputs[0])


@local_optimizer([Reduction])
def local_sum_of_labeled(node: Apply) -> Transformed:
    """The sums of rows, of zeros with v added at [rows, labels]: v added to zeros at [rows].

    v itself where the rows are known to be all rows in their order.
    """
    op = node.op
    assert isinstance(op, Reduction)
    increment = _increments_in(node.inputs[0])
    if op.reducer is not SUM or op.axes != (1,) or increment is None:
        return False
    if not isinstance(increment.op, AdvancedIncSubtensor) or increment.op.entries != (ARRAY, ARRAY):
        return False
    zeros, value, rows, labels = increment.inputs
    if any(one.tensor_type.ndim != 1 or one.tensor_type.dtype == "bool" for one in (rows, labels)):
        return False
    if value.tensor_type.dtype != node.outputs[0].tensor_type.dtype:
        return False
    summed: Variable
    if _is_every_row(rows, zeros):
        summed = value if not value.tensor_type.broadcastable[0] else op_named("fill")(rows, value)
    else:
        if labels.tensor_type.broadcastable[0] != rows.tensor_type.broadcastable[0]:
            return False
        blank = ALLOC(wrap("alloc", 0, value.tensor_type.dtype), size_of(zeros, 0))
        summed = AdvancedIncSubtensor((ARRAY,))(blank, value, rows)
    return fitting(node, dimshuffle(summed, (0, "x")) if op.keepdims else summed)


def _increments_of_zeros(variable: Variable) -> Apply | None:
    node = variable.owner
    if node is None or not isinstance(node.op, (IncSubtensor, AdvancedIncSubtensor)):
        return None
    return node if is_zero(node.inputs[0]) else None


def _increments_in(variable: Variable) -> Apply | None:
    return _increments_of_zeros(variable) or _product_of_increments(variable)


def _product_of_increments(variable: Variable) -> Apply | None:
    """Zeros with a value added at some places, times x: the same with a value times what x has there."""
    node = variable.owner
    if node is None or node.op.name != "mul":
        return None
    for part, factor in (node.inputs, node.inputs[::-1]):
        increment = _increments_of_zeros(part)
        if increment is not None and factor.type == part.type:
            return _scaled(increment, factor).owner
    return None


def _scaled(increment: Apply, factor: Variable) -> Variable:
    """Zeros with a value added at some places, times a factor of their shape."""
    zeros, value, *indices = increment.inputs
    op = increment.op
    assert isinstance(op, (IncSubtensor, AdvancedIncSubtensor))
    reading = Subtensor if isinstance(op, IncSubtensor) else AdvancedSubtensor
    chosen = reading(op.entries)(factor, *indices)
    scaled: Variable = op(zeros, op_named("mul")(value, chosen), *indices)
    return scaled


def _is_every_row(rows: Variable, array: Variable) -> bool:
    """Whether index numbers are known to be 0, 1, ... up to the number of rows of an array."""
    size = traced_size(array, 0)
    if isinstance(rows, Constant):
        return isinstance(size, Constant) and np.array_equal(rows.data, np.arange(size.data))
    if rows.owner is None or not isinstance(rows.owner.op, ARange):
        return False
    start, stop, step = rows.owner.inputs
    if value_of(start) != 0 or value_of(step) != 1:
        return False
    known = stop.owner
    if known is not None and isinstance(known.op, ShapeI):
        stop = traced_size(known.inputs[0], known.op.axis)
    return are_same_size(stop, size)
