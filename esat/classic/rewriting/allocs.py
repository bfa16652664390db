"""Filled arrays under views, other allocs, joins and writes."""

from __future__ import annotations

from functools import reduce

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.classic.rules.graph_terms import same
from esat.graph import Apply
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.ops.arrays.creation import ALLOC, Alloc
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.join import Join
from esat.ops.index.basic import IncSubtensor, SetSubtensor


@local_optimizer([DimShuffle])
def local_dimshuffle_alloc(node: Apply) -> Transformed:
    """dimshuffle(alloc(v, n, m)) -> alloc(dimshuffle(v), m, n): the value is shuffled, not the whole."""
    assert isinstance(node.op, DimShuffle)
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, Alloc):
        return False
    value, *sizes = source.inputs
    one = constant(1, "int64")
    permuted = [one if axis == "x" else sizes[axis] for axis in node.op.order]
    return fitting(node, ALLOC(dimshuffle(value, node.op.order), *permuted))


@local_optimizer([Alloc])
def local_merge_alloc(node: Apply) -> Transformed:
    """alloc(alloc(v, 1, n), m, n) -> alloc(v, m, n), where the inner sizes are 1 or the outer ones."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Alloc):
        return False
    value, *given = inner.inputs
    sizes = node.inputs[1:]
    flags = node.inputs[0].tensor_type.broadcastable
    if not all(flag or same(one, other) for flag, one, other in zip(flags, given, sizes, strict=True)):
        return False  # sizes that differ are an error at run time
    return fitting(node, ALLOC(value, *sizes))


@local_optimizer([Join])
def local_join_of_alloc(node: Apply) -> Transformed:
    """join(alloc(v, n), alloc(v, m)) -> alloc(v, n + m) for a value stretched along the joined axis."""
    assert isinstance(node.op, Join)
    axis = node.op.axis
    sources = [operand.owner for operand in node.inputs]
    allocs = [source for source in sources if source is not None and isinstance(source.op, Alloc)]
    if len(allocs) < max(2, len(sources)):
        return False
    value, *sizes = allocs[0].inputs
    if not value.tensor_type.broadcastable[axis]:
        return False
    for other in allocs[1:]:
        pairs = [
            pair for place, pair in enumerate(zip(other.inputs[1:], sizes, strict=True)) if place != axis
        ]
        if not same(other.inputs[0], value) or not all(same(*pair) for pair in pairs):
            return False
    sizes[axis] = reduce(op_named("add"), [source.inputs[1 + axis] for source in allocs])
    return fitting(node, ALLOC(value, *sizes))


@local_optimizer([SetSubtensor])
def local_useless_inc_subtensor_alloc(node: Apply) -> Transformed:
    """x[i] = alloc(v, n) -> x[i] = v, and x[i] += alloc(v, n) likewise: a write stretches its value."""
    assert isinstance(node.op, SetSubtensor)
    array, written, *numbers = node.inputs
    source = written.owner
    if source is None or not isinstance(source.op, Alloc):
        return False
    part = node.op.part_shape(array.tensor_type, numbers)
    given = written.tensor_type.shape
    if None in part or tuple(given) != tuple(part):
        return False  # a size that does not fit is an error at run time
    op = IncSubtensor if isinstance(node.op, IncSubtensor) else SetSubtensor
    return fitting(node, op(node.op.entries)(array, source.inputs[0], *numbers))
