"""Powers and roots."""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float
from esat.codegen.vector_math.double_word import DoubleWord, fast_two_sum, two_product
from esat.codegen.vector_math.exponential import exp_times, limits
from esat.codegen.vector_math.logarithm import split_exponent


def sqrt(x: Float) -> Float:
    """The square root, correctly rounded."""
    return x.sqrt()


def reciprocal_sqrt(x: Float) -> Float:
    """``1 / sqrt(x)``."""
    return 1.0 / x.sqrt()


def cbrt(x: Float) -> Float:
    """The real cube root.

    ``abs(x) = m * 2**(3 q + j)`` with ``j`` in -1, 0, 1: a polynomial in ``m`` is refined
    by one step of Halley's iteration, which triples the number of right digits.
    """
    bits = x.format.bits
    m, k = split_exponent(abs(x))
    q = (k * (1 / 3)).round_to_even()
    j = k - 3.0 * q
    radicand = m * (j > 0.0).select(2.0, (j < 0.0).select(0.5, 1.0))
    start = m.polynomial(coefficients.CUBE_ROOT[bits])
    root = start * (j > 0.0).select(2 ** (1 / 3), (j < 0.0).select(0.5 ** (1 / 3), 1.0))
    cube = root * root * root
    root = root + root * ((radicand - cube) / (cube + cube + radicand))
    value = root * q.integral_to_integer().power_of_two()  # a normal number, as all cube roots are
    ordinary = (abs(x) > 0.0) & (abs(x) < math.inf)
    return ordinary.select(value.with_sign_of(x), x)


def log_double_word(x: Float) -> DoubleWord:
    """``log(x)`` for positive finite ``x``, nine bits better than one number holds.

    ``x = 2**k (1 + f) / c``, with the factor ``c``, of few bits, that brings ``x`` nearest to one:
    ``abs(f)`` is at most 0.081. The leading terms ``k ln(2) - log(c) + f - f**2 / 2`` are summed exactly.
    """
    bits = x.format.bits
    m, k = split_exponent(x)
    first, *others = coefficients.SCALED_LOGARITHMS[bits]
    factor, high, low = (m.float(part) for part in first)
    for (previous, *_), entry in zip(coefficients.SCALED_LOGARITHMS[bits], others, strict=False):
        # Geometric means of the reciprocals are where one factor becomes as good as the next.
        beyond = m > 1 / math.sqrt(previous * entry[0])
        factor, high, low = (
            beyond.select(new, old) for new, old in zip(entry, (factor, high, low), strict=True)
        )
    ln2_high, ln2_low = coefficients.LN2[bits]
    scaled = two_product(m, factor)
    f = scaled.high - 1.0
    linear = fast_two_sum(k * ln2_high + high, f)
    square = two_product(f * -0.5, f)
    leading = fast_two_sum(linear.high, square.high)
    # log(1 + f + d) = log(1 + f) + d / (1 + f), and 1 / (1 + f) is (1 - f) (1 + f**2) up to f**4.
    remainder = scaled.low - scaled.low * f
    remainder = remainder.multiply_add(f * f, remainder)
    small = k.multiply_add(ln2_low, low) + remainder
    small = small + (linear.low + leading.low + square.low)
    tail = (f * f) * f * f.polynomial(coefficients.LOGARITHM_NEAR_ONE[bits])
    return fast_two_sum(leading.high, small + tail)


def power_of_magnitude(x: Float, y: Float) -> Float:
    """``x**y`` for positive finite ``x``."""
    # Beyond 2**66 every power of every number but 1 is zero or infinite.
    exponent = y.clamp(-(2.0**66), 2.0**66)
    logarithm = log_double_word(x)
    product = two_product(exponent, logarithm.high)
    low = product.low + exponent * logarithm.low
    high = product.high.clamp(*limits(x))
    return exp_times(high, high.equals(product.high).select(low, 0.0))


def power(x: Float, y: Float) -> Float:
    """``x**y`` with C's special values: ``pow(1, y)`` and ``pow(x, 0)`` are 1 even for NaN."""
    magnitude = abs(x)
    value = power_of_magnitude(magnitude, y)
    half = y * 0.5
    is_integer = y.round_to_even().equals(y)
    is_odd = is_integer & ~half.round_to_even().equals(half)
    value = magnitude.equals(0.0).select((y < 0.0).select(math.inf, 0.0), value)
    value = magnitude.equals(math.inf).select((y < 0.0).select(0.0, math.inf), value)
    value = is_odd.select(value.with_sign_of(x), value)
    undefined = (x < 0.0) & (magnitude < math.inf) & ~is_integer
    undefined = undefined | x.is_nan() | y.is_nan()
    value = undefined.select(math.nan, value)
    value = (x.equals(-1.0) & abs(y).equals(math.inf)).select(1.0, value)
    return (x.equals(1.0) | y.equals(0.0)).select(1.0, value)
