"""Filled arrays: where their shape is not needed, and what reductions and products make of them."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.classic.rewriting.indices.writes import is_zero
from esat.graph import Apply, Family, Variable
from esat.graph.constants import constant
from esat.graph.identity import same_variables
from esat.graph.registry import op_named
from esat.ops.arrays.creation import ALLOC, Alloc
from esat.ops.arrays.shape import ShapeI, element_count, size_of
from esat.ops.cast import Cast, cast
from esat.ops.contraction import MatMul
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.reduction import Reduction


@local_optimizer([Elementwise])
def local_fill_shape(node: Apply) -> Transformed:
    """fill(f(g(x), y), v) -> fill(x, v): the values of what gives the shape are not needed."""
    if node.op.name != "fill":
        return False
    shaping, value = node.inputs
    found = shaping
    while (operand := _of_the_same_shape(found)) is not None:
        found = operand
    if found is shaping:
        return False
    return fitting(node, node.op.make_node(found, value).outputs[0])


def _of_the_same_shape(variable: Variable) -> Variable | None:
    """An operand of what computes a Variable that has its shape: a leaf, if there is one."""
    source = variable.owner
    if source is None or source.op.family is not Family.ELEMENTWISE:
        return None
    flags = variable.tensor_type.broadcastable
    fit = [operand for operand in source.inputs if operand.tensor_type.broadcastable == flags]
    return min(fit, key=lambda operand: operand.owner is not None, default=None)


@local_optimizer([Alloc])
def local_useless_alloc(node: Apply) -> Transformed:
    """An array filled with a value of its own shape is the value."""
    value, *sizes = node.inputs
    for axis, size in enumerate(sizes):
        given = size_of(value, axis)
        known = given.owner is None and size.owner is None and _number(given) == _number(size) is not None
        if not (known or _is_size(size, value, axis)):
            return False
    return fitting(node, value)


def _number(size: Variable) -> int | None:
    data = getattr(size, "data", None)
    return None if data is None else int(data)


def _is_size(size: Variable, of: Variable, axis: int) -> bool:
    owner = size.owner
    return (
        owner is not None and isinstance(owner.op, ShapeI) and owner.op.axis == axis and owner.inputs[0] is of
    )


@local_optimizer([Elementwise, Cast])
def local_elemwise_alloc(node: Apply) -> Transformed:
    """f(alloc(v, n), x) -> f(v, x) where x has the shape anyway; f(alloc(v, n)) -> alloc(f(v), n)."""
    allocs = [_alloc(operand) for operand in node.inputs]
    if not any(allocs):
        return False
    flags = node.outputs[0].tensor_type.broadcastable
    values = [
        operand if source is None else source.inputs[0]
        for operand, source in zip(node.inputs, allocs, strict=True)
    ]
    inner = node.op.make_node(*values).outputs[0]
    if inner.tensor_type.broadcastable == flags:
        return fitting(node, inner)
    everywhere = all(
        source is not None or all(operand.tensor_type.broadcastable)
        for operand, source in zip(node.inputs, allocs, strict=True)
    )
    filled = [source for source in allocs if source is not None]
    if everywhere and all(same_variables(source.inputs[1:], filled[0].inputs[1:]) for source in filled):
        return fitting(node, ALLOC(inner, *filled[0].inputs[1:]))
    return False


def _alloc(operand: Variable) -> Apply | None:
    node = operand.owner
    return node if node is not None and isinstance(node.op, Alloc) else None


@local_optimizer([Elementwise, Cast])
def local_elemwise_fill(node: Apply) -> Transformed:
    """f(fill(a, v), x) -> f(v, x) where x has the shape anyway; f(fill(a, v), s) -> fill(a, f(v, s))."""
    fills = [_filled(operand) for operand in node.inputs]
    if node.op.name == "fill" or not any(fills):
        return False
    values = [
        operand if source is None else source.inputs[1]
        for operand, source in zip(node.inputs, fills, strict=True)
    ]
    if any(value.tensor_type.ndim != node.outputs[0].tensor_type.ndim for value in values):
        return False
    inner = node.op.make_node(*values).outputs[0]
    if inner.tensor_type.broadcastable == node.outputs[0].tensor_type.broadcastable:
        return fitting(node, inner)
    if not all(inner.tensor_type.broadcastable):
        return False
    shaping = (source.inputs[0] for source in fills if source is not None)
    like = next((one for one in shaping if _has_flags(one, node.outputs[0])), None)
    return False if like is None else fitting(node, op_named("fill")(like, inner))


def _filled(operand: Variable) -> Apply | None:
    node = operand.owner
    return node if node is not None and node.op.name == "fill" else None


def _has_flags(variable: Variable, like: Variable) -> bool:
    return variable.tensor_type.broadcastable == like.tensor_type.broadcastable


@local_optimizer([Reduction])
def local_reduce_of_filled(node: Apply) -> Transformed:
    """The sum of n equal values is n times the value, their product its n-th power, an extremum the value."""
    op, filled = node.op, node.inputs[0]
    assert isinstance(op, Reduction)
    source = filled.owner
    is_fill = source is not None and source.op.constructor == "Fill"
    if source is None or not (is_fill or isinstance(source.op, Alloc)):
        return False
    value = source.inputs[1] if is_fill else source.inputs[0]
    shape = filled.tensor_type
    stretched = value.tensor_type.broadcastable
    if any(not stretched[axis] and not shape.broadcastable[axis] for axis in op.axes):
        return False
    total = _combined(op, value, filled, node.outputs[0].tensor_type.dtype)
    if total is None:
        return False
    reduced: Variable = Reduction(op.reducer, op.axes, op.keepdims)(total)
    others = [axis for axis in range(shape.ndim) if axis not in op.axes]
    if all(stretched[axis] == shape.broadcastable[axis] for axis in others):
        return fitting(node, reduced)
    sizes = [
        constant(1, "int64") if axis in op.axes else size_of(filled, axis)
        for axis in (range(shape.ndim) if op.keepdims else others)
    ]
    return fitting(node, ALLOC(reduced, *sizes))


def _combined(op: Reduction, value: Variable, filled: Variable, dtype: str) -> Variable | None:
    """What stands for all equal values along the axes, still with those axes, of size 1."""
    if op.name in ("max", "min"):
        known = [filled.tensor_type.shape[axis] for axis in op.axes]
        return value if all(known) else None
    if op.name not in ("sum", "prod") or dtype == "bool":
        return None
    count = cast(element_count(filled, op.axes), dtype)
    if op.name == "sum":
        product: Variable = op_named("mul")(value, count)
        return product
    if value.tensor_type.kind in "iub":
        return None
    power: Variable = op_named("pow")(value, count)
    return power


@local_optimizer([MatMul])
def local_0_dot_x(node: Apply) -> Transformed:
    """A product with a matrix of zeros is zero."""
    left, right = node.inputs
    if not (is_zero(left) or is_zero(right)):
        return False
    rank = left.tensor_type.ndim
    rows, columns = size_of(left, rank - 2), size_of(right, rank - 1)
    batch = [
        size_of(right if flag else left, axis)
        for axis, flag in enumerate(left.tensor_type.broadcastable[:-2])
    ]
    zero = cast(constant(0), node.outputs[0].tensor_type.dtype)
    return fitting(node, ALLOC(zero, *batch, rows, columns))
