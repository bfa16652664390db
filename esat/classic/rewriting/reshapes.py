"""Reshapes that change nothing, only add axes of size 1, or could happen before an elementwise op."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, used_once
from esat.classic.rewriting.logarithms import is_stabilized
from esat.graph import Apply, Family, Variable
from esat.graph.constants import constant
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.arrays.view import Reshape
from esat.ops.inference.vectors import MakeVector


@local_optimizer([Reshape])
def local_reshape_dimshuffle(node: Apply) -> Transformed:
    """Axes of size 1 that come or go before a reshape do not matter to it."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, DimShuffle):
        return False
    axes = [int(axis) for axis in inner.op.order if axis != "x"]
    if axes != sorted(axes):
        return False
    return fitting(node, node.op.make_node(inner.inputs[0], node.inputs[1]).outputs[0])


@local_optimizer([Reshape])
def local_useless_reshape(node: Apply) -> Transformed:
    """A vector as a vector, and an array in its own shape, are not reshaped."""
    source, shape = node.inputs
    rank = node.outputs[0].tensor_type.ndim
    if source.tensor_type.ndim != rank:
        return False
    return fitting(node, source) if rank <= 1 or _is_shape_of(shape, source) else False


def _is_shape_of(shape: Variable, source: Variable) -> bool:
    vector = shape.owner
    if vector is None or not isinstance(vector.op, MakeVector):
        return False
    for axis, (size, known) in enumerate(zip(vector.inputs, source.tensor_type.shape, strict=True)):
        owner = size.owner
        named = owner is not None and isinstance(owner.op, ShapeI) and owner.op.axis == axis
        if named and owner is not None and owner.inputs[0] is source:
            continue
        if known is None or getattr(size, "data", None) != known:
            return False
    return True


@local_optimizer([Reshape])
def local_reshape_to_dimshuffle(node: Apply) -> Transformed:
    """A reshape that only adds or drops axes of size 1 around at most one other is a DimShuffle."""
    source, result = node.inputs[0], node.outputs[0].tensor_type
    left = [axis for axis, flag in enumerate(source.tensor_type.broadcastable) if not flag]
    right = [axis for axis, flag in enumerate(result.broadcastable) if not flag]
    if len(left) > 1 or len(left) != len(right):
        return False
    order: list[int | str] = ["x"] * result.ndim
    if left:
        order[right[0]] = left[0]
    return fitting(node, dimshuffle(source, order))


@local_optimizer([Reshape])
def local_reshape_lift(node: Apply) -> Transformed:
    """reshape(f(x)) -> f(reshape(x)) for functions of one element."""
    inner = node.inputs[0].owner
    if inner is None or inner.op.family is not Family.ELEMENTWISE or len(inner.inputs) != 1:
        return False
    if not used_once(node.inputs[0]) or is_stabilized(inner):
        return False
    reshaped = node.op.make_node(inner.inputs[0], node.inputs[1]).outputs[0]
    return fitting(node, inner.op.make_node(reshaped).outputs[0])


@local_optimizer([ShapeI])
def local_shape_of_reshape(node: Apply) -> Transformed:
    """The size of an axis of a reshaped array, where the new shape is written out."""
    inner = node.inputs[0].owner
    assert isinstance(node.op, ShapeI)
    if inner is None or not isinstance(inner.op, Reshape):
        return False
    vector = inner.inputs[1].owner
    if vector is None or not isinstance(vector.op, MakeVector):
        return False
    size = vector.inputs[node.op.axis]
    known = inner.op.shape[node.op.axis]
    if known is not None:
        return [constant(known, "int64")]
    # A size that is not known when compiling may be -1, "whatever is left".
    owner = size.owner
    return [size] if owner is not None and isinstance(owner.op, ShapeI) else False
