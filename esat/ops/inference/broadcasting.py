"""Broadcasting: equal ranks by DimShuffle, result shapes from operand types."""

from __future__ import annotations

from collections.abc import Sequence

from esat.errors import ShapeError, describe, sizes_differ
from esat.graph.calls.callers import caller
from esat.graph.types import MAXIMUM_RANK, TensorType
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle


def equalize_ranks(operands: Sequence[Variable]) -> tuple[Variable, ...]:
    """Give every operand the highest rank among them by new axes in front."""
    rank = max(operand.tensor_type.ndim for operand in operands)
    return tuple(pad_rank(operand, rank) for operand in operands)


def pad_rank(operand: Variable, rank: int) -> Variable:
    """``operand`` with new axes of size 1 in front, up to ``rank``."""
    ndim = operand.tensor_type.ndim
    if ndim >= rank:
        return operand
    if rank > MAXIMUM_RANK:
        raise ShapeError(f"{caller()}at most {MAXIMUM_RANK} axes, not {rank}")
    return dimshuffle(operand, (*["x"] * (rank - ndim), *range(ndim)))


def broadcast_types(name: str, types: Sequence[TensorType]) -> tuple[int | None, ...]:
    """The static shape of the result of broadcasting types of equal rank.

    An axis of unknown size stays unknown unless another operand's size is known there.

    Raises
    ------
    ShapeError
        When ranks differ or two known sizes other than 1 do.
    """
    ranks = {type.ndim for type in types}
    if len(ranks) > 1:
        raise ShapeError(describe(name, types, "operands must have one rank"))
    shape: list[int | None] = []
    for axis in range(types[0].ndim):
        sizes = {type.shape[axis] for type in types} - {1}
        known = sizes - {None}
        if len(known) > 1:
            raise ShapeError(describe(name, types, sizes_differ(known, axis)))
        shape.append(1 if not sizes else known.pop() if known else None)
    return tuple(shape)
