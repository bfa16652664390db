"""Joined arrays: of one part or of joined parts, and their reductions."""

from __future__ import annotations

from functools import reduce

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.graph import Apply, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.join import Join, join
from esat.ops.inference.vectors import MakeVector, make_vector
from esat.ops.reduction import Reduction

_BOTH = {
    "sum": "add",
    "prod": "mul",
    "max": "maximum",
    "min": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}
"""Reduction -> the op that combines the results of two parts."""


@local_optimizer([Join])
def local_join_of_one(node: Apply) -> Transformed:
    """Arrays without elements along the axis add nothing; one part alone is the whole."""
    assert isinstance(node.op, Join)
    axis = node.op.axis
    parts = [operand for operand in node.inputs if operand.tensor_type.shape[axis] != 0]
    if len(parts) == 1:
        return fitting(node, parts[0])
    if not parts or len(parts) == len(node.inputs):
        return False
    return fitting(node, join(parts, axis))


@local_optimizer([Join])
def local_join_of_joins(node: Apply) -> Transformed:
    """join(join(a, b), c) -> join(a, b, c)."""
    assert isinstance(node.op, Join)
    parts: list[Variable] = []
    for operand in node.inputs:
        inner = operand.owner
        joined = inner is not None and inner.op == node.op
        parts += inner.inputs if inner is not None and joined else [operand]
    return fitting(node, join(parts, node.op.axis)) if len(parts) > len(node.inputs) else False


@local_optimizer([Join])
def local_join_make_vector(node: Apply) -> Transformed:
    """Joined vectors of given scalars are one vector of them all."""
    owners = [operand.owner for operand in node.inputs]
    scalars: list[Variable] = []
    for owner in owners:
        if owner is None or not isinstance(owner.op, MakeVector):
            return False
        scalars += owner.inputs
    return fitting(node, make_vector(scalars, node.outputs[0].tensor_type.dtype))


@local_optimizer([Reduction])
def local_reduce_join(node: Apply) -> Transformed:
    """The sum of joined arrays is the sum of their sums, or joins the sums along another axis."""
    op, joined = node.op, node.inputs[0].owner
    assert isinstance(op, Reduction)
    if joined is None or not isinstance(joined.op, Join) or op.name not in _BOTH:
        return False
    axis = joined.op.axis
    if op.name in ("max", "min") and not all(
        operand.tensor_type.shape[axis] or axis not in op.axes for operand in joined.inputs
    ):
        return False  # an extremum of nothing is an error
    parts = [op(operand) for operand in joined.inputs]
    if axis in op.axes:
        return fitting(node, reduce(op_named(_BOTH[op.name]), parts))
    place = axis if op.keepdims else axis - sum(other < axis for other in op.axes)
    return fitting(node, join(parts, place))
