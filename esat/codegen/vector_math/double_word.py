"""Numbers as unevaluated sums of two floats: about twice the significand.

The error-free transformations are Knuth's sum and Dekker's product (see Hida, Li and Bailey,
"Library for double-double and quad-double arithmetic", 2000). Products split their factors by masking
bits, so that they need no fused multiply-add and give the same value on every processor.
"""

from __future__ import annotations

from dataclasses import dataclass

from esat.codegen.vector_math.builder import Float


@dataclass(frozen=True)
class DoubleWord:
    """The value ``high + low``, where ``low`` is below the last bit of ``high``."""

    high: Float
    low: Float

    def __add__(self, other: DoubleWord) -> DoubleWord:
        total = two_sum(self.high, other.high)
        return fast_two_sum(total.high, total.low + (self.low + other.low))

    def __mul__(self, other: DoubleWord) -> DoubleWord:
        product = two_product(self.high, other.high)
        cross = self.high * other.low + self.low * other.high
        return fast_two_sum(product.high, product.low + cross)

    def __truediv__(self, other: DoubleWord) -> DoubleWord:
        quotient = self.high / other.high
        product = two_product(quotient, other.high)
        remainder = (self.high - product.high) - product.low + self.low - quotient * other.low
        return fast_two_sum(quotient, remainder / other.high)


def two_sum(a: Float, b: Float) -> DoubleWord:
    """``a + b`` exactly."""
    total = a + b
    part = total - a
    return DoubleWord(total, (a - (total - part)) + (b - part))


def fast_two_sum(a: Float, b: Float) -> DoubleWord:
    """``a + b`` exactly, for ``abs(a) >= abs(b)``."""
    total = a + b
    return DoubleWord(total, b - (total - a))


def two_product(a: Float, b: Float) -> DoubleWord:
    """``a * b`` exactly, unless it overflows or its low word underflows."""
    half = (a.format.fraction_bits + 1) // 2
    a_high, b_high = a.high_part(half), b.high_part(half)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return DoubleWord(product, error)


def two_square(a: Float) -> DoubleWord:
    """``a * a`` exactly, unless it overflows or its low word underflows."""
    high = a.high_part((a.format.fraction_bits + 1) // 2)
    low = a - high
    square = a * a
    return DoubleWord(square, ((high * high - square) + 2.0 * high * low) + low * low)
