"""The error function and its complements.

Near zero ``erf`` is an odd polynomial; elsewhere all three come from ``erfcx(x) (x + 1/2)``, a polynomial in
``t = (x - 4) / (x + 4)`` for all ``x >= 0`` (Shepherd and Laframboise, Math. Comp. 36, 1981).
"""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float
from esat.codegen.vector_math.double_word import two_product
from esat.codegen.vector_math.exponential import exp_times, limits

_NEAR = 0.75


def scaled_complement(magnitude: Float) -> tuple[Float, Float]:
    """``(p, q)`` with ``erfcx(magnitude) = p / q`` for ``magnitude >= 0``."""
    finite = (magnitude > 1e30).select(1e30, magnitude)
    t = (finite - 4.0) / (finite + 4.0)
    return t.polynomial(coefficients.SCALED_COMPLEMENT[magnitude.format.bits]), magnitude + 0.5


def complement(magnitude: Float, compensated: bool) -> Float:
    """``erfc(magnitude)`` for ``magnitude >= 1/2``; finite below.

    ``compensated`` takes out the rounding of the quotient, where the result is not subtracted from one.
    """
    largest = 28.0 if magnitude.format.bits == 64 else 11.0
    x = (magnitude > largest).select(largest, magnitude)
    numerator, denominator = scaled_complement(x)
    quotient = numerator / denominator
    square = two_product(x, x)
    low = -square.low
    if compensated:
        # What rounding took, relative to the quotient, goes into the exponent: the numerator is within
        # [0.5, 0.62], so that one over it is about 1.75.
        remainder = (-quotient).fused_multiply_add(denominator, numerator)
        remainder = remainder - quotient * (0.5 - (denominator - x))
        low = remainder.multiply_add(1.75, low)
    return exp_times(-square.high, low, quotient)


def near_zero(x: Float) -> Float:
    """``erf(x)`` for ``abs(x) <= 0.75``."""
    return (x * x).polynomial(coefficients.ERROR_FUNCTION[x.format.bits]).multiply_add(x, x)


def erf(x: Float) -> Float:
    """The error function."""
    magnitude = abs(x)
    far = (1.0 - complement(magnitude, compensated=False)).with_sign_of(x)
    return (magnitude < _NEAR).select(near_zero(x), far)


def erfc(x: Float) -> Float:
    """``1 - erf(x)`` without cancellation."""
    magnitude = abs(x)
    upper = complement(magnitude, compensated=True)
    far = (x < 0.0).select(2.0 - upper, upper)
    return (magnitude < 0.5).select(1.0 - near_zero(x), far)


def erfcx(x: Float) -> Float:
    """``exp(x**2) erfc(x)``."""
    magnitude = abs(x)
    numerator, denominator = scaled_complement(magnitude)
    upper = numerator / denominator
    largest = math.sqrt(limits(x)[1])
    finite = (magnitude > largest).select(largest, magnitude)
    square = two_product(finite, finite)
    growth = exp_times(square.high, square.low)
    lower = (magnitude >= largest).select(math.inf, growth * 2.0 - upper)
    far = (x < 0.0).select(lower, upper)
    return (magnitude < 0.5).select(growth * (1.0 - near_zero(x)), far)
