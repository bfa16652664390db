"""Reductions and running sums that pass over NaN, under NumPy's names.

Where every element along the axes is NaN, a sum is 0, a product 1, and a mean, variance or extremum NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import ParameterError
from esat.frontend import reductions
from esat.frontend.reductions import corrected, divided
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.control import assert_
from esat.ops.cumulative import cumprod, cumsum

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


def count(variable: Variable, axis: Any, keepdims: bool = False) -> Variable:
    """How many elements over ``axis`` are not NaN; int64."""
    return reductions.sum(op_named("eq")(variable, variable), axis, None, keepdims)


def nansum(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Sum over ``axis`` of what is not NaN."""
    return reductions.sum(replaced(a, 0), axis, dtype, keepdims)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Product over ``axis`` of what is not NaN."""
    return reductions.prod(replaced(a, 1), axis, dtype, keepdims)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Variable:
    """Running sums along ``axis`` of what is not NaN, or of all elements in C order."""
    return cumsum(replaced(a, 0), axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Variable:
    """Running products along ``axis`` of what is not NaN, or of all elements in C order."""
    return cumprod(replaced(a, 1), axis, dtype)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Mean over ``axis`` of what is not NaN; integers in float64."""
    variable = as_variable(a)
    if not has_nans(variable):
        return reductions.mean(variable, axis, dtype, keepdims)
    total = nansum(variable, axis, dtype, keepdims)
    return divided(total, count(variable, axis, keepdims))


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
    correction: float | None = None,
) -> Variable:  # fmt: skip
    """Variance over ``axis`` of what is not NaN; NaN where there are no more such elements than ``ddof``.

    ``correction`` is another name of ``ddof``.
    """
    ddof = corrected("nanvar", ddof, correction)
    variable = as_variable(a)
    if not has_nans(variable):
        return reductions.var(variable, axis, dtype, ddof, keepdims)
    variable = variable if dtype is None else cast(variable, dtype)
    sub, sqr, switch = (op_named(name) for name in ("sub", "sqr", "switch"))
    known = op_named("eq")(variable, variable)
    # Replaced here and not after squaring, where the derivative would meet NaN.
    distance = switch(known, sub(variable, nanmean(variable, axis, None, True)), 0)
    if variable.tensor_type.kind == "c":
        squares = op_named("add")(sqr(op_named("real")(distance)), sqr(op_named("imag")(distance)))
    else:
        squares = sqr(distance)
    freedom = sub(count(variable, axis, keepdims), ddof)
    variance = divided(reductions.sum(squares, axis, None, keepdims), freedom)
    result: Variable = switch(op_named("gt")(freedom, 0), variance, np.nan)
    return result


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
    correction: float | None = None,
) -> Variable:  # fmt: skip
    """Standard deviation over ``axis`` of what is not NaN: the square root of :func:`nanvar`."""
    ddof = corrected("nanstd", ddof, correction)
    deviation: Variable = op_named("sqrt")(nanvar(a, axis, dtype, ddof, keepdims))
    return deviation


def nanmax(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Largest element over ``axis`` that is not NaN."""
    return _extremum(a, axis, keepdims, -np.inf)


def nanmin(a: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """Smallest element over ``axis`` that is not NaN."""
    return _extremum(a, axis, keepdims, np.inf)


def _extremum(x: Any, axis: Any, keepdims: bool, replacement: float) -> Variable:
    variable = as_variable(x)
    reduce = reductions.max if replacement < 0 else reductions.min
    found = reduce(replaced(variable, replacement), axis, keepdims)
    if not has_nans(variable):
        return found
    known = op_named("gt")(count(variable, axis, keepdims), 0)
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
