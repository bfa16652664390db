"""Reductions under NumPy's names, and those composed of them: mean, variance, norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import AxisError, DtypeError, describe
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Variable
from esat.ops import reduction
from esat.ops.axes import normalize_axes, normalize_axis
from esat.ops.cast import cast
from esat.ops.dimshuffle import dimshuffle
from esat.ops.promotion import common_dtype
from esat.ops.reduction import reduce
from esat.ops.shape import element_count

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean", "min",
    "norm", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Sum over ``axis`` (an int, a tuple, or None for all); booleans and integers in 64 bits, as NumPy."""
    return reduce(reduction.SUM, x, axis, dtype, keepdims)


def prod(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Product over ``axis`` (an int, a tuple, or None for all); booleans and integers in 64 bits."""
    return reduce(reduction.PROD, x, axis, dtype, keepdims)


def max(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Largest element over ``axis``; NaN where one is NaN. The gradient is shared by equal elements."""
    return reduce(reduction.MAX, x, axis, None, keepdims)


def min(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Smallest element over ``axis``; NaN where one is NaN. The gradient is shared by equal elements."""
    return reduce(reduction.MIN, x, axis, None, keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Whether some element over ``axis`` is not zero; bool."""
    return reduce(reduction.ANY, x, axis, None, keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Whether every element over ``axis`` is not zero; bool."""
    return reduce(reduction.ALL, x, axis, None, keepdims)


def argmax(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """int64 index of the first largest element along one axis, or in the flattened array; NaN counts as
    largest."""
    return _argument(reduction.ARGMAX, x, axis, keepdims)


def argmin(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """int64 index of the first smallest element along one axis, or in the flattened array; NaN counts as
    smallest."""
    return _argument(reduction.ARGMIN, x, axis, keepdims)


def _argument(reducer: reduction.Reducer, x: Any, axis: Any, keepdims: bool) -> Variable:
    variable = as_variable(x)
    if axis is not None and variable.tensor_type.ndim:
        axis = normalize_axis(reducer.name, axis, variable.tensor_type.ndim)
    return reduce(reducer, variable, axis, None, keepdims)


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Mean over ``axis``: integers in float64, float16 summed in float32, as NumPy; NaN of nothing."""
    variable = as_variable(x)
    given = variable.tensor_type.dtype
    computed, result = _mean_dtypes(given, dtype)
    axes = normalize_axes("mean", axis, variable.tensor_type.ndim)
    total = reduce(reduction.SUM, variable, axes, computed, keepdims)
    return cast(divided(total, element_count(variable, axes)), result)


def _mean_dtypes(given: str, dtype: Any) -> tuple[str, str]:
    if dtype is not None:
        return normalize_dtype(dtype), normalize_dtype(dtype)
    if np.dtype(given).kind in "biu":
        return "float64", "float64"
    return ("float32", "float16") if given == "float16" else (given, given)


def divided(total: Variable, count: Variable) -> Variable:
    dtype = total.tensor_type.dtype
    quotient: Variable = op_named("div")(total, cast(count, dtype) if np.dtype(dtype).kind in "fc" else count)
    return quotient


def var(x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Variable:
    """Variance over ``axis``: mean squared distance from the mean, the divisor being ``count - ddof``.

    Integers are computed in float64. The result is real, also for complex numbers.
    """
    variable = as_variable(x)
    if dtype is not None or variable.tensor_type.kind in "biu":
        variable = cast(variable, dtype if dtype is not None else "float64")
    if variable.tensor_type.kind not in "fc":
        raise DtypeError(describe("var", [variable.type], "the dtype of a variance is float or complex"))
    axes = normalize_axes("var", axis, variable.tensor_type.ndim)
    count = element_count(variable, axes)
    center = divided(reduce(reduction.SUM, variable, axes, None, True), count)
    distance = op_named("sub")(variable, center)
    if variable.tensor_type.kind == "c":
        parts = op_named("real")(distance), op_named("imag")(distance)
        squares = op_named("add")(op_named("sqr")(parts[0]), op_named("sqr")(parts[1]))
    else:
        squares = op_named("sqr")(distance)
    freedom = op_named("maximum")(op_named("sub")(count, ddof), 0) if ddof else count
    return divided(reduce(reduction.SUM, squares, axes, None, keepdims), freedom)


def std(x: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Variable:
    """Standard deviation over ``axis``: the square root of :func:`var`."""
    deviation: Variable = op_named("sqrt")(var(x, axis, dtype, ddof, keepdims))
    return deviation


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Largest minus smallest element over ``axis``."""
    spread: Variable = op_named("sub")(max(x, axis, keepdims), min(x, axis, keepdims))
    return spread


def count_nonzero(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Number of elements over ``axis`` that are not zero; int64."""
    return reduce(reduction.SUM, cast(x, "bool"), axis, None, keepdims)


def average(x: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Variable:
    """Mean over ``axis`` weighted by ``weights`` (the shape of ``x``, or a vector along one axis)."""
    if weights is None:
        return mean(x, axis, None, keepdims)
    variable, factors = as_variable(x), as_variable(weights)
    rank = variable.tensor_type.ndim
    if factors.tensor_type.ndim == 1 and rank != 1:
        index = normalize_axis("average", axis, rank)
        factors = dimshuffle(factors, ["x" if other != index else 0 for other in range(rank)])
        factors = op_named("fill")(variable, factors)
    if variable.tensor_type.kind in "biu":
        variable = cast(variable, "float64")
    factors = cast(factors, common_dtype("average", [variable, factors]))
    total = sum(op_named("mul")(variable, factors), axis, None, keepdims)
    quotient: Variable = op_named("div")(total, sum(factors, axis, None, keepdims))
    return quotient


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    """Vector norm over ``axis``; with neither ``ord`` nor ``axis``, of all elements.

    Parameters
    ----------
    x
        A Variable or array; integers are computed in float64.
    ord
        None or 2 (Euclidean), 1, inf, -inf, 0 (number of nonzero elements), or any other number p.
        ``"fro"`` over two axes.
    axis
        One axis; two for the Frobenius norm.

    Raises
    ------
    AxisError
        When ``ord`` is given for more than one axis (matrix norms other than Frobenius).
    """
    variable = as_variable(x)
    if variable.tensor_type.kind in "biu":
        variable = cast(variable, "float64")
    axes = normalize_axes("norm", axis, variable.tensor_type.ndim)
    vector = len(axes) == 1
    if ord not in (None, "fro") and not vector:
        raise AxisError(describe("norm", [variable.type], f"ord={ord} is a norm of one axis"))
    if ord == "fro" and len(axes) != 2:
        raise DtypeError(describe("norm", [variable.type], "the Frobenius norm takes two axes"))
    return norm_over(variable, 2 if ord in (None, "fro") else ord, axes, keepdims)


def norm_over(variable: Variable, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Variable:
    """The vector norm of the elements along any axes, none included; ``ord`` a number, inf, -inf or 0."""
    size = op_named("abs")(variable)
    if ord == 2:
        result: Variable = op_named("sqrt")(sum(op_named("sqr")(size), axes, None, keepdims))
        return result
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(size, axes, keepdims)
    if ord == 0:
        return cast(count_nonzero(variable, axes, keepdims), size.tensor_type.dtype)
    if ord == 1:
        return sum(size, axes, None, keepdims)
    powered: Variable = op_named("pow")(sum(op_named("pow")(size, ord), axes, None, keepdims), 1.0 / ord)
    return powered


amax = max
amin = min
