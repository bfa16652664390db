"""Discrete Fourier transforms along the last axis, by NumPy's library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.join import join
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast

_COMPLEX = {"float16": "complex64", "float32": "complex64", "complex64": "complex64"}
_REAL = {"complex64": "float32", "complex128": "float64"}
KINDS = ("fft", "ifft", "rfft", "irfft")


@record(frozen=True, eq=False, repr=False)
class Fourier(Op):
    """A transform of each line along the last axis, in NumPy's scale: inverse ones divide by the size.

    Attributes
    ----------
    name, constructor
        ``fft`` and ``ifft`` are of complex numbers; ``rfft`` of real ones, of which it gives half of the
        frequencies; ``irfft`` turns these into real numbers.
    size
        Of the result of ``irfft``.
    """

    name: str
    constructor: str
    size: int | None = None
    variants = MappingProxyType({name.capitalize(): name for name in KINDS})
    family = Family.LIBRARY

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operand = as_variable(inputs[0])
        dtype = operand.tensor_type.dtype
        if self.name == "rfft":
            if operand.tensor_type.kind == "c":
                raise DtypeError(describe(self.name, [operand.type], "takes real numbers"))
            return (cast(operand, _REAL[_COMPLEX.get(dtype, "complex128")]),)
        return (cast(operand, _COMPLEX.get(dtype, "complex128")),)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        if source.ndim == 0 or source.shape[-1] == 0:
            raise ShapeError(
                describe(self.name, [source], "takes arrays of one axis or more, of some elements")
            )
        last, dtype = source.shape[-1], source.dtype
        if self.name == "rfft":
            last, dtype = None if last is None else last // 2 + 1, _COMPLEX.get(dtype, "complex128")
        elif self.name == "irfft":
            last, dtype = self.size, _REAL[dtype]
        return (TensorType(dtype, shape=(*source.shape[:-1], last)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        (array,) = inputs
        if array.shape[-1] == 0:
            raise ShapeError(describe(self.name, [f"shape {array.shape}"], "there is nothing to transform"))
        function: Callable[..., Array] = getattr(np.fft, self.name)
        with np.errstate(all="ignore"):
            return (function(array, self.size),)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        """The transform of the cotangent: the matrix of one is symmetric."""
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        if self.name in ("fft", "ifft"):
            return [self(cotangent)]
        if self.name == "rfft":
            return [self._of_real(node.inputs[0], cotangent)]
        return [self._of_half(node.inputs[0], cotangent)]

    def _of_real(self, operand: Variable, cotangent: Variable) -> Variable:
        """Of half of the frequencies, as if the others had none; numbers that are real have real ones."""
        size = size_of(operand, -1)
        rest = op_named("sub")(size, size_of(cotangent, -1))
        shape = [size_of(cotangent, axis) for axis in range(cotangent.tensor_type.ndim - 1)]
        zeros = op_named("alloc")(cast(0, cotangent.tensor_type.dtype), *shape, rest)
        whole = join([cotangent, zeros], -1)
        result: Variable = op_named("real")(Fourier("fft", "Fft")(whole))
        return cast(result, operand.tensor_type.dtype)

    def _of_half(self, operand: Variable, cotangent: Variable) -> Variable:
        """Frequencies stand for themselves and for their mirror images, but for the first and a last one."""
        assert self.size is not None
        weights = np.full(self.size // 2 + 1, 2.0 / self.size)
        weights[0] /= 2
        if self.size % 2 == 0:
            weights[-1] /= 2
        dtype = operand.tensor_type.dtype
        parts = op_named("conj")(Fourier("rfft", "Rfft")(cotangent))
        result: Variable = op_named("mul")(parts, weights.astype(_REAL[dtype]))
        return cast(result, dtype)

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=5.0 * size * float(np.log2(max(outputs[0][-1], 2))), bytes=general.bytes, calls=1)


FFT, IFFT, RFFT = (Fourier(name, name.capitalize()) for name in ("fft", "ifft", "rfft"))


def irfft(operand: Variable, size: int) -> Variable:
    """The real numbers of a size that half of the frequencies are of."""
    result: Variable = Fourier("irfft", "Irfft", size)(operand)
    return result
