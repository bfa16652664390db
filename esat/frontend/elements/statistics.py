"""Order statistics and covariances under NumPy's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.frontend.arrays.shaping import atleast_2d, concatenate
from esat.frontend.elements import reductions
from esat.frontend.elements.nans import count, has_nans
from esat.frontend.elements.numeric import clip
from esat.frontend.linear_algebra.linear import dot
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.diagonal import diagonal
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import element_count, size_of
from esat.ops.arrays.sorting import sort
from esat.ops.arrays.view import expand_dims, reshape, squeeze, transpose
from esat.ops.cast import cast
from esat.ops.index.along import take_along_axis
from esat.ops.inference.axes import normalize_axes
from esat.ops.inference.promotion import common_dtype, is_weak

__all__ = [
    "corrcoef", "cov", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]  # fmt: skip

_INTERPOLATED = {
    "linear": (1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""Methods that interpolate -> their parameters alpha and beta.

Source: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50,
1996.
"""

_PICKING = ("lower", "higher", "nearest")
"""Methods that pick an element next to the place that ``linear`` interpolates at."""

_CHOSEN = (*_PICKING, "midpoint")
"""Methods that take elements next to that place."""


Between = Callable[[Variable, Variable, Variable], Variable]
"""What lies between two elements, so far from the first as the third operand says."""


def quantile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Variable:
    """The values below which the fractions ``q`` of the elements over ``axis`` lie; NaN where one is NaN.

    Parameters
    ----------
    a
        Real numbers; integers are computed in float64, unless the method picks one of them.
    q
        Fractions between 0 and 1: a number, a scalar or a vector, whose axis comes first in the result.
    axis
        An axis, a tuple of them, or None for all.
    method
        NumPy's name for how to treat fractions between two elements: one that interpolates ("linear",
        "hazen", "weibull", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf"), or "lower",
        "higher", "midpoint", "nearest".
    keepdims
        Whether the reduced axes stay, with size 1.

    Raises
    ------
    DtypeError
        For complex numbers, and for booleans between which nothing lies.
    ParameterError
        For another method, or a number ``q`` out of its range.
    """
    return _quantile("quantile", a, q, axis, method, keepdims, ignored=False)


def percentile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Variable:
    """:func:`quantile` of the fractions ``q / 100``."""
    return _quantile("percentile", a, _hundredth(q), axis, method, keepdims, ignored=False)


