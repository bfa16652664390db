"""Powers and roots."""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import DoubleWord, Float, fast_two_sum, two_product
from esat.codegen.vector_math.exponential import exp_times, limits
from esat.codegen.vector_math.logarithm import split_exponent


def sqrt(x: Float) -> Float:
    """The square root, correctly rounded."""
    return x.sqrt()


def reciprocal_sqrt(x: Float) -> Float:
    """``1 / sqrt(x)``."""
    return 1.0 / x.sqrt()


def inverse_cube_root(x: Float) -> Float:
    """``x**(-1/3)`` for positive normal ``x``, to 16 bits.

    The bit pattern of a number is nearly linear in its logarithm, so that a third of it is taken away from a
    constant: that is right to 4 %. Then comes one step of the series of ``(1 - e)**(-1/3)``.
    """
    format_ = x.format
    dropped = {32: 10, 64: 32}[format_.bits]
    # Taken from 4/3 of the bias: what makes the error as small as it can be.
    constant = math.ldexp(4 / 3 * format_.bias - 0.068, format_.fraction_bits - dropped)
    third = (x.bits() >> dropped).small_to_float() * (1 / 3)
    r = ((constant - third).integral_to_integer() << dropped).bits_to_float()
    e = 1.0 - (x * r) * (r * r)
    series = e.multiply_add(14 / 81, 2 / 9).multiply_add(e, 1 / 3)
    return (r * e).multiply_add(series, r)


def cbrt(x: Float) -> Float:
    """The real cube root: ``a * r**2``, where ``r`` is about ``a**(-1/3)``, after one step of Newton's."""
    bits = x.format.bits
    magnitude = abs(x)
    denormal = magnitude < x.format.smallest_normal
    raised = 54 if bits == 64 else 24
    a = denormal.select(magnitude * 2.0**raised, magnitude)
    r = inverse_cube_root(a)
    if bits == 64:
        r = (r * (1.0 - (a * r) * (r * r))).multiply_add(1 / 3, r)
    square = r * r
    root = a * square
    residual = (-(root * root)).multiply_add(root, a)
    root = residual.multiply_add(square * (1 / 3), root)
    root = root * denormal.select(2.0 ** (-raised // 3), 1.0)
    ordinary = (magnitude > 0.0) & (magnitude < math.inf)
    return ordinary.select(root.with_sign_of(x), x)


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
    # Zero and infinity are the ends of what the logarithm takes; NaN goes the same way, and is put in below.
    between = (magnitude > 0.0) & (magnitude < math.inf)
    grows = (magnitude > 1.0) ^ (y < 0.0)
    value = between.select(value, grows.select(math.inf, 0.0))
    value = is_odd.select(value.with_sign_of(x), value)
    undefined = (x < 0.0) & (magnitude < math.inf) & ~is_integer
    value = (undefined | x.is_nan() | y.is_nan()).select(math.nan, value)
    return (x.equals(1.0) | y.equals(0.0)).select(1.0, value)
