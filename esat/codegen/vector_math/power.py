"""Powers and roots."""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float
from esat.codegen.vector_math.double_word import DoubleWord, fast_two_sum, two_product, two_sum
from esat.codegen.vector_math.exponential import exp, exp_times, scale
from esat.codegen.vector_math.logarithm import log, split_exponent


def sqrt(x: Float) -> Float:
    """The square root, correctly rounded."""
    return x.sqrt()


def reciprocal_sqrt(x: Float) -> Float:
    """``1 / sqrt(x)``."""
    return 1.0 / x.sqrt()


def cbrt(x: Float) -> Float:
    """The real cube root.

    ``abs(x) = m * 2**(3 q + j)`` with ``j`` in -1, 0, 1: a polynomial in ``m`` starts Halley's iteration.
    """
    bits = x.format.bits
    m, k = split_exponent(abs(x))
    q = (k * (1 / 3)).round_to_even()
    j = k - 3.0 * q
    radicand = m * (j > 0.0).select(2.0, (j < 0.0).select(0.5, 1.0))
    start = m.polynomial(coefficients.CUBE_ROOT[bits])
    root = start * (j > 0.0).select(2 ** (1 / 3), (j < 0.0).select(0.5 ** (1 / 3), 1.0))
    for _ in range(2 if bits == 64 else 1):
        cube = root * root * root
        root = root + root * ((radicand - cube) / (cube + cube + radicand))
    value = scale(root, q.integral_to_integer())
    ordinary = (abs(x) > 0.0) & (abs(x) < math.inf)
    return ordinary.select(value.with_sign_of(x), x)


def log_double_word(x: Float) -> DoubleWord:
    """``log(x)`` for positive finite ``x``, to about 65 bits."""
    m, k = split_exponent(x)
    s = two_sum(m, m.float(-1.0)) / two_sum(m, m.float(1.0))
    square = s * s
    third = DoubleWord(m.float(2 / 3), m.float(3.700743415417188e-17))
    leading = square * third
    tail = (square.high * square.high) * square.high.polynomial(coefficients.LOGARITHM_QUOTIENT_TAIL[64])
    series = s * (leading + DoubleWord(tail, m.float(0.0)))
    twice = DoubleWord(s.high * 2.0, s.low * 2.0)
    ln2_high, ln2_low = coefficients.LN2[64]
    octaves = fast_two_sum(k * ln2_high, k * ln2_low)
    return octaves + (twice + series)


def power_of_magnitude(x: Float, y: Float) -> Float:
    """``abs(x)**y`` in 64 bits, for ``abs(x)`` positive and finite."""
    # Beyond 2**66 every power of every number but 1 is zero or infinite.
    exponent = y.clamp(-(2.0**66), 2.0**66)
    logarithm = log_double_word(abs(x))
    product = two_product(exponent, logarithm.high)
    high = product.high.clamp(-746.0, 710.0)
    low = abs(product.high).equals(abs(high)).select(product.low + exponent * logarithm.low, 0.0)
    return exp_times(high, low)


def power(x: Float, y: Float) -> Float:
    """``x**y`` with C's special values: ``pow(1, y)`` and ``pow(x, 0)`` are 1 even for NaN."""
    magnitude = abs(x)
    if x.format.bits == 64:
        value = power_of_magnitude(x, y)
    else:
        wide = exp(y.convert(64) * log(magnitude.convert(64)))
        value = wide.convert(32)
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
