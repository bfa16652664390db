"""Convolution of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import ShapeError, describe
from esat.graph.constants import constant
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.join import Join
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.contraction import MATMUL
from esat.ops.control import assert_
from esat.ops.index.basic import subtensor
from esat.ops.inference.batching import bilinear
from esat.ops.inference.promotion import common_dtype


@record(frozen=True, eq=False, repr=False)
class Convolution(Op):
    """``out[k] = sum(a[i] * v[k - i])``: vectors of ``n`` and ``m`` elements give one of ``n + m - 1``."""

    name, constructor, family = "convolve", "Convolve", Family.LIBRARY

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        dtype = common_dtype(self.name, inputs)
        return tuple(cast(as_variable(value), dtype) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if any(type.ndim != 1 for type in types):
            raise ShapeError(describe(self.name, types, "takes two vectors"))
        sizes = [type.shape[0] for type in types]
        if 0 in sizes:
            raise ShapeError(describe(self.name, types, "a vector without elements"))
        known = [size for size in sizes if size is not None]
        return (TensorType(types[0].dtype, shape=(sum(known) - 1 if len(known) == 2 else None,)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        if 0 in (inputs[0].size, inputs[1].size):
            shown = [f"shape {array.shape}" for array in inputs]
            raise ShapeError(describe(self.name, shown, "a vector without elements"))
        with np.errstate(all="ignore"):
            return (np.convolve(inputs[0], inputs[1]),)

    def jvp(self, node: Apply, tangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [bilinear(self, node, tangents)]

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None]
        left, right = node.inputs
        return [_correlated(cotangent, right, left), _correlated(cotangent, left, right)]

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        """All windows of one vector, as long as the other, times that one."""
        sizes = [variable.tensor_type.shape[-1] for variable in inputs]
        shorter_first = None not in sizes and (sizes[0] or 0) < (sizes[1] or 0)
        swapped = batched[1] and (not batched[0] or shorter_first)
        (values, other), flags = (inputs, batched) if not swapped else (inputs[::-1], batched[::-1])
        size, count = size_of(values, 1), size_of(other, int(flags[1]))
        if None in sizes:
            message = "convolve: a vector without elements"
            values = assert_(values, size > 0, count > 0, message=message, error=ShapeError)
        around = op_named("alloc")(constant(0, values.tensor_type.dtype), size_of(values, 0), count - 1)
        padded = Join(1)(around, values, around)
        places = dimshuffle(arange(size + count - 1), (0, "x")) + arange(count - 1, -1, -1)
        windows = padded[:, places]
        if flags[1]:
            return ((windows * dimshuffle(other, (0, "x", 1))).sum(axis=-1, dtype=other.tensor_type.dtype),)
        return (MATMUL(windows, dimshuffle(other, (0, "x")))[..., 0],)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        return Work(flops=2.0 * inputs[0][0] * inputs[1][0], bytes=general.bytes, calls=1)


CONVOLUTION = Convolution()


def _correlated(cotangent: Variable, other: Variable, operand: Variable) -> Variable:
    """``sum(cotangent[i + k] * other[k])`` for every place ``i`` of the operand."""
    whole: Variable = CONVOLUTION(cotangent, subtensor(other, (slice(None, None, -1),)))
    before = op_named("sub")(size_of(other, 0), 1)
    return subtensor(whole, (slice(before, op_named("add")(before, size_of(operand, 0))),))