def nanquantile(a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> Variable:
    """:func:`quantile` of what is not NaN."""
    return _quantile("nanquantile", a, q, axis, method, keepdims, ignored=True)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Variable:
    """:func:`quantile` of the fractions ``q / 100`` of what is not NaN."""
    return _quantile("nanpercentile", a, _hundredth(q), axis, method, keepdims, ignored=True)


def median(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """The middle element over ``axis``, or the mean of the two in the middle; NaN where one is NaN."""
    return _reduced("median", a, 0.5, axis, "linear", keepdims, ignored=False)


def nanmedian(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """:func:`median` of what is not NaN."""
    return _reduced("nanmedian", a, 0.5, axis, "linear", keepdims, ignored=True)


def _hundredth(q: Any) -> Any:
    return q / 100 if is_weak(q) else op_named("div")(as_variable(q), 100)


def _quantile(name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool, ignored: bool) -> Variable:
    variable = as_variable(x)
    normalize_axes(name, axis, variable.tensor_type.ndim)
    if method not in _INTERPOLATED and method not in _CHOSEN:
        known = ", ".join((*_INTERPOLATED, *_CHOSEN))
        raise ParameterError(describe(name, [f"method={method!r}"], f"a method is one of {known}"))
    if is_weak(q) and not 0 <= q <= 1:
        raise ParameterError(describe(name, [f"fraction {q}"], "fractions lie between 0 and 1"))
    if variable.tensor_type.kind in ("c" if method in _PICKING else "bc"):
        raise DtypeError(describe(name, [variable.type], "takes integers and floats"))
    return _reduced(name, variable, q, axis, method, keepdims, ignored)


def _reduced(name: str, x: Any, q: Any, axis: Any, method: str, keepdims: bool, ignored: bool) -> Variable:
    variable = as_variable(x)
    picks = method in _PICKING
    if variable.tensor_type.kind in "biu" and not picks:
        variable = cast(variable, "float64")
    real = "float64" if variable.tensor_type.kind in "biu" else op_named("real")(variable).tensor_type.dtype
    fractions = as_variable(q) if not is_weak(q) else as_variable(np.asarray(q, real))
    if fractions.tensor_type.ndim > 1:
        raise ShapeError(describe(name, [fractions.type], "fractions are a number or a vector"))
    axes = normalize_axes(name, axis, variable.tensor_type.ndim)
    between = _mean if name.endswith("median") else _picked if picks else _interpolated
    values = _at_fractions(_ordered(variable, axes), fractions, method, ignored, between)
    if keepdims:
        lead = fractions.tensor_type.ndim
        values = expand_dims(values, tuple(axis + lead for axis in axes))
    return values


def _ordered(variable: Variable, axes: tuple[int, ...]) -> Variable:
    """The elements over ``axes`` along one first axis, in ascending order."""
    rest = [axis for axis in range(variable.tensor_type.ndim) if axis not in axes]
    moved = transpose(variable, (*axes, *rest))
    if len(axes) != 1:
        sizes = [size_of(variable, axis) for axis in rest]
        moved = reshape(moved, (element_count(variable, axes), *sizes))
    return sort(moved, 0)


def _at_fractions(
    ordered: Variable, fractions: Variable, method: str, ignored: bool, between: Between
) -> Variable:
    """Quantiles along the first axis, which the axis of the fractions replaces, if they have one."""
    sub, switch = op_named("sub"), op_named("switch")
    rank = ordered.tensor_type.ndim
    number = count(ordered, 0, keepdims=True) if ignored else size_of(ordered, 0)
    column = dimshuffle(fractions, (0 if fractions.tensor_type.ndim else "x", *["x"] * (rank - 1)))
    place = _place(column, cast(number, column.tensor_type.dtype), method)
    lower = op_named("floor")(place)
    last = op_named("maximum")(sub(number, 1), 0)
    first_index = clip(cast(lower, "int64"), 0, last)
    second_index = clip(op_named("add")(cast(lower, "int64"), 1), 0, last)
    first, second = (_chosen(ordered, index, ignored) for index in (first_index, second_index))
    values = between(first, second, sub(place, lower))
    # Sorted, NaN comes last: one NaN shows there, and all are NaN where the first one is.
    end = expand_dims(ordered[0 if ignored else -1], 0)
    values = switch(op_named("isnan")(end), np.nan, values) if has_nans(ordered) else values
    result: Variable = values if fractions.tensor_type.ndim else values[0]
    return result


def _place(fraction: Variable, number: Variable, method: str) -> Variable:
    """Where a quantile lies among the sorted elements, counted from 0."""
    if method in _INTERPOLATED:
        alpha, beta = _INTERPOLATED[method]
        if alpha == beta == 1.0:
            return fraction * (number - 1)
        return number * fraction + (alpha + fraction * (1 - alpha - beta)) - 1
    place = fraction * (number - 1)
    below, above = op_named("floor")(place), op_named("ceil")(place)
    chosen: dict[str, Callable[[], Variable]] = {
        "lower": lambda: below,
        "higher": lambda: above,
        "midpoint": lambda: 0.5 * (below + above),
        "nearest": lambda: op_named("rint")(place),
    }
    return chosen[method]()


def _chosen(ordered: Variable, index: Variable, ignored: bool) -> Variable:
    if ignored:
        return take_along_axis(ordered, index, 0)
    chosen: Variable = ordered[reshape(index, (-1,))]
    return chosen


def _interpolated(first: Variable, second: Variable, weight: Variable) -> Variable:
    """From the nearer end, so that a weight of 0 or 1 gives it exactly; equal ends, also infinite ones,
    have nothing between them."""
    distance = op_named("switch")(op_named("eq")(first, second), 0, second - first)
    value: Variable = op_named("switch")(
        op_named("ge")(weight, 0.5), second - distance * (1 - weight), first + distance * weight
    )
    return value


def _picked(first: Variable, second: Variable, weight: Variable) -> Variable:
    return first


def _mean(first: Variable, second: Variable, weight: Variable) -> Variable:
    """The one in the middle, whatever comes after it, or the mean of two, halved before they overflow."""
    value: Variable = op_named("switch")(op_named("eq")(weight, 0), first, 0.5 * first + 0.5 * second)
    return value


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Variable:  # fmt: skip
    """Covariances of variables, each a row of ``m``, from their observations in its columns.

    Parameters
    ----------
    m
        A matrix, or a vector for one variable, whose variance is a scalar then; computed in float64.
    y
        More variables of the same form.
    rowvar
        False when variables are columns and observations rows.
    bias
        Whether to divide by the number of observations, and not by one less.
    ddof
        What to take from that number, in place of ``bias``.
    fweights, aweights
        Vectors with a weight for each observation: how often it was made, and how much it counts.
    dtype
        What is computed in; by default the common dtype of ``m``, ``y`` and float64.

    Raises
    ------
    ShapeError
        For arrays of more than two axes.
    """
    if dtype is None:
        dtype = common_dtype(
            "cov", [as_variable(part) for part in (m, y) if part is not None] + [np.float64(0)]
        )
    rows = _variables(m, rowvar, dtype)
    if y is not None:
        rows = concatenate([rows, _variables(y, rowvar, dtype)], 0)
    freedom = (0 if bias else 1) if ddof is None else ddof
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = op_named("mul")(fweights, aweights)
    center = reductions.average(rows, 1, weights, keepdims=True)
    centered = op_named("sub")(rows, center)
    if weights is None:
        weighted, factor = centered, op_named("sub")(size_of(rows, 1), freedom)
    else:
        weighted = op_named("mul")(centered, weights)
        total = reductions.sum(weights)
        factor = total - freedom
        if aweights is not None and freedom:
            factor = total - freedom * reductions.sum(op_named("mul")(weights, aweights)) / total
    other = op_named("conj")(weighted) if weighted.tensor_type.kind == "c" else weighted
    product = dot(centered, transpose(other))
    divisor = cast(op_named("maximum")(factor, 0), op_named("real")(product).tensor_type.dtype)
    covariance: Variable = op_named("div")(product, divisor)
    return squeeze(covariance)


def _variables(x: Any, rowvar: bool, dtype: Any) -> Variable:
    variable = as_variable(x)
    if variable.tensor_type.ndim > 2:
        raise ShapeError(describe("cov", [variable.type], "takes at most two axes"))
    lifted: Variable = atleast_2d(cast(variable, dtype))
    return lifted if rowvar or variable.tensor_type.ndim < 2 else transpose(lifted)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Variable:
    """Correlation coefficients of variables: their covariances (:func:`cov`) over the standard deviations."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if covariance.tensor_type.ndim == 0:
        return covariance / covariance
    deviation = op_named("sqrt")(op_named("real")(diagonal(covariance)))
    ratio = covariance / dimshuffle(deviation, (0, "x")) / dimshuffle(deviation, ("x", 0))
    if ratio.tensor_type.kind == "c":
        real, imaginary = (clip(op_named(part)(ratio), -1, 1) for part in ("real", "imag"))
        return real + 1j * imaginary
    return clip(ratio, -1, 1)
