"""Circular functions and their inverses.

``x = n pi/2 + r`` with ``abs(r) <= pi/4``. Up to :data:`LARGE`, ``n`` is small enough for the products with
the parts of pi/2 to be exact (Cody and Waite); up to :data:`LARGE_SINGLE`, fused operations in 32 bits do.
Beyond, Payne and Hanek's method multiplies the
significand by the digits of 2/pi that matter; those arguments are rare and take a branch.
"""

from __future__ import annotations

import math
from typing import Any

from esat.base.records import record
from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float, Integer, fast_two_sum, two_sum
from esat.codegen.vector_math.large_angle import reduce_large_angles, where_any

LARGE = 2.0**20
"""Where quotients by pi/2 get more than 20 bits."""
LARGE_SINGLE = 2.0**13
"""Where they are off by so much in 32 bits that remainders exceed pi/4 by more than a thousandth."""


@record(frozen=True)
class ReducedArgument:
    """``quadrant * pi/2 + high + low``; the remainder within pi/4, in 32 bits one number."""

    quadrant: Integer
    high: Float
    low: Float | None


def reduce_angle(x: Float, bits: int) -> ReducedArgument:
    """Reduce a 64-bit argument, well enough for a result of ``bits`` bits."""
    n = (x * (2 / math.pi)).round_to_even()
    parts = coefficients.HALF_PI[bits]
    first = x - n * parts[0]
    if bits == 32:
        high, low = first - n * parts[1], x.float(0.0)
    else:
        second = two_sum(first, -(n * parts[1]))
        third = two_sum(second.high, -(n * parts[2]))
        remainder = fast_two_sum(third.high, second.low + third.low - n * parts[3])
        high, low = remainder.high, remainder.low
    quadrant, high, low = reduce_large_angles(x, LARGE, n.integral_to_integer(), high, low)
    return ReducedArgument(quadrant, high, low)


def sine_and_cosine(angle: ReducedArgument) -> tuple[Float, Float]:
    """Both functions of the remainder."""
    r, low = angle.high, angle.low
    bits = r.format.bits
    square = r * r
    cube, of_sine = square * r, square.polynomial(coefficients.SINE[bits])
    fourth, of_cosine = square * square, square.polynomial(coefficients.COSINE[bits])
    # cos(r + low) = 1 - r**2/2 + (r**4 P - r low), with the rounding of the first difference kept.
    half_square = square * 0.5
    leading = 1.0 - half_square
    lost = (1.0 - leading) - half_square
    if low is None:
        return cube.multiply_add(of_sine, r), leading + fourth.multiply_add(of_cosine, lost)
    return (
        r + cube.multiply_add(of_sine, low),
        leading + (lost + fourth.multiply_add(of_cosine, -(r * low))),
    )


def reduce_single_angle(x: Float) -> ReducedArgument:
    """Reduce a 32-bit argument; the remainder is one number, right to about its last bit.

    The first step is exact: what is left is below one, and a multiple of the last bit of pi/2's first part.
    """
    n = (x * (2 / math.pi)).round_to_even()
    r = x
    for part in coefficients.HALF_PI_SINGLE[32]:
        r = n.fused_multiply_add(x.float(-part), r)
    quadrant = n.integral_to_integer()

    def in_double() -> tuple[Any, Any]:
        angle = reduce_angle(x.convert(64), 32)
        return angle.quadrant.narrow().value, angle.high.convert(32).value

    merged = where_any(abs(x) >= LARGE_SINGLE, (quadrant.value, r.value), in_double)
    return ReducedArgument(quadrant.integer(merged[0]), r.float(merged[1]), None)


def _reduced(x: Float) -> tuple[Integer, Float, Float]:
    """Quadrant, sine and cosine of the remainder, in the format of ``x``."""
    angle = reduce_angle(x, 64) if x.format.bits == 64 else reduce_single_angle(x)
    return angle.quadrant, *sine_and_cosine(angle)


def _in_quadrant(quadrant: Integer, sine: Float, cosine: Float) -> Float:
    """The sine of ``quadrant * pi/2 + r`` from the sine and cosine of ``r``."""
    value = (quadrant & 1).is_zero().select(sine, cosine)
    sign = (quadrant & 2) << (value.format.bits - 2)
    return (value.bits() ^ sign).bits_to_float()


