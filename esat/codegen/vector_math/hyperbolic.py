"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float
from esat.codegen.vector_math.exponential import exp_times, limits, minus_one, reduce_exponential
from esat.codegen.vector_math.logarithm import log1p_of_positive


def odd_polynomial(x: Float, table: tuple[float, ...]) -> Float:
    """``x + x**3 * P(x**2)``."""
    square = x * x
    return (square * square.polynomial(table)).multiply_add(x, x)


def tanh(x: Float) -> Float:
    """The hyperbolic tangent: ``e / (e + 2)`` for ``e = exp(2 abs(x)) - 1``.

    A number that is lost beside 1 is its own hyperbolic tangent, or ``tanh(x) - x`` would be anything. A
    polynomial for those near 0 would be twice as near to the true value in float32, and take half as long
    again.
    """
    limit = 20.0 if x.format.bits == 64 else 10.0
    magnitude = abs(x)
    reduced = reduce_exponential((magnitude > limit).select(limit, magnitude) * 2.0)
    excess = minus_one(reduced.excess, reduced.exponent)  # exponents are those of normal numbers here
    is_tiny = magnitude < (2.0**-27 if x.format.bits == 64 else 2.0**-12)
    return is_tiny.select(magnitude, excess / (excess + 2.0)).with_sign_of(x)


def half_exp(magnitude: Float) -> Float:
    """``exp(magnitude) / 2``, finite a little beyond where ``exp`` overflows."""
    return exp_times(magnitude.clamp(0.0, limits(magnitude)[1] + 1.0), None, exponent=-1)


def sinh(x: Float) -> Float:
    """The hyperbolic sine."""
    magnitude = abs(x)
    half = half_exp(magnitude)
    near = odd_polynomial(magnitude, coefficients.HYPERBOLIC_SINE[x.format.bits])
    return (magnitude < 1.0).select(near, half - 0.25 / half).with_sign_of(x)


def cosh(x: Float) -> Float:
    """The hyperbolic cosine."""
    half = half_exp(abs(x))
    return half + 0.25 / half


def _large(x: Float) -> float:
    """Where squares are still finite and ``log(2 x)`` stands for both inverse functions."""
    return 2.0**60 if x.format.bits == 64 else 2.0**30


def asinh(x: Float) -> Float:
    """The inverse hyperbolic sine: ``log1p(a + a**2 / (1 + sqrt(a**2 + 1)))`` for ``a = abs(x)``."""
    magnitude = abs(x)
    large = magnitude > _large(x)
    square = magnitude * magnitude
    near = magnitude + square / ((square + 1.0).sqrt() + 1.0)
    value = log1p_of_positive(large.select(magnitude, near)) + large.select(math.log(2), 0.0)
    return value.with_sign_of(x)


def acosh(x: Float) -> Float:
    """The inverse hyperbolic cosine: ``log1p(t + sqrt(t (t + 2)))`` for ``t = x - 1``; NaN below 1."""
    large = x > _large(x)
    t = x - 1.0
    near = t + (t * (t + 2.0)).sqrt()
    value = log1p_of_positive(large.select(x, near)) + large.select(math.log(2), 0.0)
    return (x >= 1.0).select(value, x.float(math.nan))


def atanh(x: Float) -> Float:
    """The inverse hyperbolic tangent: ``log1p(2 a / (1 - a)) / 2`` for ``a = abs(x)``; NaN beyond 1."""
    magnitude = abs(x)
    value = log1p_of_positive((magnitude + magnitude) / (1.0 - magnitude)) * 0.5
    return (magnitude <= 1.0).select(value, x.float(math.nan)).with_sign_of(x)
