"""DimShuffle: permute, insert and drop axes, as a view."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from esat.base.records import record
from esat.errors import AxisError, ShapeError, describe
from esat.graph.op import Array, Family, Op, as_variable
from esat.graph.types import MAXIMUM_RANK, TensorType, Type
from esat.graph.variables import Apply, Variable

Axis = int | Literal["x"]
Order = tuple[Axis, ...]
"""One entry an output axis: the input axis it shows, or ``"x"`` for a new axis of size 1."""


@record(frozen=True, eq=False, repr=False)
class DimShuffle(Op):
    """View an array with its axes permuted, new axes of size 1, and size-1 axes dropped.

    Attributes
    ----------
    order
        See :data:`Order`. Input axes it does not name are dropped; they must have size 1.
    input_rank
        Rank of the operand.
    """

    order: Order
    input_rank: int
    name, constructor, family = "dimshuffle", "DimShuffle", Family.VIEW
    typing = "dimshuffle"
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    @property
    def dropped(self) -> tuple[int, ...]:
        """Input axes that the order does not name."""
        return tuple(axis for axis in range(self.input_rank) if axis not in self.order)

    @property
    def is_identity(self) -> bool:
        """Whether the result is the operand, axis by axis."""
        return self.order == tuple(range(self.input_rank))

    @property
    def is_transpose(self) -> bool:
        """Whether the last two axes are exchanged and all others stay."""
        rank = self.input_rank
        return rank >= 2 and self.order == (*range(rank - 2), rank - 1, rank - 2)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        (operand,) = inputs
        shape = operand.tensor_type.shape
        if len(shape) != self.input_rank:
            raise ShapeError(describe(str(self), [operand.type], f"takes {self.input_rank} axes"))
        for axis in self.dropped:
            if shape[axis] not in (1, None):
                reason = f"axis {axis} of size {shape[axis]} cannot be dropped"
                raise ShapeError(describe(str(self), [operand.type], reason))
        kept = tuple(1 if axis == "x" else shape[int(axis)] for axis in self.order)
        return (TensorType(operand.tensor_type.dtype, shape=kept),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        for axis in self.dropped:
            if array.shape[axis] != 1:
                reason = f"axis {axis} of size {array.shape[axis]} cannot be dropped"
                raise ShapeError(describe(str(self), [array.shape], reason))
        kept = [int(axis) for axis in self.order if axis != "x"]
        squeezed = array.transpose(kept + list(self.dropped)).reshape(
            tuple(array.shape[axis] for axis in kept)
        )
        new_axes = tuple(position for position, axis in enumerate(self.order) if axis == "x")
        return (np.expand_dims(squeezed, new_axes),)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        shifted = [axis if axis == "x" else axis + 1 for axis in self.order]
        result: Variable = DimShuffle((0, *shifted), self.input_rank + 1)(inputs[0])
        return (result,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        inverse: Order = tuple(
            self.order.index(axis) if axis in self.order else "x" for axis in range(self.input_rank)
        )
        return [dimshuffle(cotangent, inverse)]

    def __str__(self) -> str:
        return f"dimshuffle{{{','.join(map(str, self.order))}}}"


def dimshuffle(operand: Any, order: Sequence[int | str]) -> Variable:
    """``operand`` with its axes in ``order``; see :class:`DimShuffle`.

    Raises
    ------
    AxisError
        For an axis out of range or named twice, or more than eight axes.
    """
    variable = as_variable(operand)
    rank = variable.tensor_type.ndim
    named = [axis for axis in order if axis != "x"]
    if any(not isinstance(axis, (int, np.integer)) or not -rank <= axis < rank for axis in named):
        raise AxisError(describe("dimshuffle", [variable.type], f"order {tuple(order)} names no axis of it"))
    normalized: Order = tuple("x" if axis == "x" else int(axis) % rank for axis in order)
    named = [axis for axis in normalized if axis != "x"]
    if len(set(named)) != len(named):
        raise AxisError(describe("dimshuffle", [variable.type], f"order {tuple(order)} names an axis twice"))
    if len(normalized) > MAXIMUM_RANK:
        raise AxisError(describe("dimshuffle", [variable.type], f"at most {MAXIMUM_RANK} axes"))
    op = DimShuffle(normalized, rank)
    if op.is_identity:
        return variable
    result: Variable = op(variable)
    return result