def sin(x: Float) -> Float:
    """The sine; NaN for infinities."""
    value = _in_quadrant(*_reduced(x))
    return x.equals(0.0).select(x, value)


def cos(x: Float) -> Float:
    """The cosine; NaN for infinities."""
    quadrant, sine, cosine = _reduced(x)
    return _in_quadrant(quadrant + 1, sine, cosine)


def tan(x: Float) -> Float:
    """The tangent; NaN for infinities."""
    quadrant, sine, cosine = _reduced(x)
    is_even = (quadrant & 1).is_zero()
    value = is_even.select(sine, -cosine) / is_even.select(cosine, sine)
    return x.equals(0.0).select(x, value)


def _half_pi(x: Float, multiple: float) -> tuple[float, float]:
    """A multiple of pi/2 by a power of two or zero, in two parts."""
    high, low = coefficients.HALF_PI_DOUBLE_WORD[x.format.bits]
    return multiple * high, multiple * low


def _odd(x: Float, table: tuple[float, ...]) -> Float:
    """``P(x**2) * x**2``: what a function adds to ``x``, relative to ``x``."""
    square = x * x
    return square * square.polynomial(table)


def atan(x: Float) -> Float:
    """The arc tangent. Arguments above tan(pi/8) and tan(3 pi/8) are rotated by pi/4 and pi/2."""
    magnitude = abs(x)
    above, far_above = magnitude > math.tan(math.pi / 8), magnitude > math.tan(3 * math.pi / 8)
    numerator = far_above.select(-1.0, above.select(magnitude - 1.0, magnitude))
    denominator = far_above.select(magnitude, above.select(magnitude + 1.0, 1.0))
    t = numerator / denominator
    (quarter, quarter_low), (half, half_low) = _half_pi(x, 0.5), _half_pi(x, 1.0)
    high = far_above.select(half, above.select(quarter, 0.0))
    low = far_above.select(half_low, above.select(quarter_low, 0.0))
    value = high + (t + t.multiply_add(_odd(t, coefficients.ARCTANGENT[x.format.bits]), low))
    return value.with_sign_of(x)


def atan2(y: Float, x: Float) -> Float:
    """The angle of the point (x, y), in [-pi, pi]."""
    width, height = abs(x), abs(y)
    both_infinite = width.equals(math.inf) & height.equals(math.inf)
    slope = both_infinite.select(1.0, height.equals(0.0).select(height, height / width))
    angle = atan(slope)
    high, low = _half_pi(x, 2.0)
    is_left = x.float(1.0).with_sign_of(x) < 0.0
    value = is_left.select(high - (angle - low), angle)
    return (x.is_nan() | y.is_nan()).select(math.nan, value).with_sign_of(y)


def _arcsine_parts(magnitude: Float) -> tuple[Float, Float]:
    """``(t, e)`` with ``asin(t) = t + e``: t is the magnitude a, or ``sqrt((1 - a) / 2)`` above 1/2."""
    t = (magnitude > 0.5).select(((1.0 - magnitude) * 0.5).sqrt(), magnitude)
    return t, t * _odd(t, coefficients.ARCSINE[magnitude.format.bits])


def asin(x: Float) -> Float:
    """The arc sine; NaN beyond 1."""
    magnitude = abs(x)
    t, excess = _arcsine_parts(magnitude)
    high, low = _half_pi(x, 1.0)
    folded = high - (2.0 * t + (2.0 * excess - low))
    return (magnitude > 0.5).select(folded, t + excess).with_sign_of(x)


def acos(x: Float) -> Float:
    """The arc cosine; NaN beyond 1."""
    magnitude = abs(x)
    t, excess = _arcsine_parts(magnitude)
    half, half_low = _half_pi(x, 1.0)
    pi, pi_low = _half_pi(x, 2.0)
    twice = 2.0 * (t + excess)
    near = half - (t.with_sign_of(x) + (excess.with_sign_of(x) - half_low))
    folded = (x < 0.0).select(pi - (twice - pi_low), twice)
    return (magnitude > 0.5).select(folded, near)
