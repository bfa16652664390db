"""Reductions under NumPy's names, and those composed of them: mean, variance, norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import AxisError, DtypeError, ParameterError, ShapeError, describe
from esat.frontend.elements.folding import folded, mask_of, mean_of, selected_count
from esat.graph.constants import constant
from esat.graph.methods import NOT_GIVEN
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Variable
from esat.ops import normalization, reduction
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import element_count
from esat.ops.arrays.view import squeeze
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axes, normalize_axis, ordered_axes
from esat.ops.inference.promotion import common_dtype
from esat.ops.reduction import reduce

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "logsumexp", "max", "mean",
    "min",
    "norm", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Variable:  # fmt: skip
    """Sum over ``axis``; booleans and integers in 64 bits, as NumPy.

    Parameters
    ----------
    a
        A Variable or array.
    axis
        An int, a tuple, or None for all.
    dtype
        In which it is computed.
    keepdims
        Whether the reduced axes stay, with size 1.
    initial
        A scalar to begin with; None where there must be a first element to begin with.
    where
        Bools that broadcast to the shape of ``a``: which elements count.

    Raises
    ------
    ParameterError
        When the dtype does not have the initial value; for ``where`` together with ``initial=None``.
    ShapeError
        When ``initial`` is no scalar, or ``where`` does not broadcast to the shape of ``a``.

    Examples
    --------
    >>> x = esat.vector("x")
    >>> esat.evaluate(esat.sum(x, initial=10, where=x > 1), {x: np.array([1.0, 2, 3])})
    array(15.)
    """
    return folded(reduction.SUM, a, axis, dtype, keepdims, initial, where)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Variable:  # fmt: skip
    """Product over ``axis``; booleans and integers in 64 bits. The arguments are those of :func:`sum`."""
    return folded(reduction.PROD, a, axis, dtype, keepdims, initial, where)


def max(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN
) -> Variable:
    """Largest element over ``axis``; NaN where one is NaN. The gradient is shared by equal elements.

    Of nothing it is ``initial``, which ``where`` asks for. The arguments are those of :func:`sum`.

    Examples
    --------
    >>> x = esat.vector("x")
    >>> esat.evaluate(esat.max(x, initial=0, where=x < 3), {x: np.array([1.0, 2, 3])})
    array(2.)
    """
    return folded(reduction.MAX, a, axis, None, keepdims, initial, where)


def min(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN
) -> Variable:
    """Smallest element over ``axis``; NaN where one is NaN. See :func:`max`."""
    return folded(reduction.MIN, a, axis, None, keepdims, initial, where)


def any(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN) -> Variable:
    """Whether some element over ``axis``, of those that ``where`` selects, is not zero; bool."""
    return folded(reduction.ANY, a, axis, None, keepdims, NOT_GIVEN, where)


def all(a: Any, axis: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN) -> Variable:
    """Whether every element over ``axis``, of those that ``where`` selects, is not zero; bool."""
    return folded(reduction.ALL, a, axis, None, keepdims, NOT_GIVEN, where)


def argmax(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """int64 index of the first largest element along one axis, or in the flattened array; NaN counts as
    largest."""
    return _argument(reduction.ARGMAX, a, axis, keepdims)


def argmin(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """int64 index of the first smallest element along one axis, or in the flattened array; NaN counts as
    smallest."""
    return _argument(reduction.ARGMIN, a, axis, keepdims)


def _argument(reducer: reduction.Reducer, x: Any, axis: Any, keepdims: bool) -> Variable:
    variable = as_variable(x)
    if axis is not None and variable.tensor_type.ndim:
        axis = normalize_axis(reducer.name, axis, variable.tensor_type.ndim)
    return reduce(reducer, variable, axis, None, keepdims)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN
) -> Variable:
    """Mean over ``axis``, of the elements that ``where`` selects: integers in float64, float16 summed in
    float32, as NumPy; NaN of nothing."""
    variable = as_variable(a)
    given = variable.tensor_type.dtype
    computed, result = _mean_dtypes(given, dtype)
    mask = mask_of("mean", variable, where)
    axes = _axes_of_mean("mean", variable, axis, mask)
    total = folded(reduction.SUM, variable, axes, computed, keepdims, NOT_GIVEN, where)
    return cast(divided(total, selected_count(variable, axes, mask, keepdims)), result)


def _mean_dtypes(given: str, dtype: Any) -> tuple[str, str]:
    if dtype is not None:
        return normalize_dtype(dtype), normalize_dtype(dtype)
    if np.dtype(given).kind in "biu":
        return "float64", "float64"
    return ("float32", "float16") if given == "float16" else (given, given)


def _axes_of_mean(name: str, variable: Variable, axis: Any, mask: Variable | None) -> tuple[int, ...]:
    """The axes that are averaged over; a number has one for NumPy where elements are selected."""
    named = axis if mask is None else axis_of_number(variable, axis)
    return normalize_axes(name, named, variable.tensor_type.ndim)


def divided(total: Variable, count: Variable) -> Variable:
    dtype = total.tensor_type.dtype
    quotient: Variable = op_named("div")(total, cast(count, dtype) if np.dtype(dtype).kind in "fc" else count)
    return quotient


def var(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: float | None = None,
) -> Variable:  # fmt: skip
    """Variance over ``axis``: mean squared distance from the mean, the divisor being ``count - ddof``.

    Integers are computed in float64. The result is real, also for complex numbers.

    Parameters
    ----------
    a
        A Variable or array.
    axis
        An int, a tuple, or None for all.
    dtype
        In which it is computed.
    ddof, correction
        What the divisor is less than the number of elements, under one of two names.
    keepdims
        Whether the reduced axes stay, with size 1.
    where
        Bools that broadcast to the shape of ``a``: which elements count.
    mean
        The mean, where it is known, with the reduced axes kept: what :func:`mean` gives with ``keepdims``.

    Raises
    ------
    DtypeError
        When complex numbers are to be computed in a real dtype; for a complex mean of real numbers.
    ParameterError
        When both ``ddof`` and ``correction`` are given.
    ShapeError
        When ``where`` or ``mean`` does not broadcast to the shape of ``a``.
    """
    ddof = corrected("var", ddof, correction)
    variable = as_variable(a)
    if (
        dtype is not None
        and variable.tensor_type.kind == "c"
        and np.dtype(normalize_dtype(dtype)).kind != "c"
    ):
        reason = f"the variance of complex numbers cannot be computed in {normalize_dtype(dtype)}"
        raise DtypeError(describe("var", [variable.type], reason))
    if dtype is not None or variable.tensor_type.kind in "biu":
        variable = cast(variable, dtype if dtype is not None else "float64")
    if variable.tensor_type.kind not in "fc":
        raise DtypeError(describe("var", [variable.type], "the dtype of a variance is float or complex"))
    mask = mask_of("var", variable, where)
    axes = _axes_of_mean("var", variable, axis, mask)
    if mean is NOT_GIVEN:
        count = selected_count(variable, axes, mask, True)
        center = divided(folded(reduction.SUM, variable, axes, None, True, NOT_GIVEN, where), count)
    else:
        center = mean_of("var", variable, mean)
    distance = op_named("sub")(variable, center)
    if variable.tensor_type.kind == "c":
        parts = op_named("real")(distance), op_named("imag")(distance)
        squares = op_named("add")(op_named("sqr")(parts[0]), op_named("sqr")(parts[1]))
    else:
        squares = op_named("sqr")(distance)
    if mean is NOT_GIVEN and _of_one(variable, axes):
        # Divided by no degree of freedom, one element has no variance.
        poison = (
            cast(constant(np.nan), squares.tensor_type.dtype) if ddof >= 1 else _nothing_if_finite(variable)
        )
        squares = op_named("add")(squares, poison)
    count = selected_count(variable, axes, mask, keepdims)
    freedom = op_named("maximum")(op_named("sub")(count, ddof), 0) if ddof else count
    return divided(folded(reduction.SUM, squares, axes, None, keepdims, NOT_GIVEN, where), freedom)


def _of_one(variable: Variable, axes: Sequence[int]) -> bool:
    """Whether each result comes from one element, as the type says."""
    return False not in [variable.tensor_type.broadcastable[axis] for axis in axes]


def _nothing_if_finite(variable: Variable) -> Variable:
    """Zero, and NaN where an element is infinite or NaN.

    What is subtracted from itself may be zero to the optimizer. Where it is seen that there is one element,
    a result must not differ from that for an axis of unknown size.
    """
    real = np.empty(0, variable.tensor_type.dtype).real.dtype.name
    nan = cast(constant(np.nan), real)
    result: Variable = op_named("switch")(op_named("isfinite")(variable), cast(constant(0.0), real), nan)
    return result


def std(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: float | None = None,
) -> Variable:  # fmt: skip
    """Standard deviation over ``axis``: the square root of :func:`var`, whose arguments it has."""
    ddof = corrected("std", ddof, correction)
    variance = var(a, axis, dtype, ddof, keepdims, where=where, mean=mean)
    deviation: Variable = op_named("sqrt")(variance)
    return deviation


def corrected(name: str, ddof: float, correction: float | None) -> float:
    """What a variance takes from its divisor, given under one of two names."""
    if correction is None:
        return ddof
    if ddof:
        shown = [f"ddof={ddof!r}", f"correction={correction!r}"]
        raise ParameterError(describe(name, shown, "takes one of the two"))
    return correction


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Largest minus smallest element over ``axis``."""
    spread: Variable = op_named("sub")(max(a, axis, keepdims), min(a, axis, keepdims))
    variable = as_variable(a)
    rank = variable.tensor_type.ndim
    if (
        variable.tensor_type.kind != "f"
        or rank == 0
        or not _of_one(variable, normalize_axes("ptp", axis, rank))
    ):
        return spread
    poisoned: Variable = op_named("add")(spread, sum(_nothing_if_finite(variable), axis, None, keepdims))
    return poisoned


