"""Creation: arrays of a value, ranges, and matrices of ones on or below a diagonal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type, normalize_dtype
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.broadcasting import pad_rank
from esat.ops.cast import cast
from esat.ops.reduction import SUM, reduce, sum_to
from esat.ops.shape import as_size, known_size, size_of
from esat.records import record


@record(frozen=True, eq=False, repr=False)
class Alloc(Op):
    """A new array filled with a value that is broadcast to the given sizes: ``(value, *sizes)``.

    The value's axes of size 1 are stretched; the others must have the size asked for.
    """

    name: str = field(default="alloc", init=False)
    constructor: str = field(default="Alloc", init=False)
    family: Family = field(default=Family.CREATION, init=False)

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

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        rest: list[Variable | None] = [None] * (len(node.inputs) - 1)
        if cotangent is None:
            return [None, *rest]
        return [sum_to(cotangent, node.inputs[0].tensor_type.broadcastable), *rest]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        size = float(np.prod(outputs[0], dtype=np.float64))
        return Work(flops=0.0, bytes=size * itemsizes[-1], calls=1)


ALLOC = Alloc()


@record(frozen=True, eq=False, repr=False)
class ARange(Op):
    """The numbers ``start, start + step, ...`` below ``stop``, from three scalars.

    Attributes
    ----------
    dtype
        Of the operands and the result.
    """

    dtype: str
    name: str = field(default="arange", init=False)
    constructor: str = field(default="ARange", init=False)
    family: Family = field(default=Family.CREATION, init=False)

    def properties(self) -> tuple[object, ...]:
        return (self.dtype,)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        return tuple(cast(value, self.dtype) for value in inputs)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        if any(variable.tensor_type.ndim for variable in inputs):
            types = [variable.type for variable in inputs]
            raise ShapeError(describe(self.name, types, "start, stop and step are scalars"))
        known = [variable.data for variable in inputs if isinstance(variable, Constant)]
        length = self.perform(known)[0].size if len(known) == 3 else None
        return (TensorType(self.dtype, shape=(length,)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        bounds: list[Any] = [array[()] for array in inputs]
        if bounds[2] == 0:
            # NumPy says that something is too large, or divides by zero, as the dtype may be.
            raise ShapeError(describe(self.name, bounds, "the step is 0"))
        try:
            with np.errstate(all="ignore"):
                numbers: Array = np.arange(*bounds, dtype=self.dtype)
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            raise ShapeError(describe(self.name, bounds, str(error))) from error
        return (numbers,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None, None, None]
        numbers = arange(size_of(cotangent, 0), dtype=self.dtype)
        return [reduce(SUM, cotangent), None, reduce(SUM, op_named("mul")(cotangent, numbers))]


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
    family: Family = field(default=Family.CREATION, init=False)

    def properties(self) -> tuple[object, ...]:
        return (self.dtype,)

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


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Variable:
    """Numbers from ``start`` (0 when only one bound is given) up to but without ``stop``, as NumPy's.

    Parameters
    ----------
    start, stop, step
        Numbers or scalar Variables.
    dtype
        Of the result; by default NumPy's choice.

    Raises
    ------
    ShapeError
        For an operand that is no scalar, or a step of 0.
    """
    if stop is None:
        start, stop = 0, start
    values = (start, stop, step)
    if dtype is None:
        examples = [1 if type(v) is int else 1.0 if type(v) is float else _one(v) for v in values]
        dtype = np.arange(*examples).dtype
    target = normalize_dtype(dtype)
    if target.startswith("complex"):
        raise DtypeError(describe("arange", values, "complex numbers have no order"))
    if target == "bool":
        raise DtypeError(describe("arange", values, "booleans cannot be counted with"))
    result: Variable = ARange(target)(*values)
    return result


def _one(value: Any) -> Any:
    dtype = as_variable(value).tensor_type.numpy_dtype
    return np.ones((), dtype)[()]


def eye(rows: Any, columns: Any = None, k: Any = 0, dtype: Any = "float64") -> Variable:
    """A ``rows`` by ``columns`` matrix (by default square) with ones on diagonal ``k``, zeros elsewhere."""
    op = DiagonalMatrix("eye", "Eye", normalize_dtype(dtype))
    result: Variable = op(rows, rows if columns is None else columns, k)
    return result


def tri(rows: Any, columns: Any = None, k: Any = 0, dtype: Any = "float64") -> Variable:
    """A ``rows`` by ``columns`` matrix (by default square) with ones on and below diagonal ``k``."""
    op = DiagonalMatrix("tri", "Tri", normalize_dtype(dtype))
    result: Variable = op(rows, rows if columns is None else columns, k)
    return result
