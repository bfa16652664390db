"""Ops that do nothing where they stand: choices that are made, sorts under sums, splits into one part."""

from __future__ import annotations

from functools import reduce

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.classic.rules.graph_terms import is_tensor, same
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.join import Split
from esat.ops.arrays.sorting import Sort
from esat.ops.control import IfElse, SpecifyShape
from esat.ops.inference.vectors import MakeVector
from esat.ops.reduction import Reduction
from esat.ops.sparse.structure import DenseFromSparse, SparseFromDense


@local_optimizer([IfElse])
def local_ifelse_simplify(node: Apply) -> Transformed:
    """A choice with a known condition is the side chosen; one between equals is any side."""
    condition, *sides = node.inputs
    half = len(sides) // 2
    known = value_of(condition)
    replacements: list[Variable | None] = []
    for output, yes, no in zip(node.outputs, sides[:half], sides[half:], strict=True):
        side = yes if known or same(yes, no) else no if known is not None else None
        replacements.append(side if side is not None and _stands_for(side, output) else None)
    return False if any(one is None for one in replacements) else replacements


def _stands_for(side: Variable, output: Variable) -> bool:
    if not is_tensor(output):
        return side.type == output.type
    wanted, given = output.tensor_type, side.tensor_type
    return (wanted.dtype, wanted.broadcastable) == (given.dtype, given.broadcastable)


@local_optimizer([Split])
def local_useless_split(node: Apply) -> Transformed:
    """A split into one part is the whole."""
    return fitting(node, node.inputs[0]) if len(node.outputs) == 1 else False


@local_optimizer([Reduction])
def local_sort_under_reduce(node: Apply) -> Transformed:
    """sum(sort(x)) -> sum(x), and so for products and extrema over the axis sorted along."""
    op, source = node.op, node.inputs[0].owner
    assert isinstance(op, Reduction)
    if source is None or not isinstance(source.op, Sort) or source.op.name != "sort":
        return False
    if op.name not in ("sum", "prod", "max", "min", "any", "all") or source.op.axis not in op.axes:
        return False
    return fitting(node, op(source.inputs[0]))


@local_optimizer([Reduction])
def local_sum_make_vector(node: Apply) -> Transformed:
    """sum(make_vector(a, b, c)) -> a + b + c, and so for products and extrema."""
    op, source = node.op, node.inputs[0].owner
    assert isinstance(op, Reduction)
    combine = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}.get(op.name)
    if source is None or not isinstance(source.op, MakeVector) or combine is None or not source.inputs:
        return False
    if source.op.dtype == "bool":
        return False
    total = reduce(op_named(combine), source.inputs)
    return fitting(node, dimshuffle(total, ("x",)) if op.keepdims else total)


@local_optimizer([DimShuffle])
def local_useless_dimshuffle_makevector(node: Apply) -> Transformed:
    """A vector of one scalar without its axis is the scalar."""
    assert isinstance(node.op, DimShuffle)
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, MakeVector) or len(source.inputs) != 1:
        return False
    return fitting(node, dimshuffle(source.inputs[0], ("x",) * len(node.op.order)))


@local_optimizer([SpecifyShape])
def local_useless_specify_shape(node: Apply) -> Transformed:
    """A check of sizes that the type knows checks nothing."""
    known = node.inputs[0].tensor_type.shape
    return fitting(node, node.inputs[0]) if known == node.outputs[0].tensor_type.shape else False


@local_optimizer([SpecifyShape])
def local_merge_consecutive_specify_shape(node: Apply) -> Transformed:
    """Two checks of sizes are one of all these sizes."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, SpecifyShape):
        return False
    return fitting(node, SpecifyShape(node.outputs[0].tensor_type.shape)(inner.inputs[0]))


@local_optimizer([DenseFromSparse])
def local_dense_from_sparse_sparse_from_dense(node: Apply) -> Transformed:
    """A dense matrix made sparse and dense again is itself."""
    source = node.inputs[0].owner
    if source is None or not isinstance(source.op, SparseFromDense):
        return False
    return fitting(node, source.inputs[0])