def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Number of elements over ``axis`` that are not zero; int64."""
    return reduce(reduction.SUM, cast(a, "bool"), axis, None, keepdims)


def axis_of_number(variable: Variable, axis: Any) -> Any:
    """An axis argument; of an array without axes 0 and -1 are none, as for NumPy's reductions."""
    return None if variable.tensor_type.ndim == 0 and type(axis) is int and axis in (0, -1) else axis


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Mean over ``axis`` weighted by ``weights``.

    Parameters
    ----------
    a
        A Variable or array; integers are computed in float64.
    axis
        An axis, a tuple of them, or None for all.
    weights
        An array of the shape of ``a``, or of the sizes of ``axis``; by default all weigh the same.
    returned
        Whether to return a pair: the mean, and the sum of the weights.
    keepdims
        Whether the reduced axes stay, with size 1.

    Raises
    ------
    ShapeError
        For weights of another rank.
    """
    variable = as_variable(a)
    rank = variable.tensor_type.ndim
    axes = normalize_axes("average", axis, rank)
    if weights is None:
        average = mean(variable, axes, None, keepdims)
        total: Any = cast(element_count(variable, axes), average.tensor_type.dtype)
    else:
        factors = _weights(variable, as_variable(weights), axis, axes)
        given = [variable, factors, *([np.float64(0)] if variable.tensor_type.kind in "biu" else [])]
        dtype = common_dtype("average", given)
        total = sum(factors, axes, dtype, keepdims)
        weighted = op_named("mul")(cast(variable, dtype), cast(factors, dtype))
        average = op_named("div")(sum(weighted, axes, None, keepdims), total)
    return (average, op_named("fill")(average, total)) if returned else average


def _weights(variable: Variable, weights: Variable, axis: Any, axes: tuple[int, ...]) -> Variable:
    """Weights in the shape of what they weigh."""
    rank = variable.tensor_type.ndim
    if weights.tensor_type.ndim == rank:
        return weights
    if axis is None or weights.tensor_type.ndim != len(axes):
        reason = "weights have the shape of the array, or the sizes of its axes that are averaged over"
        raise ShapeError(describe("average", [variable.type, weights.type], reason))
    given = ordered_axes("average", axis if isinstance(axis, (tuple, list)) else (axis,), rank)
    placed = dimshuffle(weights, [given.index(place) if place in given else "x" for place in range(rank)])
    filled: Variable = op_named("fill")(variable, placed)
    return filled


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """``log(sum(b * exp(a)))`` over ``axis``, without overflow.

    Parameters
    ----------
    a
        A Variable or array; integers are computed in float64.
    axis
        An axis, a tuple of them, or None for all.
    b
        Factors that broadcast against ``a``; by default 1.
    keepdims
        Whether the reduced axes stay, with size 1.
    return_sign
        Whether to return a pair: the logarithm of the absolute value of the sum, and its sign. Without it
        the logarithm of a negative sum is NaN.
    """
    if b is None and not return_sign:
        return normalization.logsumexp(a, axis, keepdims)
    dtype = common_dtype("logsumexp", [a, *([] if b is None else [b])])
    exponents = cast(a, reduction.float_dtype(dtype))
    axes = normalize_axes("logsumexp", axis_of_number(exponents, axis), exponents.tensor_type.ndim)
    mul, switch, log = op_named("mul"), op_named("switch"), op_named("log")
    factors = cast(1 if b is None else b, exponents.tensor_type.dtype)
    # What counts nothing must not be the largest, nor infinite.
    exponents = switch(op_named("eq")(factors, 0), -np.inf, exponents)
    highest = max(op_named("real")(exponents), axes, keepdims=True)
    shift = switch(op_named("isfinite")(highest), highest, 0)
    terms = mul(factors, op_named("exp")(op_named("sub")(exponents, shift)))
    total = sum(terms, axes, None, keepdims)
    shift = shift if keepdims else squeeze(shift, axes)
    if return_sign:
        return op_named("add")(log(op_named("abs")(total)), shift), op_named("sign")(total)
    return op_named("add")(log(total), shift)


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
