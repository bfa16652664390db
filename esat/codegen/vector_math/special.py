"""The error function and its complements, the logarithm of the gamma function and its derivative.

Near zero ``erf`` is an odd polynomial. Elsewhere it and ``erfc`` come from ``exp(x**2) erfc(x)``, as a
quotient ``p / ((a x + b) p + r)`` of polynomials of ``x >= 0``, all of whose coefficients are positive: what
rounding does to ``p`` mostly cancels. To ``erfcx`` no ``x`` is too large; it takes
``exp(x**2) erfc(x) (x + 1/2)`` as a polynomial in ``t = (x - 4) / (x + 4)`` (Shepherd and Laframboise, Math.
Comp. 36, 1981). ``erf`` of float32 needs no division: its complement is the exponential of a polynomial.

In the logarithm of the gamma function three ranges share one logarithm: Stirling's series from 8 on, a
polynomial around 2 that carries the zeros at 1 and 2 as factors, and the recurrence
``gamma(x + 1) = x gamma(x)`` between and below. Negative arguments are reflected.
Its derivative, too, has a series for large arguments, and a polynomial between 1 and 2 that carries the zero
as a factor; what the recurrence adds is collected in one quotient.
"""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float, two_product
from esat.codegen.vector_math.exponential import (
    exp_times,
    limits,
    reduce_binary_exponential,
    reduce_decay_of_square,
    scale_down,
)
from esat.codegen.vector_math.logarithm import log

_NEAR = 0.75


def scaled_complement(magnitude: Float) -> tuple[Float, Float]:
    """``(p, q)`` with ``erfcx(magnitude) = p / q`` for ``magnitude >= 0``."""
    finite = (magnitude > 1e30).select(1e30, magnitude)
    t = (finite - 4.0) / (finite + 4.0)
    return t.polynomial(coefficients.SCALED_COMPLEMENT[magnitude.format.bits]), magnitude + 0.5


def complement(magnitude: Float) -> Float:
    """``erfc(magnitude)`` for ``magnitude >= 0``."""
    bits = magnitude.format.bits
    largest = 27.5 if bits == 64 else 10.2
    x = (magnitude > largest).select(largest, magnitude)
    numerator = x.polynomial(coefficients.COMPLEMENT_COMMON[bits])
    line = x.polynomial(coefficients.COMPLEMENT_LINE[bits])
    denominator = line.multiply_add(numerator, x.polynomial(coefficients.COMPLEMENT_REST[bits]))
    power = reduce_decay_of_square(x)
    # The division comes last: until then, neither the quotient's parts nor the power wait for it.
    return scale_down(numerator.multiply_add(power.excess, numerator) / denominator, power.exponent)


def near_zero(x: Float) -> Float:
    """``erf(x)`` for ``abs(x) <= 0.75``."""
    return (x * x).polynomial(coefficients.ERROR_FUNCTION[x.format.bits]).multiply_add(x, x)


def erf(x: Float) -> Float:
    """The error function."""
    magnitude = abs(x)
    if x.format.bits == 64:
        upper = complement(magnitude)
    else:
        # Subtracted from one, the complement need not be good to its own last bits.
        bounded = (magnitude > 4.0).select(4.0, magnitude)
        reduced = reduce_binary_exponential(bounded.polynomial(coefficients.LOG_COMPLEMENT[32]))
        power = reduced.exponent.power_of_two()
        upper = power.multiply_add(reduced.excess, power)
    return (magnitude < _NEAR).select(near_zero(x), (1.0 - upper).with_sign_of(x))


def erfc(x: Float) -> Float:
    """``1 - erf(x)`` without cancellation."""
    magnitude = abs(x)
    upper = complement(magnitude)
    far = x.is_below_zero().select(2.0 - upper, upper)
    if x.format.bits == 32:
        return far
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


_STIRLING_FROM = 8.0
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _sine_of_pi(x: Float) -> Float:
    """``sin(pi x)`` for ``abs(x) <= 1/2``."""
    return x * (x * x).polynomial(coefficients.SINE_OF_PI[64])


