"""Elementwise functions composed of the ops, under NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.op import Op, as_variable
from esat.graph.variables import Variable
from esat.ops.axes import normalize_axis
from esat.ops.cast import cast
from esat.ops.elementwise.arithmetic import absolute, add, div, mul, sub
from esat.ops.elementwise.comparison import eq, isfinite, isnan, le, ne
from esat.ops.elementwise.exponential import sigmoid
from esat.ops.elementwise.logical import logical_and, logical_or
from esat.ops.elementwise.rounding import rint
from esat.ops.elementwise.selection import clip as clip_between
from esat.ops.elementwise.selection import maximum, minimum, switch
from esat.ops.index.basic import subtensor
from esat.ops.promotion import SPECIAL, resolve_dtype

__all__ = ["clip", "diff", "expit", "isclose", "nan_to_num", "relu", "round"]


def clip(operand: Any, low: Any = None, high: Any = None) -> Variable:
    """The elements, no less than ``low`` and no more than ``high``; None is no bound."""
    if low is None and high is None:
        return as_variable(operand)
    if low is None:
        return _call(minimum, operand, high)
    if high is None:
        return _call(maximum, operand, low)
    return _call(clip_between, operand, low, high)


def round(operand: Any, decimals: int = 0) -> Variable:
    """The elements rounded to so many decimals, halves to even, as ``numpy.round``: integers keep their
    dtype, booleans become float16.

    Raises
    ------
    DtypeError
        For booleans and a number of decimals that is not zero.
    """
    variable = as_variable(operand)
    kind = variable.tensor_type.kind
    if kind == "b" and decimals:
        raise DtypeError(describe("round", [variable.type], "booleans have no decimals to round to"))
    if kind in "iu" and decimals >= 0:
        return variable
    if decimals == 0:
        return _call(rint, variable)
    factor = 10.0 ** abs(decimals)
    first, last = (mul, div) if decimals > 0 else (div, mul)
    rounded = _call(last, rint(first(variable, factor)), factor)
    return cast(rounded, variable.tensor_type.dtype) if kind in "iu" else rounded


def isclose(
    left: Any, right: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Variable:
    """Whether ``|left - right| <= atol + rtol * |right|``, elementwise; equal infinities are close."""
    first, second = mul(left, 1.0), mul(right, 1.0)
    within = le(absolute(sub(first, second)), add(atol, mul(rtol, absolute(second))))
    close = logical_or(eq(first, second), logical_and(within, isfinite(second)))
    if equal_nan:
        close = logical_or(close, logical_and(isnan(first), isnan(second)))
    result: Variable = close
    return result


def nan_to_num(operand: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Variable:
    """Real elements with NaN and infinities replaced, these by the largest finite numbers by default."""
    variable = as_variable(operand)
    if variable.tensor_type.kind != "f":
        return variable
    limits = np.finfo(variable.tensor_type.numpy_dtype)
    highest = float(limits.max) if posinf is None else posinf
    lowest = float(limits.min) if neginf is None else neginf
    finite = switch(isnan(variable), nan, variable)
    finite = switch(eq(variable, np.inf), highest, finite)
    return _call(switch, eq(variable, -np.inf), lowest, finite)


def expit(operand: Any) -> Variable:
    """``scipy.special.expit``: :func:`esat.sigmoid` in float32 of float32, in float64 of all else."""
    variable = as_variable(operand)
    return _call(
        sigmoid, cast(variable, resolve_dtype("expit", SPECIAL, (variable.tensor_type.numpy_dtype,)))
    )


def relu(operand: Any) -> Variable:
    """``maximum(x, 0)``."""
    return _call(maximum, operand, 0)


def diff(operand: Any, n: int = 1, axis: int = -1) -> Variable:
    """Differences of neighbours along ``axis``, taken ``n`` times; of booleans, whether they differ."""
    variable = as_variable(operand)
    index = normalize_axis("diff", axis, variable.tensor_type.ndim)
    before = (slice(None),) * index
    op = ne if variable.tensor_type.dtype == "bool" else sub
    for _ in range(n):
        later = subtensor(variable, (*before, slice(1, None)))
        variable = op(later, subtensor(variable, (*before, slice(None, -1))))
    return variable


def _call(op: Op, *operands: Any) -> Variable:
    result: Variable = op(*operands)
    return result
