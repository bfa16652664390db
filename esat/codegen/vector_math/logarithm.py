"""Logarithms, and the functions made of them.

A positive number is ``2**k * m`` with ``m`` in [sqrt(1/2), sqrt(2)). In 64 bits, ``log(m)`` is the odd
series in ``s = (m - 1) / (m + 1)``, as in FreeBSD's ``e_log.c``; in 32 bits a polynomial in ``m - 1``.
"""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float, Integer, Mask, two_sum
from esat.codegen.vector_math.exponential import decay, decay_times, exp_and_expm1, limits


def split_normal(x: Float) -> tuple[Float, Integer]:
    """``(m, k)`` with ``x = m * 2**k`` and ``m`` in [sqrt(1/2), sqrt(2)), for normal ``x > 0``."""
    format_ = x.format
    pattern = x.bits()
    k = (pattern - format_.bit_pattern(math.sqrt(0.5))) >> format_.fraction_bits
    return (pattern - (k << format_.fraction_bits)).bits_to_float(), k


def split_exponent(x: Float) -> tuple[Float, Float]:
    """``(m, k)`` as :func:`split_normal`, but for denormal numbers too, and ``k`` as a float."""
    denormal = x < x.format.smallest_normal
    scaling = x.format.fraction_bits + 2
    m, k = split_normal(denormal.select(x * 2.0**scaling, x))
    return m, k.small_to_float(less=(denormal, scaling))


def log_of_parts(f: Float, k: Float) -> Float:
    """``log((1 + f) * 2**k)`` for ``1 + f`` in [sqrt(1/2), sqrt(2)]."""
    if f.format.bits == 32:
        square = f * f
        tail = (square * f) * f.polynomial(coefficients.LOGARITHM[32])
        tail = square.multiply_add(-0.5, tail)
        # What the nearest number lacks of ln(2) is 2**-29 of it, which never reaches the last bits.
        return k.multiply_add(math.log(2), f + tail)
    ln2_high, ln2_low = coefficients.LN2[64]
    half_square, remainder = quotient_series(f)
    low = k.multiply_add(ln2_low, remainder)
    return k.multiply_add(ln2_high, f - (half_square - low))


def quotient_series(f: Float) -> tuple[Float, Float]:
    """``(h, t)`` with ``log(1 + f) = f - (h - t)``, where ``h = f**2 / 2`` is the larger."""
    s = f / (f + 2.0)
    z = s * s
    series = z * z.polynomial(coefficients.LOGARITHM_OF_QUOTIENT[f.format.bits])
    half_square = (f * 0.5) * f
    return half_square, s * (half_square + series)


def with_special_values(argument: Float, value: Float) -> Float:
    """A logarithm's ``value``, corrected where ``argument`` is zero, negative, infinite or NaN."""
    if argument.format.target.selects_by_masks:
        value = argument.equals(math.inf).select(math.inf, value)
        value = (argument >= 0.0).select(value, argument.float(math.nan))
    else:
        # Copies of the sign bit make NaN of what is below zero: the units that compare have enough to do.
        value = (value.bits() | argument.sign_everywhere()).bits_to_float()
        value = (argument < math.inf).select(value, argument)
    return argument.equals(0.0).select(-math.inf, value)


def log(x: Float) -> Float:
    """The natural logarithm."""
    m, k = split_exponent(x)
    return with_special_values(x, log_of_parts(m - 1.0, k))


def log1p(x: Float) -> Float:
    """``log(1 + x)`` without the rounding of the sum."""
    total = x + 1.0
    rounding = (total >= 2.0).select(1.0 - (total - x), x - (total - 1.0))
    value = log_of_sum(total, rounding, x, abs(x) < 0.25)
    return x.equals(0.0).select(x, with_special_values(total, value))