def gammaln(x: Float) -> Float:
    """``log(abs(gamma(x)))``; infinite at the poles zero, -1, -2, ..., and SciPy's -inf at -inf.

    Accurate to a few units in the last place for ``x >= 0``. Below zero the error is that many units of
    ``gammaln(-x)`` or of one, whichever is larger: two logarithms cancel near the function's zeros there.
    """
    bits = x.format.bits
    x = x.convert(64)
    magnitude = abs(x)
    positive = positive_gammaln(magnitude)
    fraction = abs(magnitude - magnitude.round_to_even())
    sine = _sine_of_pi(fraction)
    reflected = log(math.pi / (magnitude * sine)) - positive
    reflected = sine.equals(0.0).select(math.inf, reflected)
    # So close to the pole at zero both signs have the same value, and the product would underflow.
    value = (x < -1e-18).select(reflected, positive)
    value = magnitude.equals(math.inf).select(x, value)
    return value.convert(bits)


def positive_gammaln(x: Float) -> Float:
    """``log(gamma(x))`` for ``x >= 0``."""
    is_large = x >= _STIRLING_FROM
    # Multiply x - 1, x - 2, ... while the result would stay above 2; below 1/2 divide by x once.
    product, base = x.float(1.0), x
    for _ in range(5):
        above = base > 3.0
        base = above.select(base - 1.0, base)
        product = above.select(product * base, product)
    is_small = x < 1.0
    u = is_small.select(x - 1.0, base - 2.0)
    near = (u * is_small.select(x, base - 1.0)) * u.polynomial(coefficients.LOG_GAMMA[64])
    logarithm = log(is_large.select(x, is_small.select(x, product)))
    small = near - logarithm
    middle = near + logarithm
    inverse = 1.0 / is_large.select(x, _STIRLING_FROM)
    series = inverse * (inverse * inverse).polynomial(coefficients.STIRLING[64])
    stirling = (x - 0.5).multiply_add(logarithm - 1.0, series + (_HALF_LOG_TWO_PI - 0.5))
    return is_large.select(stirling, is_small.select(small, middle))


_DIGAMMA_SERIES_FROM = 7.0
DIGAMMA_ZERO = (0.46163214496836236, -1.5522348162858677e-17)
"""Where ``digamma(1 + y)`` is zero, as the sum of two numbers."""


def digamma(x: Float) -> Float:
    """The derivative of ``gammaln``: NaN at the poles -1, -2, ..., infinite at zero, of the other sign.

    Accurate to a few units in the last place for ``x > 0``. Below zero the error is that many units of
    ``digamma(1 - x)`` or of what the reflection adds, whichever is larger.
    """
    bits = x.format.bits
    x = x.convert(64)
    magnitude = abs(x)
    is_shifted = x >= 1.0
    # For no argument from 1 on is anything added to the value of 1 + y.
    y = is_shifted.select(magnitude - 1.0, magnitude)
    upper = digamma_of_one_and(y, is_shifted.select(magnitude, magnitude + 1.0))
    fraction = magnitude - magnitude.round_to_even()
    numerator = is_shifted.select(0.0, (x < 0.0).select(math.pi * _sine_of_pi(0.5 - abs(fraction)), -1.0))
    denominator = (x < 0.0).select(_sine_of_pi(fraction), is_shifted.select(1.0, x))
    value = upper + numerator / denominator
    value = (denominator.equals(0.0) & (magnitude >= 1.0)).select(math.nan, value)
    return value.convert(bits)


def digamma_of_one_and(y: Float, x: Float) -> Float:
    """``digamma(x)`` for ``x = 1 + y >= 1``."""
    is_large = x >= _DIGAMMA_SERIES_FROM
    # digamma(1 + y) = 1 / y + digamma(1 + (y - 1)), down to y <= 1; the sum of reciprocals is one quotient.
    base, product, total = y, y.float(1.0), y.float(0.0)
    for _ in range(6):
        above = base > 1.0
        total = above.select(total.multiply_add(base, product), total)
        product = above.select(product * base, product)
        base = above.select(base - 1.0, base)
    quotient = is_large.select(1.0, total) / is_large.select(x, product)
    distance = (base - DIGAMMA_ZERO[0]) - DIGAMMA_ZERO[1]
    near = distance.multiply_add((base - 0.5).polynomial(coefficients.DIGAMMA[64]), quotient)
    series = quotient.multiply_add((quotient * quotient).polynomial(coefficients.DIGAMMA_REMAINDER[64]), 0.5)
    return is_large.select(log(x) - quotient * series, near)
