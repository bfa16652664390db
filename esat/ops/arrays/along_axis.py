"""Ops that treat each line of an array along one axis by itself: sorting, running sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.base.records import record
from esat.errors import AxisError, describe
from esat.graph.op import Family, Op, as_variable
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.view import flatten
from esat.ops.inference.axes import normalize_axis


@record(frozen=True, eq=False, repr=False)
class AlongAxis(Op):
    """An op on one operand whose result has the operand's shape.

    Attributes
    ----------
    name, constructor
        Of the one of its family that it is.
    axis
        Non-negative.
    """

    name: str
    constructor: str
    axis: int
    family = Family.LIBRARY

    def result_type(self, source: TensorType) -> TensorType:
        """The type of the result, by default that of the operand."""
        return source

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        if not 0 <= self.axis < source.ndim:
            raise AxisError(describe(str(self), [source], f"there is no axis {self.axis}"))
        return (self.result_type(source),)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        moved = type(self)(self.name, self.constructor, self.axis + 1)
        return tuple(moved.make_node(*inputs).outputs)

    def __str__(self) -> str:
        return f"{self.name}{{{self.axis}}}"


def apply_along(
    op: type[AlongAxis], name: str, constructor: str, operand: Any, axis: Any, scalar_axis: bool = False
) -> Variable:
    """Apply an op along ``axis``, from the end if negative; None applies it to the flattened operand.

    Where ``scalar_axis``, an operand without axes is a vector of one element.
    """
    variable = as_variable(operand)
    if axis is None:
        variable, axis = flatten(variable), 0
    elif scalar_axis and variable.tensor_type.ndim == 0:
        variable = flatten(variable)
    index = normalize_axis(name, axis, variable.tensor_type.ndim)
    result: Variable = op(name, constructor, index)(variable)
    return result
