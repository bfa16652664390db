"""Creation of arrays under NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.frontend.arrays.shaping import broadcast_arrays
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.calls.callers import user_line
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import alloc, arange, check_device, eye, tri
from esat.ops.arrays.diagonal import diag
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import as_size, size_of
from esat.ops.arrays.view import flatten, moveaxis
from esat.ops.cast import cast
from esat.ops.inference.promotion import common_dtype, is_weak
from esat.ops.inference.vectors import as_sizes

__all__ = [
    "alloc", "arange", "diag", "empty", "empty_like", "eye", "full", "full_like", "geomspace", "identity",
    "linspace", "logspace", "meshgrid", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Variable:
    """A new array of ``shape``, filled with ``fill_value`` (a number or Variable that broadcasts to it).

    Parameters
    ----------
    shape
        An integer, a sequence of integers and integer scalars, or an integer vector of known length.
    fill_value
        What to fill it with.
    dtype
        By default that of the value.
    device
        None or "cpu".
    """
    check_device("full", device)
    filling = as_variable(fill_value) if dtype is None else cast(fill_value, dtype)
    return alloc(filling, *as_sizes("full", shape))


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Variable:
    """A new array of ``shape`` filled with zeros, by default of float64."""
    return _filled("zeros", shape, 0, dtype, device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Variable:
    """As :func:`zeros`: what NumPy leaves to chance is zero here."""
    return _filled("empty", shape, 0, dtype, device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Variable:
    """A new array of ``shape`` filled with ones, by default of float64."""
    return _filled("ones", shape, 1, dtype, device)


def _filled(name: str, shape: Any, value: int, dtype: Any, device: Any) -> Variable:
    check_device(name, device)
    return alloc(constant(value, _dtype(dtype)), *as_sizes(name, shape))


def _dtype(dtype: Any) -> str:
    """A dtype, float64 for None, as NumPy takes it where nothing else says one."""
    return "float64" if dtype is None else normalize_dtype(dtype)


def identity(n: Any, dtype: Any = None) -> Variable:
    """The square matrix of ``n`` rows with ones on its diagonal, zeros elsewhere."""
    return eye(n, dtype=dtype)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None, device: Any = None
) -> Variable:
    """An array of the shape of ``a`` (or of ``shape``) filled with a value, in ``dtype`` or that of ``a``."""
    check_device("full_like", device)
    variable = as_variable(a)
    filling = cast(fill_value, variable.tensor_type.dtype if dtype is None else dtype)
    if shape is not None:
        return alloc(filling, *as_sizes("full_like", shape))
    filled: Variable = op_named("fill")(variable, filling)
    return filled


def zeros_like(a: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Variable:
    """Zeros of the shape of ``a``, or of ``shape``, in ``dtype`` or that of ``a``."""
    return full_like(a, 0, dtype, shape=shape, device=device)


def empty_like(prototype: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Variable:
    """As :func:`zeros_like`: what NumPy leaves to chance is zero here."""
    return full_like(prototype, 0, dtype, shape=shape, device=device)


def ones_like(a: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Variable:
    """Ones of the shape of ``a``, or of ``shape``, in ``dtype`` or that of ``a``."""
    return full_like(a, 1, dtype, shape=shape, device=device)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``num`` numbers at equal distances from ``start`` to ``stop``, or one step short of it.

    Parameters
    ----------
    start, stop
        Numbers, or arrays that broadcast against each other.
    num
        How many.
    endpoint
        Whether ``stop`` is the last of them.
    retstep
        Whether to return a pair: the numbers, and their distance.
    dtype
        Of the numbers; those of an integer dtype are rounded down.
    axis
        The axis of the result along which they stand.
    device
        None or "cpu".

    Raises
    ------
    ShapeError
        For a negative ``num``.
    DtypeError
        For a ``num`` that is no integer.
    """
    check_device("linspace", device)
    numbers, distance = _spaced("linspace", start, stop, num, endpoint)
    if dtype is not None:
        if np.dtype(normalize_dtype(dtype)).kind in "iu":
            numbers = op_named("floor")(numbers)
        numbers = cast(numbers, dtype)
    numbers = moveaxis(numbers, 0, axis)
    return (numbers, distance) if retstep else numbers


