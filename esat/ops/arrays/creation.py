"""Creation: arrays of a value, ranges, and matrices of ones on or below a diagonal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type, normalize_dtype
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.shape import as_size, folded, known_size, size_of
from esat.ops.cast import cast
from esat.ops.inference.broadcasting import pad_rank
from esat.ops.reduction import SUM, reduce, sum_to

FARTHEST = 2**62
"""Diagonals this far from the main one lie outside every matrix; int64 may not hold how far others are."""


@record(frozen=True, eq=False, repr=False)
class Alloc(Op):
    """A new array filled with a value that is broadcast to the given sizes: ``(value, *sizes)``.

    The value's axes of size 1 are stretched; the others must have the size asked for.
    """

    name, constructor, family = "alloc", "Alloc", Family.CREATION

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        value = as_variable(inputs[0])
        sizes = tuple(as_size(self.name, size) for size in inputs[1:])
        if value.tensor_type.ndim > len(sizes):
            reason = f"a value of {value.tensor_type.ndim} axes cannot fill an array of {len(sizes)}"
            raise ShapeError(describe(self.name, [value.type], reason))
        return (pad_rank(value, len(sizes)), *sizes)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        value, *sizes = inputs
        source = value.tensor_type
        shape: list[int | None] = []
        for axis, (given, wanted) in enumerate(zip(source.shape, map(known_size, sizes), strict=True)):
            if wanted is not None and wanted < 0:
                raise ShapeError(describe(self.name, [f"size {wanted}"], "a size cannot be negative"))
            if wanted is not None and given not in (1, None, wanted):
                reason = f"size {given} of axis {axis} cannot become {wanted}"
                raise ShapeError(describe(self.name, [source], reason))
            shape.append(given if given not in (1, None) and wanted is None else wanted)
        return (source.with_shape(tuple(shape)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        value, *sizes = inputs
        shape = tuple(int(size) for size in sizes)
        try:
            result = np.empty(shape, dtype=value.dtype)
            result[...] = value
        except ValueError as error:
            reason = f"cannot fill an array of shape {shape}"
            raise ShapeError(describe(self.name, [f"shape {value.shape}"], reason)) from error
        return (result,)

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        value, *sizes = operands
        flags = node.inputs[0].tensor_type.broadcastable
        for given, wanted, stretched in zip(value.shape, sizes, flags, strict=True):
            if given != int(wanted) and not stretched:
                shape = tuple(int(size) for size in sizes)
                reason = (
                    f"cannot fill an array of shape {shape}; only axes known to have size 1 are stretched"
                )
                raise ShapeError(describe(self.name, [f"shape {value.shape}"], reason, node.where))

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        value, *sizes = inputs
        if any(batched[1:]):
            return super().batch(node, inputs, batched)
        return tuple(self.make_node(value, size_of(value, 0), *sizes).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        rest: list[Variable | None] = [None] * (len(node.inputs) - 1)
        if cotangent is None:
            return [None, *rest]
        return [sum_to(cotangent, node.inputs[0].tensor_type.broadcastable), *rest]

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=0.0, bytes=size * itemsizes[-1], calls=1)


ALLOC = Alloc()


@record(frozen=True, eq=False, repr=False)
class ARange(Op):
    """The numbers ``start, start + step, ...`` below ``stop``, from three scalars.

    The scalars keep their own dtypes: how many numbers there are is counted before they are cast.

    Attributes
    ----------
    dtype
        Of the result.
    """

    dtype: str
    name, constructor, family = "arange", "ARange", Family.CREATION
    host_only = "numbers that the host counts up, as NumPy rounds them"

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        types = [variable.tensor_type for variable in inputs]
        if any(type.ndim for type in types):
            raise ShapeError(describe(self.name, types, "start, stop and step are scalars"))
        if any(type.kind == "c" for type in types):
            raise DtypeError(describe(self.name, types, "complex numbers have no order"))
        known = [variable.data for variable in inputs if isinstance(variable, Constant)]
        length = self._length(_bounds(known)) if len(known) == 3 else None
        return (TensorType(self.dtype, shape=(length,)),)

    def _length(self, bounds: Sequence[Any]) -> int:
        """How many numbers there are, by NumPy's formula."""
        start, stop, step = bounds
        if step == 0:
            raise ShapeError(describe(self.name, bounds, "the step is 0"))
        try:
            with np.errstate(all="ignore"):
                length: int = max(0, math.ceil((stop - start) / step))
        except (ValueError, OverflowError) as error:
            raise ShapeError(describe(self.name, bounds, "the numbers cannot be counted")) from error
        if length > np.iinfo(np.intp).max // 16:
            raise ShapeError(describe(self.name, bounds, f"{length} numbers are too many for an array"))
        if self.dtype == "bool" and length > 2:
            raise DtypeError(describe(self.name, bounds, f"there are no {length} booleans to count with"))
        return length

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        bounds = _bounds(inputs)
        self._length(bounds)
        try:
            with np.errstate(all="ignore"):
                numbers: Array = np.arange(*bounds, dtype=self.dtype)
        except (ValueError, OverflowError, MemoryError) as error:
            raise ShapeError(describe(self.name, bounds, str(error))) from error
        return (numbers,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None or cotangent.tensor_type.kind not in "fc":
            return [None, None, None]
        numbers = arange(size_of(cotangent, 0), dtype=self.dtype)
        by_start, by_step = cotangent, op_named("mul")(cotangent, numbers)
        start, step = (
            cast(reduce(SUM, part), operand.tensor_type.dtype) if operand.tensor_type.kind == "f" else None
            for part, operand in ((by_start, node.inputs[0]), (by_step, node.inputs[2]))
        )
        return [start, None, step]


def _bounds(scalars: Sequence[Array]) -> list[Any]:
    """Scalars as numbers: integers of Python's, which do not wrap around, and floats of their own dtypes."""
    return [scalar[()] if scalar.dtype.kind == "f" else int(scalar) for scalar in scalars]


@record(frozen=True, eq=False, repr=False)
class DiagonalMatrix(Op):
    """A matrix made from ``(rows, columns, k)``: ``eye`` with ones on diagonal ``k``, or ``tri`` with ones
    on and below it.

    Attributes
    ----------
    name
        ``eye`` or ``tri``.
    dtype
        Of the result.
    """

    name: str
    constructor: str
    dtype: str
    family = Family.CREATION

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return tuple(as_size(self.name, value) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        sizes = [known_size(variable) for variable in inputs[:2]]
        if any(size is not None and size < 0 for size in sizes):
            raise ShapeError(describe(self.name, sizes, "a size cannot be negative"))
        return (TensorType(self.dtype, shape=tuple(sizes)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        rows, columns, diagonal = (int(array) for array in inputs)
        function: Callable[..., Array] = np.eye if self.name == "eye" else np.tri
        try:
            return (function(rows, columns, diagonal, dtype=self.dtype),)
        except ValueError as error:
            raise ShapeError(describe(self.name, [rows, columns, diagonal], str(error))) from error

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None, None, None]

    def __str__(self) -> str:
        return f"{self.name}{{{self.dtype}}}"


def alloc(value: Any, *sizes: Any) -> Variable:
    """A new array of the given sizes, filled with ``value`` (broadcast to them).

    Raises
    ------
    ShapeError
        When the value has more axes than sizes are given, or an axis that cannot be stretched.
    """
    result: Variable = ALLOC(value, *sizes)
    return result


def arange(
    start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None
) -> Variable:
    """Numbers from ``start`` (0 when only one bound is given) up to but without ``stop``, as NumPy's.

    Parameters
    ----------
    start, stop, step
        Numbers or scalar Variables; integers of any dtype do not wrap around.
    dtype
        Of the result; by default NumPy's choice.
    device
        None or "cpu".

    Raises
    ------
    ShapeError
        For an operand that is no scalar, a step of 0, or more numbers than an array can hold.
    DtypeError
        For a bound that is no real number.
    """
    check_device("arange", device)
    if start is None and stop is None:
        raise DtypeError(describe("arange", [], "takes a bound"))
    if start is None or stop is None:
        start, stop = 0, stop if start is None else start
    values = (start, stop, step)
    if dtype is None:
        dtype = np.arange(*map(_one, values)).dtype
    known = [folded(value) if isinstance(value, Variable) else value for value in values]
    result: Variable = ARange(normalize_dtype(dtype))(*known)
    return result


def _one(value: Any) -> Any:
    """A number of the kind and dtype of a bound, whose range of integers of Python's is that of int64."""
    if type(value) in (int, float):
        return 1 if type(value) is int and abs(value) < 2**63 else 1.0
    return np.ones((), as_variable(value).tensor_type.numpy_dtype)[()]


def check_device(name: str, device: Any) -> None:
    """See that an array is asked for where arrays are: None or "cpu".

    Raises
    ------
    ParameterError
        For another device.
    """
    if device is not None and device != "cpu":
        raise ParameterError(describe(name, [f"device={device!r}"], "arrays are on the device cpu"))


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Variable:  # noqa: N803
    """An ``N`` by ``M`` matrix (by default square) with ones on diagonal ``k``, zeros elsewhere."""
    check_device("eye", device)
    return _diagonal_matrix("eye", "Eye", N, M, k, dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Variable:  # noqa: N803
    """An ``N`` by ``M`` matrix (by default square) with ones on and below diagonal ``k``."""
    return _diagonal_matrix("tri", "Tri", N, M, k, dtype)


def _diagonal_matrix(name: str, constructor: str, rows: Any, columns: Any, k: Any, dtype: Any) -> Variable:
    op = DiagonalMatrix(name, constructor, "float64" if dtype is None else normalize_dtype(dtype))
    if isinstance(k, int):
        k = max(-FARTHEST, min(k, FARTHEST))
    result: Variable = op(rows, rows if columns is None else columns, k)
    return result
