"""Reductions and running sums that pass over NaN, under NumPy's names.

Where every element along the axes is NaN, a sum is 0, a product 1, and a mean, variance or extremum NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import ParameterError
from esat.frontend.elements import reductions
from esat.frontend.elements.folding import mean_of
from esat.frontend.elements.reductions import corrected, divided
from esat.graph.methods import NOT_GIVEN
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.cumulative import cumprod, cumsum
from esat.ops.cast import cast
from esat.ops.control import assert_

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd",
    "nansum", "nanvar",
]  # fmt: skip


def has_nans(variable: Variable) -> bool:
    """Whether values of the dtype can be NaN."""
    return variable.tensor_type.kind in "fc"


def replaced(operand: Any, value: float) -> Variable:
    """The operand with ``value`` in place of NaN."""
    variable = as_variable(operand)
    if not has_nans(variable):
        return variable
    result: Variable = op_named("switch")(op_named("isnan")(variable), value, variable)
    return result


def count(variable: Variable, axis: Any, keepdims: bool = False, where: Any = NOT_GIVEN) -> Variable:
    """How many elements over ``axis`` are not NaN, of those that ``where`` selects; int64."""
    return reductions.sum(op_named("eq")(variable, variable), axis, None, keepdims, where=where)


def nansum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Variable:  # fmt: skip
    """Sum over ``axis`` of what is not NaN. The arguments are those of :func:`sum`."""
    return reductions.sum(replaced(a, 0), axis, dtype, keepdims, initial, where)


def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Variable:  # fmt: skip
    """Product over ``axis`` of what is not NaN. The arguments are those of :func:`sum`."""
    return reductions.prod(replaced(a, 1), axis, dtype, keepdims, initial, where)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Variable:
    """Running sums along ``axis`` of what is not NaN, or of all elements in C order."""
    return cumsum(replaced(a, 0), axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Variable:
    """Running products along ``axis`` of what is not NaN, or of all elements in C order."""
    return cumprod(replaced(a, 1), axis, dtype)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = NOT_GIVEN
) -> Variable:
    """Mean over ``axis`` of what is not NaN, of the elements that ``where`` selects; integers in float64."""
    variable = as_variable(a)
    if not has_nans(variable):
        return reductions.mean(variable, axis, dtype, keepdims, where=where)
    total = nansum(variable, axis, dtype, keepdims, NOT_GIVEN, where)
    return divided(total, count(variable, axis, keepdims, where))


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: float | None = None,
) -> Variable:  # fmt: skip
    """Variance over ``axis`` of what is not NaN; NaN where there are no more such elements than ``ddof``.

    The arguments are those of :func:`var`.
    """
    ddof = corrected("nanvar", ddof, correction)
    variable = as_variable(a)
    if not has_nans(variable):
        return reductions.var(variable, axis, dtype, ddof, keepdims, where=where, mean=mean)
    variable = variable if dtype is None else cast(variable, dtype)
    sub, sqr, switch = (op_named(name) for name in ("sub", "sqr", "switch"))
    known = op_named("eq")(variable, variable)
    # Replaced here and not after squaring, where the derivative would meet NaN.
    if mean is NOT_GIVEN:
        center: Any = nanmean(variable, axis, None, True, where=where)
    else:
        center = mean_of("nanvar", variable, mean)
    # As NumPy takes the mean away in place, its dtype does not count.
    distance = switch(known, cast(sub(variable, center), variable.tensor_type.dtype), 0)
    if variable.tensor_type.kind == "c":
        squares = op_named("add")(sqr(op_named("real")(distance)), sqr(op_named("imag")(distance)))
    else:
        squares = sqr(distance)
    freedom = sub(count(variable, axis, keepdims, where), ddof)
    variance = divided(reductions.sum(squares, axis, None, keepdims, where=where), freedom)
    result: Variable = switch(op_named("gt")(freedom, 0), variance, np.nan)
    return result


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: float | None = None,
) -> Variable:  # fmt: skip
    """Standard deviation over ``axis``: the square root of :func:`nanvar`, whose arguments it has."""
    ddof = corrected("nanstd", ddof, correction)
    variance = nanvar(a, axis, dtype, ddof, keepdims, where=where, mean=mean)
    deviation: Variable = op_named("sqrt")(variance)
    return deviation


def nanmax(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN
) -> Variable:
    """Largest element over ``axis`` that is not NaN. The arguments are those of :func:`max`."""
    return _extremum(a, axis, keepdims, -np.inf, initial, where)


def nanmin(
    a: Any, axis: Any = None, keepdims: bool = False, initial: Any = NOT_GIVEN, where: Any = NOT_GIVEN
) -> Variable:
    """Smallest element over ``axis`` that is not NaN. The arguments are those of :func:`max`."""
    return _extremum(a, axis, keepdims, np.inf, initial, where)


def _extremum(x: Any, axis: Any, keepdims: bool, replacement: float, initial: Any, where: Any) -> Variable:
    variable = as_variable(x)
    reduce = reductions.max if replacement < 0 else reductions.min
    if not has_nans(variable):
        return reduce(variable, axis, keepdims, initial, where)
    none_given = initial is NOT_GIVEN or initial is None
    start = initial if none_given else replaced(initial, replacement)
    found = reduce(replaced(variable, replacement), axis, keepdims, start, where)
    known = op_named("gt")(count(variable, axis, keepdims, where), 0)
    if not none_given:
        given = as_variable(initial)
        known = op_named("logical_or")(known, op_named("eq")(given, given))
    result: Variable = op_named("switch")(known, found, np.nan)
    return result


def nanargmax(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """int64 index of the first largest element that is not NaN, along one axis or in the flattened array.

    Raises
    ------
    ParameterError
        At run time, when all elements along the axis are NaN.
    """
    return _argument("nanargmax", a, axis, keepdims, -np.inf)


def nanargmin(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """int64 index of the first smallest element that is not NaN; see :func:`nanargmax`."""
    return _argument("nanargmin", a, axis, keepdims, np.inf)


def _argument(name: str, x: Any, axis: Any, keepdims: bool, replacement: float) -> Variable:
    variable = as_variable(x)
    find = reductions.argmax if replacement < 0 else reductions.argmin
    if not has_nans(variable):
        return find(variable, axis, keepdims)
    known = op_named("gt")(count(variable, axis), 0)
    message = f"{name}: all elements along the axis are NaN"
    checked = assert_(variable, known, message=message, error=ParameterError)
    return find(replaced(checked, replacement), axis, keepdims)