def log1p_of_positive(x: Float) -> Float:
    """``log(1 + x)`` for ``x >= 0``; NaN stays NaN."""
    total = x + 1.0
    rounding = (total >= 2.0).select(1.0 - (total - x), x - (total - 1.0))
    value = log_of_sum(total, rounding, x, x < 0.25)
    return (total < math.inf).select(value, total)


def log_of_sum(total: Float, rounding: Float, addend: Float, is_small: Mask) -> Float:
    """``log(1 + addend)``, where ``total + rounding`` is ``1 + addend``.

    Where ``is_small`` holds, ``addend`` is within [-0.25, 0.25] and its logarithm is computed from itself.
    """
    m, k = split_normal(total)
    f = m - 1.0
    # log(total + c) = log(total) + c/total; one over m = 1 + f is 1 - f + f**2 to a few bits, enough for c.
    # The halved power of two is finite for the largest k, where it is zero.
    reciprocal = (k.integer(1) - k).power_of_two() * 0.5 * (f - 1.0).multiply_add(f, 1.0)
    value = log_of_parts(is_small.select(addend, f), is_small.select(0.0, k.small_to_float()))
    return value + is_small.select(0.0, rounding * reciprocal)


def log1p_of_unit(e: Float) -> Float:
    """``log(1 + e)`` for ``e`` in [0, 1]; NaN stays NaN."""
    is_large = e > math.sqrt(2) - 1
    return log_of_parts(is_large.select((e - 1.0) * 0.5, e), is_large.select(1.0, 0.0))


def log2(x: Float) -> Float:
    """The logarithm to base 2; exact for powers of two, where the polynomial is multiplied by zero."""
    m, k = split_exponent(x)
    f = m - 1.0
    slope = f.polynomial(coefficients.BINARY_LOGARITHM[x.format.bits])
    return with_special_values(x, f.multiply_add(slope, k))


def log10(x: Float) -> Float:
    """The logarithm to base 10; right for powers of ten, where it is rounded once from more bits."""
    bits = x.format.bits
    per_octave = coefficients.LOG10_OF_2[bits]
    m, k = split_exponent(x)
    f = m - 1.0
    low = k.multiply_add(per_octave[1], f * f.polynomial(coefficients.DECIMAL_LOGARITHM[bits]))
    return with_special_values(x, k.multiply_add(per_octave[0], low))


def softplus(x: Float) -> Float:
    """``log(1 + exp(x))``."""
    return (x > 0.0).select(x, 0.0) + log1p_of_unit(decay(-abs(x)))


def log1mexp(x: Float) -> Float:
    """``log(1 - exp(x))`` for ``x < 0``; NaN above zero.

    Above -ln(2) it is ``log(-expm1(x))``, below ``log1p(-exp(x))`` (Maechler, "Accurately computing
    log(1 - exp(-abs(a)))", 2012); both share one logarithm.
    """
    near = x > -math.log(2)
    power, excess = exp_and_expm1(x)
    addend = -power
    total = near.select(-excess, addend + 1.0)
    rounding = near.select(0.0, addend - (total - 1.0))
    is_small = (addend > -0.25) & ~near
    m, k = split_exponent(total)
    value = log_of_parts(is_small.select(addend, m - 1.0), is_small.select(0.0, k))
    value = value + is_small.select(0.0, rounding / total)
    # The result is never positive: this keeps the sign of -0.0.
    return with_special_values(total, -abs(value))


def logaddexp(a: Float, b: Float) -> Float:
    """``log(exp(a) + exp(b))`` without overflow.

    The error is a few units in the last place of the larger of the result and the larger operand:
    where these cancel, at results near zero, no formula in the same precision does better.
    """
    is_first = a > b
    larger, smaller = is_first.select(a, b), is_first.select(b, a)
    distance = two_sum(smaller, -larger)
    is_near = distance.high > limits(a)[0]
    high = a.equals(b).select(0.0, distance.high).clamp(limits(a)[0], 0.0)
    return larger + log1p_of_unit(decay_times(high, is_near.select(distance.low, 0.0)))
