"""Elementwise functions composed of the ops, under NumPy's names."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.graph.calls.arguments import index_of
from esat.graph.op import Op, as_variable
from esat.graph.variables import Variable
from esat.ops.arrays.shape import sizes_of
from esat.ops.cast import cast
from esat.ops.control import ifelse
from esat.ops.elementwise.arithmetic import absolute, add, copysign, div, floor_div, mod, mul, positive, sub
from esat.ops.elementwise.comparison import eq, gt, isfinite, isinf, isnan, le, lt, ne
from esat.ops.elementwise.complex import angle as angle_in_radians
from esat.ops.elementwise.complex import imag, real
from esat.ops.elementwise.exponential import sigmoid
from esat.ops.elementwise.logical import logical_and, logical_or
from esat.ops.elementwise.power import pow
from esat.ops.elementwise.rounding import rint, trunc
from esat.ops.elementwise.selection import clip as clip_between
from esat.ops.elementwise.selection import maximum, minimum, switch
from esat.ops.elementwise.trigonometric import sin
from esat.ops.inference.promotion import common_dtype, given_dtypes, resolve_dtype, special
from esat.ops.reduction import ALL, reduce

__all__ = [
    "allclose", "angle", "around", "array_equal", "array_equiv", "clip", "divmod", "expit", "fabs",
    "fix", "float_power", "heaviside", "isclose", "iscomplex", "isneginf", "isposinf", "isreal", "modf",
    "nan_to_num", "round", "select", "sinc",
]  # fmt: skip


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Variable:
    """The elements, no less than ``a_min`` and no more than ``a_max``; None is no bound.

    ``min`` and ``max`` are other names of the bounds.

    Raises
    ------
    ParameterError
        For bounds under both names.
    """
    bounds = [pair for pair in ((a_min, a_max), (min, max)) if pair[0] is not None or pair[1] is not None]
    if len(bounds) == 2:
        raise ParameterError(describe("clip", [a], "takes a_min and a_max, or min and max, not both"))
    if not bounds:
        variable = as_variable(a)
        return _call(positive, variable) if variable.tensor_type.kind == "b" else variable
    ((low, high),) = bounds
    if low is None:
        return _call(minimum, a, high)
    if high is None:
        return _call(maximum, a, low)
    return _call(clip_between, a, low, high)


def round(a: Any, decimals: int = 0) -> Variable:
    """The elements rounded to so many decimals, halves to even, as ``numpy.round``: integers keep their
    dtype, booleans become float16.

    Raises
    ------
    DtypeError
        For booleans and a number of decimals that is not zero.
    """
    variable = as_variable(a)
    decimals = index_of("round", "decimals", decimals)
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


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """Whether ``|a - b| <= atol + rtol * |right|``, elementwise; equal infinities are close."""
    first, second = mul(a, 1.0), mul(b, 1.0)
    within = le(absolute(sub(first, second)), add(atol, mul(rtol, absolute(second))))
    close = logical_or(eq(first, second), logical_and(within, isfinite(second)))
    if equal_nan:
        close = logical_or(close, logical_and(isnan(first), isnan(second)))
    result: Variable = close
    return result


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """Whether all elements are close (:func:`isclose`); a bool scalar."""
    return reduce(ALL, isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Variable:
    """Whether two arrays have one shape and equal elements, with ``equal_nan`` NaN to NaN; a bool scalar."""
    first, second = as_variable(a1), as_variable(a2)
    ranks = first.tensor_type.ndim, second.tensor_type.ndim
    pairs = list(zip(first.tensor_type.shape, second.tensor_type.shape, strict=False))
    if ranks[0] != ranks[1] or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return as_variable(False)
    # Elements are compared only where the shapes are the same.
    same = [eq(*sizes) for sizes, pair in zip(_size_pairs(first, second), pairs, strict=True) if None in pair]
    equal = eq(first, second)
    if equal_nan:
        equal = logical_or(equal, logical_and(ne(first, first), ne(second, second)))
    whole = reduce(ALL, equal)
    result: Variable = ifelse(functools.reduce(logical_and, same), whole, False) if same else whole
    return result


def array_equiv(a1: Any, a2: Any) -> Variable:
    """Whether two arrays broadcast to one shape and have equal elements there; a bool scalar.

    Raises
    ------
    ShapeError
        At run time, where an axis whose size was not known turns out to have size 1 and the other has not:
        only axes that are known to have size 1 are stretched.
    """
    first, second = as_variable(a1), as_variable(a2)
    sizes = list(zip(reversed(sizes_of(first)), reversed(sizes_of(second)), strict=False))
    pairs = list(zip(reversed(first.tensor_type.shape), reversed(second.tensor_type.shape), strict=False))
    if any(None not in pair and 1 not in pair and pair[0] != pair[1] for pair in pairs):
        return as_variable(False)
    fit = [
        logical_or(eq(one, other), logical_or(eq(one, 1), eq(other, 1)))
        for (one, other), pair in zip(sizes, pairs, strict=True)
        if None in pair and 1 not in pair
    ]
    whole = reduce(ALL, eq(first, second))
    result: Variable = ifelse(functools.reduce(logical_and, fit), whole, False) if fit else whole
    return result


def _size_pairs(first: Variable, second: Variable) -> list[tuple[Variable, Variable]]:
    return list(zip(sizes_of(first), sizes_of(second), strict=True))


def isposinf(x: Any) -> Variable:
    """Whether elements are positive infinity."""
    return _signed_infinity("isposinf", x, False)


def isneginf(x: Any) -> Variable:
    """Whether elements are negative infinity."""
    return _signed_infinity("isneginf", x, True)


def _signed_infinity(name: str, operand: Any, negative: bool) -> Variable:
    variable = as_variable(operand)
    if variable.tensor_type.kind == "c":
        raise DtypeError(describe(name, [variable.type], "complex infinities have no sign"))
    if variable.tensor_type.kind != "f":
        return _call(ne, variable, variable)
    return _call(eq, variable, -np.inf if negative else np.inf)


def isreal(x: Any) -> Variable:
    """Whether the imaginary part is zero."""
    return _call(eq, imag(as_variable(x)), 0)


def iscomplex(x: Any) -> Variable:
    """Whether the imaginary part is not zero."""
    return _call(ne, imag(as_variable(x)), 0)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Variable:
    """The elements with NaN and infinities replaced, these by the largest finite numbers by default.

    Parameters
    ----------
    x
        A Variable or array; the real and imaginary parts of complex numbers are replaced each for itself.
    copy
        Only True: nobody can change a Variable.
    nan, posinf, neginf
        What stands in the place of NaN, and of positive and negative infinity.

    Raises
    ------
    ParameterError
        For ``copy=False``.
    """
    if not copy:
        raise ParameterError(describe("nan_to_num", ["copy=False"], "a Variable cannot be changed in place"))
    variable = as_variable(x)
    if variable.tensor_type.kind == "c":
        parts = [nan_to_num(part(variable), True, nan, posinf, neginf) for part in (real, imag)]
        return cast(add(parts[0], mul(parts[1], 1j)), variable.tensor_type.dtype)
    if variable.tensor_type.kind != "f":
        return variable
    dtype = variable.tensor_type.dtype
    limits = np.finfo(variable.tensor_type.numpy_dtype)
    highest = float(limits.max) if posinf is None else posinf
    lowest = float(limits.min) if neginf is None else neginf
    finite = switch(isnan(variable), cast(nan, dtype), variable)
    finite = switch(eq(variable, np.inf), cast(highest, dtype), finite)
    return _call(switch, eq(variable, -np.inf), cast(lowest, dtype), finite)


def angle(z: Any, deg: bool = False) -> Variable:
    """The angles of numbers in the complex plane, in radians or degrees; 0 or pi for real ones."""
    found = _call(angle_in_radians, z)
    return _call(mul, found, 180 / np.pi) if deg else found


def expit(x: Any) -> Variable:
    """``scipy.special.expit``: :func:`esat.sigmoid` in the dtypes of SciPy, which has no float16."""
    variable = as_variable(x)
    dtype = resolve_dtype("expit", special("expit"), (variable.tensor_type.numpy_dtype,))
    return _call(sigmoid, cast(variable, dtype))


def fabs(x: Any) -> Variable:
    """Absolute values as floats."""
    return _call(absolute, _cast_for(np.fabs, x))


def float_power(x1: Any, x2: Any) -> Variable:
    """``x1 ** x2`` in float64 at least, so that integers have negative powers too."""
    dtype = resolve_dtype("float_power", np.float_power, given_dtypes([x1, x2]))
    return _call(pow, cast(x1, dtype), cast(x2, dtype))


def heaviside(x1: Any, x2: Any) -> Variable:
    """0 for negative elements, ``x2`` for zeros, 1 for positive ones, NaN for NaN."""
    dtype = resolve_dtype("heaviside", np.heaviside, given_dtypes([x1, x2]))
    variable = cast(x1, dtype)
    side = switch(lt(variable, 0), 0, switch(gt(variable, 0), 1, variable))
    return _call(switch, eq(variable, 0), cast(x2, dtype), side)


def divmod(x1: Any, x2: Any) -> tuple[Variable, Variable]:
    """The quotients rounded down, and the remainders."""
    return _call(floor_div, x1, x2), _call(mod, x1, x2)


def modf(x: Any) -> tuple[Variable, Variable]:
    """Fractional and whole parts of real numbers, both with their signs."""
    variable = _cast_for(np.fabs, x)
    whole = _call(trunc, variable)
    rest = _call(switch, isinf(variable), 0, sub(variable, whole))
    return _call(copysign, rest, variable), whole


def sinc(x: Any) -> Variable:
    """``sin(pi x) / (pi x)``, 1 at zero; integers in float64."""
    variable = as_variable(x)
    if variable.tensor_type.kind in "biu":
        variable = cast(variable, "float64")
    is_zero = eq(variable, 0)
    angle = mul(np.pi, switch(is_zero, 1, variable))
    return _call(switch, is_zero, 1, div(sin(angle), angle))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Variable:
    """At each place the element of the first choice whose condition is true there, else ``default``.

    Raises
    ------
    ShapeError
        When there are not as many conditions as choices, or none.
    """
    if len(condlist) != len(choicelist) or not condlist:
        reason = f"{len(condlist)} conditions for {len(choicelist)} choices"
        raise ShapeError(describe("select", [], reason))
    dtype = common_dtype("select", [*choicelist, default])
    chosen = cast(default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        chosen = switch(condition, cast(choice, dtype), chosen)
    return chosen


def _cast_for(ufunc: np.ufunc, operand: Any) -> Variable:
    """The operand in the dtype that a ufunc computes in."""
    return cast(operand, resolve_dtype(ufunc.__name__, ufunc, given_dtypes([operand])))


around = round
fix = trunc


def _call(op: Op, *operands: Any) -> Variable:
    result: Variable = op(*operands)
    return result