def _spaced(name: str, start: Any, stop: Any, num: int, endpoint: bool) -> tuple[Variable, Variable]:
    """Numbers at equal distances along a new first axis, and their distance, NaN where there is none."""
    given = num
    if isinstance(num, Variable):
        size = as_size(name, num)
        is_known = all(isinstance(one, Constant) for one in inputs_of([size]))
        num = int(evaluate(size)) if is_known else None
    if not isinstance(num, (int, np.integer)):
        reason = "the number of steps is an integer that is known, not one that is computed of arrays"
        raise DtypeError(describe(name, [f"num={given}"], reason, user_line()))
    if num < 0:
        raise ShapeError(describe(name, [f"num={num}"], "the number of steps is negative"))
    add, sub, mul, div = (op_named(name) for name in ("add", "sub", "mul", "div"))
    computed = common_dtype(name, [start, stop])
    if np.dtype(computed).kind not in "fc":
        computed = "float64"
    first, last = cast(start, computed), cast(stop, computed)
    steps_between = num - 1 if endpoint else num
    difference = sub(last, first)
    distance = div(difference, max(steps_between, 1))
    counted = cast(arange(num, dtype="int64"), distance.tensor_type.dtype)
    steps = dimshuffle(counted, (0, *["x"] * distance.tensor_type.ndim))
    numbers: Variable = add(mul(steps, distance), first)
    if endpoint and num > 1:
        # Rounding must not move the last number off the bound.
        numbers = op_named("switch")(op_named("eq")(steps, num - 1), last, numbers)
    if steps_between <= 0:
        distance = op_named("fill")(distance, constant(np.nan, distance.tensor_type.dtype))
    return numbers, distance


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
    axis: int = 0,
) -> Variable:  # fmt: skip
    """``base``, which may be an array, to the powers that :func:`linspace` gives."""
    bases = as_variable(base) if not is_weak(base) else base
    if isinstance(bases, Variable) and bases.tensor_type.ndim:
        first, last, _ = broadcast_arrays(start, stop, bases)
        exponents = _spaced("logspace", first, last, num, endpoint)[0]
    else:
        exponents = _spaced("logspace", start, stop, num, endpoint)[0]
    powers: Variable = op_named("pow")(bases, exponents)
    return moveaxis(powers if dtype is None else cast(powers, dtype), 0, axis)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Variable:
    """``num`` numbers in one ratio from ``start`` to ``stop``, real numbers of one sign that are not zero."""
    switch, eq = op_named("switch"), op_named("eq")
    first, last = as_variable(start), as_variable(stop)
    if "c" in (first.tensor_type.kind, last.tensor_type.kind):
        raise DtypeError(describe("geomspace", [first.type, last.type], "takes real numbers"))
    first, last = cast(first, "float64"), cast(last, "float64")
    sign = op_named("sign")(first)
    lowest, highest = (op_named("log10")(op_named("div")(bound, sign)) for bound in (first, last))
    numbers = op_named("mul")(sign, logspace(lowest, highest, num, endpoint))
    steps = dimshuffle(arange(num), (0, *["x"] * (numbers.tensor_type.ndim - 1)))
    # Rounding must not move the ends off the bounds.
    numbers = switch(eq(steps, 0), first, numbers)
    if endpoint and num > 1:
        numbers = switch(eq(steps, num - 1), last, numbers)
    return moveaxis(numbers if dtype is None else cast(numbers, dtype), 0, axis)


def tril(m: Any, k: int = 0) -> Variable:
    """The matrices in the last two axes with zeros above diagonal ``k``; a vector is every row of one."""
    variable = _matrices("tril", m)
    return _masked(variable, _triangle(variable, k), keep=True)


def triu(m: Any, k: int = 0) -> Variable:
    """The matrices in the last two axes with zeros below diagonal ``k``; a vector is every row of one."""
    variable = _matrices("triu", m)
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


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Variable, ...]:
    """One array for each vector, of the shape of the grid, that varies along its own axis only.

    Parameters
    ----------
    xi
        Vectors; of other arrays all elements.
    copy
        Means nothing: results are Variables of their own.
    sparse
        Whether the arrays have size 1 along all axes but their own.
    indexing
        "xy", where the first vector varies along the second axis, and the second along the first; or "ij".

    Raises
    ------
    ParameterError
        For another ``indexing``.
    """
    variables = [flatten(vector) for vector in xi]
    if indexing not in ("xy", "ij"):
        raise ParameterError(describe("meshgrid", [f"indexing={indexing!r}"], "an indexing is xy or ij"))
    order = list(range(len(variables)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    lifted = [
        dimshuffle(variable, [0 if place == own else "x" for place in order])
        for own, variable in enumerate(variables)
    ]
    if sparse:
        return tuple(lifted)
    sizes = [size_of(variables[position], 0) for position in order]
    return tuple(alloc(variable, *sizes) for variable in lifted)
