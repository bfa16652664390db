"""Creation of arrays under NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import DtypeError, ShapeError, describe
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.creation import alloc, arange, eye, tri
from esat.ops.diagonal import diag
from esat.ops.dimshuffle import dimshuffle
from esat.ops.shape import size_of
from esat.ops.vectors import as_sizes

__all__ = [
    "alloc", "arange", "diag", "empty", "empty_like", "eye", "full", "full_like", "geomspace", "identity",
    "linspace", "logspace", "meshgrid", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def full(shape: Any, value: Any, dtype: Any = None) -> Variable:
    """A new array of ``shape``, filled with ``value`` (a number or Variable that broadcasts to it).

    Parameters
    ----------
    shape
        An integer, a sequence of integers and integer scalars, or an integer vector of known length.
    value
        What to fill it with.
    dtype
        By default that of the value.
    """
    filling = as_variable(value) if dtype is None else cast(value, dtype)
    return alloc(filling, *as_sizes("full", shape))


def zeros(shape: Any, dtype: Any = "float64") -> Variable:
    """A new array of ``shape`` filled with zeros."""
    return alloc(constant(0, dtype), *as_sizes("zeros", shape))


def empty(shape: Any, dtype: Any = "float64") -> Variable:
    """As :func:`zeros`: what NumPy leaves to chance is zero here."""
    return zeros(shape, dtype)


def ones(shape: Any, dtype: Any = "float64") -> Variable:
    """A new array of ``shape`` filled with ones."""
    return alloc(constant(1, dtype), *as_sizes("ones", shape))


def identity(n: Any, dtype: Any = "float64") -> Variable:
    """The square matrix of ``n`` rows with ones on its diagonal, zeros elsewhere."""
    return eye(n, dtype=dtype)


def full_like(model: Any, value: Any, dtype: Any = None) -> Variable:
    """An array of the shape of ``model`` filled with ``value``, in ``dtype`` or that of ``model``."""
    variable = as_variable(model)
    target = variable.tensor_type.dtype if dtype is None else normalize_dtype(dtype)
    filling = cast(value, target)
    filled: Variable = op_named("fill")(variable, filling)
    return filled


def zeros_like(model: Any, dtype: Any = None) -> Variable:
    """Zeros of the shape of ``model``, in ``dtype`` or that of ``model``."""
    return full_like(model, 0, dtype)


def empty_like(model: Any, dtype: Any = None) -> Variable:
    """As :func:`zeros_like`: what NumPy leaves to chance is zero here."""
    return zeros_like(model, dtype)


def ones_like(model: Any, dtype: Any = None) -> Variable:
    """Ones of the shape of ``model``, in ``dtype`` or that of ``model``."""
    return full_like(model, 1, dtype)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Variable:
    """``num`` numbers at equal distances from ``start`` to ``stop``, or one step short of it.

    Of arrays that broadcast against each other, the numbers stand along a new first axis.

    Raises
    ------
    ShapeError
        For a negative ``num``.
    DtypeError
        For a ``num`` that is no integer.
    """
    if not isinstance(num, (int, np.integer)):
        raise DtypeError(describe("linspace", [f"num={num!r}"], "the number of steps is an integer"))
    if num < 0:
        raise ShapeError(describe("linspace", [f"num={num}"], "the number of steps is negative"))
    add, sub, mul, div = (op_named(name) for name in ("add", "sub", "mul", "div"))
    first, last = mul(start, 1.0), mul(stop, 1.0)
    distance = div(sub(last, first), max(num - 1 if endpoint else num, 1))
    counted = cast(arange(num, dtype="int64"), distance.tensor_type.dtype)
    steps = dimshuffle(counted, (0, *["x"] * distance.tensor_type.ndim))
    numbers: Variable = add(mul(steps, distance), first)
    if endpoint and num > 1:
        # Rounding must not move the last number off the bound.
        numbers = op_named("switch")(op_named("eq")(steps, num - 1), last, numbers)
    return numbers if dtype is None else cast(numbers, dtype)


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None
) -> Variable:
    """``base`` to the powers that :func:`linspace` gives."""
    powers: Variable = op_named("pow")(base, linspace(start, stop, num, endpoint))
    return powers if dtype is None else cast(powers, dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Variable:
    """``num`` numbers in one ratio from ``start`` to ``stop``, real numbers of one sign that are not zero."""
    switch, eq = op_named("switch"), op_named("eq")
    first, last = op_named("mul")(start, 1.0), op_named("mul")(stop, 1.0)
    if "c" in (first.tensor_type.kind, last.tensor_type.kind):
        raise DtypeError(describe("geomspace", [first.type, last.type], "takes real numbers"))
    sign = op_named("sign")(first)
    lowest, highest = (op_named("log10")(op_named("div")(bound, sign)) for bound in (first, last))
    numbers = op_named("mul")(sign, logspace(lowest, highest, num, endpoint))
    steps = dimshuffle(arange(num), (0, *["x"] * (numbers.tensor_type.ndim - 1)))
    # Rounding must not move the ends off the bounds.
    numbers = switch(eq(steps, 0), first, numbers)
    if endpoint and num > 1:
        numbers = switch(eq(steps, num - 1), last, numbers)
    return numbers if dtype is None else cast(numbers, dtype)


def tril(matrix: Any, k: int = 0) -> Variable:
    """The matrices in the last two axes with zeros above diagonal ``k``; a vector is every row of one."""
    variable = _matrices("tril", matrix)
    return _masked(variable, _triangle(variable, k), keep=True)


def triu(matrix: Any, k: int = 0) -> Variable:
    """The matrices in the last two axes with zeros below diagonal ``k``; a vector is every row of one."""
    variable = _matrices("triu", matrix)
    return _masked(variable, _triangle(variable, k - 1), keep=False)


def _matrices(name: str, value: Any) -> Variable:
    variable = as_variable(value)
    if variable.tensor_type.ndim == 0:
        raise ShapeError(describe(name, [variable.type], "takes an array of at least one axis"))
    if variable.tensor_type.ndim == 1:
        size = size_of(variable, 0)
        return alloc(variable, size, size)
    return variable


def _triangle(variable: Variable, k: int) -> Variable:
    rank = variable.tensor_type.ndim
    mask = tri(size_of(variable, rank - 2), size_of(variable, rank - 1), k, "bool")
    return dimshuffle(mask, (*["x"] * (rank - 2), 0, 1))


def _masked(variable: Variable, mask: Variable, keep: bool) -> Variable:
    zero = constant(0, variable.tensor_type.dtype)
    choices = (variable, zero) if keep else (zero, variable)
    masked: Variable = op_named("switch")(mask, *choices)
    return masked


def meshgrid(*vectors: Any, indexing: str = "xy") -> list[Variable]:
    """One array for each vector, all of the shape of the grid, that varies along its own axis only.

    Raises
    ------
    ShapeError
        For operands of more than one axis, or another ``indexing`` than ``"xy"`` and ``"ij"``.
    """
    variables = [as_variable(vector) for vector in vectors]
    if indexing not in ("xy", "ij") or any(variable.tensor_type.ndim != 1 for variable in variables):
        types = [variable.type for variable in variables]
        raise ShapeError(describe("meshgrid", types, 'takes vectors, and indexing "xy" or "ij"'))
    order = list(range(len(variables)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    sizes = [size_of(variables[position], 0) for position in order]
    return [
        alloc(dimshuffle(variable, [0 if place == own else "x" for place in order]), *sizes)
        for own, variable in enumerate(variables)
    ]
