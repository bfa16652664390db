"""Numbers as unevaluated sums of two floats: about twice the significand.

The error-free transformations are Knuth's sum and the product whose error a fused multiply-add finds (see
Hida, Li and Bailey, "Library for double-double and quad-double arithmetic", 2000). The fused operation
is asked for by name, so that values are the same on every processor.
"""

from __future__ import annotations

from esat.codegen.vector_math.builder import Float
from esat.records import record


@record(frozen=True)
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
        reciprocal = 1.0 / other.high
        quotient = self.high * reciprocal
        remainder = (-quotient).fused_multiply_add(other.high, self.high) + self.low - quotient * other.low
        return fast_two_sum(quotient, remainder * reciprocal)


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
    product = a * b
    return DoubleWord(product, a.fused_multiply_add(b, -product))
