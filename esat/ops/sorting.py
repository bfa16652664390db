"""Sorting along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.errors import AxisError, describe
from esat.graph.op import Array, Family, Op, Work, as_variable
from esat.graph.types import Type
from esat.graph.variables import Apply, Variable
from esat.ops.axes import normalize_axis
from esat.ops.index.along import set_along_axis
from esat.ops.index.basic import zeros_like
from esat.ops.view import flatten


@dataclass(frozen=True, eq=False, repr=False)
class Sort(Op):
    """``sort``: the elements along an axis in ascending order, or ``argsort``: where they stood.

    NaN comes last. Equal elements keep their order (NumPy's ``kind="stable"``).

    Attributes
    ----------
    name
        ``sort`` or ``argsort``.
    axis
        Non-negative.
    """

    name: str
    constructor: str
    axis: int
    family: Family = field(default=Family.LIBRARY, init=False)

    def properties(self) -> tuple[object, ...]:
        return (self.axis,)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        if not 0 <= self.axis < source.ndim:
            raise AxisError(describe(str(self), [source], f"there is no axis {self.axis}"))
        return (source if self.name == "sort" else source.with_dtype("int64"),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        if self.name == "sort":
            return (np.sort(inputs[0], axis=self.axis, kind="stable"),)
        return (np.argsort(inputs[0], axis=self.axis, kind="stable").astype(np.int64, copy=False),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if self.name == "argsort" or cotangent is None:
            return [None]
        (operand,) = node.inputs
        places = argsort(operand, self.axis)
        return [set_along_axis(zeros_like(operand), places, cotangent, self.axis)]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        comparisons = general.flops * np.log2(max(inputs[0][self.axis], 2))
        return Work(flops=2.0 * float(comparisons), bytes=general.bytes, calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{{self.axis}}}"


def sort(operand: Any, axis: Any = -1) -> Variable:
    """The elements in ascending order along ``axis``; None sorts all of them as a vector."""
    return _sorted("sort", "Sort", operand, axis)


def argsort(operand: Any, axis: Any = -1) -> Variable:
    """The int64 places of the elements in ascending order along ``axis``, equal ones in their order."""
    return _sorted("argsort", "ArgSort", operand, axis)


def _sorted(name: str, constructor: str, operand: Any, axis: Any) -> Variable:
    variable = as_variable(operand)
    if axis is None:
        variable, axis = flatten(variable), 0
    index = normalize_axis(name, axis, variable.tensor_type.ndim)
    result: Variable = Sort(name, constructor, index)(variable)
    return result
