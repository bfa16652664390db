"""Ops on batches: operands with one more axis in front, for those values of an operand that make it up.

An op's rule is its method ``batch``: given its operands, some of them with the batch's axis in front, it
builds its results for all elements of the batch, with that axis in front. What rules have in common is here.
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.errors import ShapeError, describe
from esat.graph.op import Family, Op
from esat.graph.registry import function_named, op_named
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of, sizes_of


def aligned(inputs: Sequence[Variable], batched: Sequence[bool]) -> list[Variable]:
    """Operands whose axes are matched from the last one, with the batch's axis in front of all others."""
    ranks = [variable.tensor_type.ndim - flag for variable, flag in zip(inputs, batched, strict=True)]
    rank = max(ranks, default=0)
    return [
        dimshuffle(variable, (0, *["x"] * (rank - own), *range(1, own + 1))) if flag else variable
        for variable, flag, own in zip(inputs, batched, ranks, strict=True)
    ]


def batch_size(inputs: Sequence[Variable], batched: Sequence[bool]) -> Variable:
    """How many elements a batch has, as a scalar."""
    return next(size_of(variable, 0) for variable, flag in zip(inputs, batched, strict=True) if flag)


def repeated(variable: Variable, size: Variable) -> Variable:
    """A value as a batch of which it is every element."""
    widened = dimshuffle(variable, ("x", *range(variable.tensor_type.ndim)))
    result: Variable = op_named("alloc")(widened, size, *sizes_of(variable))
    return result


def all_batched(inputs: Sequence[Variable], batched: Sequence[bool]) -> list[Variable]:
    """Operands that all have the batch's axis."""
    size = batch_size(inputs, batched)
    return [
        variable if flag else repeated(variable, size) for variable, flag in zip(inputs, batched, strict=True)
    ]


LONGEST = 1024
"""Elements of a batch up to which an op without a rule of its own is applied to each of them."""


def by_element(
    op: Op, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]
) -> tuple[Variable, ...]:
    """An op applied to the elements of a batch one by one, and the results put together.

    Raises
    ------
    ShapeError
        When it is not known how many elements there are, or there are too many.
    """
    if op.family is Family.RANDOM:
        reason = "draws do not depend on a batch; give the distribution a size in place of vmap"
        raise ShapeError(describe(op.name, [v.type for v in inputs], reason, node.where))
    size = next(v.tensor_type.shape[0] for v, flag in zip(inputs, batched, strict=True) if flag)
    if size is None or not 0 < size <= LONGEST:
        types = [variable.type for variable in inputs]
        reason = (
            f"has no rule for batches; it is applied to each of 1 to {LONGEST} elements, where that is known"
        )
        raise ShapeError(describe(op.name, types, reason, node.where))
    results = [
        op.make_node(*(v[place] if flag else v for v, flag in zip(inputs, batched, strict=True))).outputs
        for place in range(size)
    ]
    stacked = function_named("stacked")
    return tuple(stacked(parts) for parts in zip(*results, strict=True))


def bilinear(op: Op, node: Apply, tangents: Sequence[Variable | None]) -> Variable | None:
    """The tangent of a product of two operands: the product of each tangent with the other operand."""
    left, right = node.inputs
    parts: list[Variable] = []
    if tangents[0] is not None:
        parts.append(op(tangents[0], right))
    if tangents[1] is not None:
        parts.append(op(left, tangents[1]))
    return parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else None
