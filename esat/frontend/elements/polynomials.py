"""Polynomials as vectors of coefficients, the highest first, under NumPy's older names."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import ParameterError, ShapeError, describe
from esat.frontend.arrays.indexing import inc_subtensor
from esat.frontend.arrays.shaping import atleast_1d, concatenate, stack
from esat.frontend.elements.sequences import convolve, vander
from esat.frontend.linear_algebra.eigenvalues import eigvals
from esat.frontend.linear_algebra.linalg_functions import lstsq
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "roots"]


def _coefficients(name: str, p: Any) -> tuple[Variable, int]:
    variable = atleast_1d(as_variable(p))
    count = variable.tensor_type.shape[0] if variable.ndim == 1 else None
    if count is None:
        raise ShapeError(describe(name, [variable.type], "takes a vector of a known number of coefficients"))
    return variable, count


def polymul(a1: Any, a2: Any) -> Variable:
    """The product of two polynomials."""
    return convolve(_coefficients("polymul", a1)[0], _coefficients("polymul", a2)[0])


def polydiv(u: Any, v: Any) -> tuple[Variable, Variable]:
    """The quotient of two polynomials, and what remains.

    The remainder has one coefficient less than the divisor, or one, where NumPy leaves out leading zeros.
    """
    name = "polydiv"
    (dividend, m), (divisor, n) = _coefficients(name, u), _coefficients(name, v)
    dtype = np.result_type(dividend.dtype, divisor.dtype)
    if dtype.kind not in "fc":
        dtype = np.dtype("float64")
    rest, divisor = cast(dividend, dtype), cast(divisor, dtype)
    if m < n:
        return as_variable(np.zeros(1, dtype)), rest
    scale = op_named("reciprocal")(divisor[0])
    quotient = []
    for place in range(m - n + 1):
        quotient.append(scale * rest[place])
        rest = inc_subtensor(rest[place : place + n], -quotient[-1] * divisor)
    left = rest[m - n + 1 :] if n > 1 else as_variable(np.zeros(1, dtype))
    return stack(quotient), left


def poly(seq_of_zeros: Any) -> Variable:
    """The coefficients of the polynomial with these roots and a leading 1; or of the characteristic one.

    Parameters
    ----------
    seq_of_zeros
        A vector of a known number of roots, or a square matrix of a known size.

    Returns
    -------
    Coefficients, complex for complex roots and for matrices, where NumPy's may be real by their values.

    Raises
    ------
    ShapeError
        For other arrays, or unknown sizes.

    Examples
    --------
    >>> esat.poly([1.0, -2.0]).eval()
    array([ 1.,  1., -2.])
    """
    given = atleast_1d(as_variable(seq_of_zeros))
    values = eigvals(given) if given.ndim == 2 else given
    zeros, count = _coefficients("poly", values)
    if zeros.tensor_type.dtype not in ("float32", "float64", "complex64", "complex128"):
        zeros = cast(zeros, "float64")
    result = as_variable(np.ones(1, zeros.dtype))
    for place in range(count):
        result = convolve(result, stack([np.ones((), zeros.dtype), -zeros[place]]))
    return result


def roots(p: Any) -> Variable:
    """The roots of a polynomial, as eigenvalues of its companion matrix; complex always.

    Parameters
    ----------
    p
        A vector of a known number of coefficients, the first of which is not zero: leading zeros are not
        left out as NumPy does.

    Raises
    ------
    ShapeError
        When their number is not known.
    LinearAlgebraError
        At run time, when the first is zero.

    Examples
    --------
    >>> esat.roots([1.0, 0.0, 4.0]).eval().round(6)
    array([-0.+2.j,  0.-2.j])
    """
    coefficients, count = _coefficients("roots", p)
    if coefficients.tensor_type.dtype not in ("float32", "float64", "complex64", "complex128"):
        coefficients = cast(coefficients, "float64")
    if count < 2:
        return eigvals(np.zeros((0, 0), coefficients.dtype))
    top = -coefficients[1:] / coefficients[0]
    below = np.eye(count - 2, count - 1, dtype=coefficients.dtype)
    return eigvals(concatenate([top[None], below]))


def _combined(name: str, operation: str, a1: Any, a2: Any) -> Variable:
    (left, m), (right, n) = _coefficients(name, a1), _coefficients(name, a2)
    size = max(m, n)
    parts = [
        part if count == size else concatenate([np.zeros(size - count, part.dtype), part])
        for part, count in ((left, m), (right, n))
    ]
    result: Variable = op_named(operation)(*parts)
    return result


def polyadd(a1: Any, a2: Any) -> Variable:
    """The sum of two polynomials."""
    return _combined("polyadd", "add", a1, a2)


def polysub(a1: Any, a2: Any) -> Variable:
    """The difference of two polynomials."""
    return _combined("polysub", "sub", a1, a2)


def polyder(p: Any, m: int = 1) -> Variable:
    """The derivative of a polynomial, ``m`` times."""
    variable, count = _coefficients("polyder", p)
    if m < 0:
        raise ParameterError(
            describe("polyder", [f"m={m}"], "a polynomial is differentiated 0 times or more")
        )
    for _ in range(min(int(m), count)):
        variable = variable[:-1] * np.arange(count - 1, 0, -1)
        count -= 1
    return variable


def polyint(p: Any, m: int = 1, k: Any = None) -> Variable:
    """The integral of a polynomial, ``m`` times, with constants ``k``, by default zeros."""
    variable, count = _coefficients("polyint", p)
    if not 0 <= m <= 64:
        raise ParameterError(describe("polyint", [f"m={m}"], "a polynomial is integrated 0 to 64 times"))
    constants = np.zeros(int(m)) if k is None else atleast_1d(as_variable(k)) + np.zeros(int(m))
    for place in range(int(m)):
        raised = op_named("div")(variable, np.arange(count, 0, -1))
        variable = concatenate([raised, constants[place : place + 1]])
        count += 1
    return variable


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, w: Any = None) -> Variable:
    """The polynomial of a degree that is nearest to points, by least squares.

    Parameters
    ----------
    x
        A vector of places.
    y
        A vector of values there, or a matrix with a column for each polynomial.
    deg
        The degree.
    rcond
        Singular values less than so many times the largest count as zero; by default the number of points
        times the rounding error.
    w
        Weights of the points, by which their distances are multiplied.

    Raises
    ------
    ShapeError
        When ``x`` is no vector of a known number of elements.
    ParameterError
        For a negative degree.

    Examples
    --------
    >>> esat.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).eval().round(6)
    array([2., 1.])
    """
    places, count = _coefficients("polyfit", op_named("add")(x, 0.0))
    values = op_named("add")(y, 0.0)
    if deg < 0:
        raise ParameterError(describe("polyfit", [f"deg={deg}"], "a degree is 0 or more"))
    powers = vander(places, int(deg) + 1)
    if w is not None:
        weights = as_variable(w)
        powers, values = (
            powers * weights[:, None],
            values * (weights if values.ndim == 1 else weights[:, None]),
        )
    scale = op_named("sqrt")((powers * powers).sum(axis=0))
    limit = count * float(np.finfo(powers.dtype).eps) if rcond is None else rcond
    found = lstsq(powers / scale, cast(values, powers.dtype), limit)[0]
    result: Variable = op_named("div")(found, scale if found.ndim == 1 else scale[:, None])
    return result
