"""Places in sorted vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from esat.base.records import record
from esat.errors import ParameterError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.inference.promotion import common_dtype

Side = Literal["left", "right"]


@record(frozen=True, eq=False, repr=False)
class SearchSorted(Op):
    """Where values would be inserted into an ascending vector; int64, of the shape of the values.

    Attributes
    ----------
    side
        Whether a value goes before (``left``) or after (``right``) elements equal to it.
    """

    side: Side
    name, constructor, family = "searchsorted", "SearchSorted", Family.LIBRARY

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        dtype = common_dtype(self.name, inputs)
        return tuple(cast(as_variable(value), dtype) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        if inputs[0].tensor_type.ndim != 1:
            types = [variable.type for variable in inputs]
            raise ShapeError(describe(self.name, types, "the sorted elements are a vector"))
        return (TensorType("int64", shape=inputs[1].tensor_type.shape),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.asarray(np.searchsorted(inputs[0], inputs[1], side=self.side), np.int64),)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        if not batched[0]:
            return tuple(self.make_node(*inputs).outputs)
        if inputs[0].tensor_type.kind == "c":
            return super().batch(node, inputs, batched)
        # How many elements are before each value, NaN being after all others.
        elements, values = inputs
        rank = values.tensor_type.ndim - batched[1]
        places = range(batched[1], values.tensor_type.ndim)
        elements = dimshuffle(elements, (0, *["x"] * rank, 1))
        values = dimshuffle(values, (0 if batched[1] else "x", *places, "x"))
        before = op_named("lt" if self.side == "left" else "le")(elements, values)
        if elements.tensor_type.kind == "f":
            nan = op_named("isnan")
            after_all = nan(values) & ~nan(elements) if self.side == "left" else nan(values)
            before = before | after_all
        return (before.sum(axis=-1),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None, None]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=8.0 * size * float(np.log2(max(inputs[0][0], 2))), bytes=general.bytes, calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{{self.side}}}"


def searchsorted(a: Any, v: Any, side: Side = "left", sorter: Any = None) -> Variable:
    """Where ``v`` would be inserted into the ascending vector ``a`` to keep its order; int64.

    Parameters
    ----------
    a
        A vector; NaN counts as largest.
    v
        Values, of any shape.
    side
        ``"left"`` for the first place that does, ``"right"`` for the last.
    sorter
        Places that sort ``a``, as :func:`esat.argsort` gives them, where it is not sorted.

    Raises
    ------
    ParameterError
        For another ``side``.
    ShapeError
        When ``a`` is no vector.
    """
    if side not in ("left", "right"):
        raise ParameterError(describe("searchsorted", [f"side={side!r}"], "a side is left or right"))
    vector = as_variable(a)
    places: Variable = SearchSorted(side)(vector if sorter is None else vector[sorter], v)
    return places
