"""Sorting along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from esat.base.records import record
from esat.errors import ParameterError, describe
from esat.graph.op import Array, Op, Shapes, Work
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.along_axis import AlongAxis, apply_along
from esat.ops.index.along import set_along_axis
from esat.ops.index.basic import zeros_like

Kind = Literal["quicksort", "mergesort", "heapsort", "stable"] | None
"""NumPy's names of ways to sort."""


@record(frozen=True, eq=False, repr=False)
class Sort(AlongAxis):
    """``sort``: the elements along an axis in ascending order, or ``argsort``: where they stood.

    NaN comes last. Equal elements keep their order (NumPy's ``kind="stable"``).
    """

    variants = MappingProxyType({"Sort": "sort", "ArgSort": "argsort"})

    def result_type(self, source: TensorType) -> TensorType:
        return source if self.name == "sort" else source.with_dtype("int64")

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

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        comparisons = general.flops * np.log2(max(inputs[0][self.axis], 2))
        return Work(flops=2.0 * float(comparisons), bytes=general.bytes, calls=1)


def sort(a: Any, axis: Any = -1, kind: Kind = None, *, stable: bool | None = None) -> Variable:
    """The elements in ascending order along ``axis``; None sorts all of them as a vector.

    Every ``kind`` is the stable one, and ``stable`` means nothing.
    """
    _check_kind("sort", kind, stable)
    return apply_along(Sort, "sort", "Sort", a, axis)


def argsort(a: Any, axis: Any = -1, kind: Kind = None, *, stable: bool | None = None) -> Variable:
    """The int64 places of the elements in ascending order along ``axis``, equal ones in their order.

    Every ``kind`` is the stable one, and ``stable`` means nothing.
    """
    _check_kind("argsort", kind, stable)
    return apply_along(Sort, "argsort", "ArgSort", a, axis, scalar_axis=True)


def _check_kind(name: str, kind: Kind, stable: bool | None) -> None:
    known = get_args(get_args(Kind)[0])
    if kind is not None and kind not in known:
        raise ParameterError(describe(name, [f"kind={kind!r}"], f"a kind is one of {', '.join(known)}"))
    if kind is not None and stable is not None:
        shown = [f"kind={kind!r}", f"stable={stable!r}"]
        raise ParameterError(describe(name, shown, "takes one of the two"))
