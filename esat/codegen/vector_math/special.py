"""The logarithm of the gamma function.

Three ranges share one logarithm: Stirling's series from 8 on, a polynomial around 2 that carries the
zeros at 1 and 2 as factors, and the recurrence ``gamma(x + 1) = x gamma(x)`` between and below. Negative
arguments are reflected.
"""

from __future__ import annotations

import math

from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float
from esat.codegen.vector_math.logarithm import log

_STIRLING_FROM = 8.0
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


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
    sine = fraction * (fraction * fraction).polynomial(coefficients.SINE_OF_PI[64])
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
