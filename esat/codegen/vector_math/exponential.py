"""Powers of e and of two.

The argument is reduced to ``r = x - n ln(2)`` with ``abs(r) <= ln(2)/2``; ``exp(r)`` is a polynomial and the
exponent ``n`` is put in at the end, in one instruction where the processor has one, elsewhere in two steps,
so that denormal and largest results come out right.
"""

from __future__ import annotations

import math

from esat.base.records import record
from esat.codegen.vector_math import coefficients
from esat.codegen.vector_math.builder import Float, Integer

BINARY_LIMITS = {32: (-151.0, 129.0), 64: (-1076.0, 1025.0)}
"""Arguments beyond which ``2**x`` is zero, or infinite."""


@record(frozen=True)
class Reduced:
    """``exp(argument) = 2**exponent * (1 + excess)``, with ``excess`` in about [-0.3, 0.42]."""

    excess: Float
    exponent: Integer


def reduce_exponential(x: Float, low: Float | None = None) -> Reduced:
    """Reduce ``x``, or ``x + low`` for a ``low`` far below ``x``; ``abs(x)`` at most about 1500."""
    bits = x.format.bits
    ln2_high, ln2_low = coefficients.LN2[bits]
    n, exponent = _nearest_multiple(x, 1 / math.log(2))
    r = n.multiply_add(-ln2_high, x)
    r = n.multiply_add(-ln2_low, r if low is None else r + low)
    tail = r.polynomial(coefficients.EXPONENTIAL[bits])
    return Reduced((r * r).multiply_add(tail, r), exponent)


def reduce_decay_of_square(x: Float) -> Reduced:
    """``exp(-x * x)``, reduced: the square is never rounded alone; ``abs(x)`` at most about 28."""
    bits = x.format.bits
    ln2_high, ln2_low = coefficients.LN2[bits]
    n, exponent = _nearest_multiple(x * x, -1 / math.log(2))
    r = (-x).fused_multiply_add(x, n * -ln2_high)
    r = n.multiply_add(-ln2_low, r)
    tail = r.polynomial(coefficients.EXPONENTIAL[bits])
    return Reduced((r * r).multiply_add(tail, r), exponent)


def reduce_binary_exponential(x: Float) -> Reduced:
    """The same for ``2**x``: nothing is lost when ``n`` is taken from ``x``."""
    n = x.round_to_even()
    r = x - n
    return Reduced(r * r.polynomial(coefficients.BINARY_EXPONENTIAL[x.format.bits]), n.integral_to_integer())


def _nearest_multiple(x: Float, factor: float) -> tuple[Float, Integer]:
    """The integer nearest to ``x * factor``, as a number and as an integer."""
    if x.format.target.rounds_at_once:
        n = (x * factor).round_to_even()
        return n, n.integral_to_integer()
    return x.nearest_multiple(factor)


def scale(x: Float, exponent: Integer) -> Float:
    """``x * 2**exponent``, rounded once, for exponents up to twice those of normal numbers."""
    if x.format.target.scales:
        return x.times_power_of_two(exponent)
    fraction_bits = x.format.fraction_bits
    biased = exponent + 2 * x.format.bias
    half = biased.unsigned_half()
    first, second = half << fraction_bits, (biased - half) << fraction_bits
    return (x * first.bits_to_float()) * second.bits_to_float()


def scale_down(x: Float, exponent: Integer) -> Float:
    """``x * 2**exponent``, rounded once, for exponents of zero and below: cheaper than :func:`scale`."""
    if x.format.target.scales:
        return x.times_power_of_two(exponent)
    # More than the exponents of all denormal numbers.
    raised = 128 if x.format.bits == 64 else 64
    return (x * (exponent + raised).power_of_two()) * 2.0**-raised


def limits(x: Float) -> tuple[float, float]:
    """Arguments beyond which ``exp`` is zero, or infinite, in the format of ``x``."""
    return (-746.0, 710.0) if x.format.bits == 64 else (-104.5, 89.0)


def exp_times(x: Float, low: Float | None, factor: Float | None = None, exponent: int = 0) -> Float:
    """``factor * exp(x + low) * 2**exponent`` with one rounding of a denormal result."""
    reduced = reduce_exponential(x, low)
    value = reduced.excess + 1.0 if factor is None else factor.multiply_add(reduced.excess, factor)
    return scale(value, reduced.exponent + exponent)


def decay_times(x: Float, low: Float | None, factor: Float | None = None) -> Float:
    """``factor * exp(x + low)`` with one rounding of a denormal result, for ``x <= 0``."""
    reduced = reduce_exponential(x, low)
    value = reduced.excess + 1.0 if factor is None else factor.multiply_add(reduced.excess, factor)
    return scale_down(value, reduced.exponent)


def decay(x: Float) -> Float:
    """``exp(x)`` for ``x <= 0``; NaN stays NaN."""
    lowest = limits(x)[0]
    return decay_times((x < lowest).select(lowest, x), None)


def exp(x: Float) -> Float:
    """The exponential."""
    return exp_times(x.clamp(*limits(x)), None)


def exp2(x: Float) -> Float:
    """Two to the power of x."""
    reduced = reduce_binary_exponential(x.clamp(*BINARY_LIMITS[x.format.bits]))
    return scale(reduced.excess + 1.0, reduced.exponent)


def expm1(x: Float) -> Float:
    """``exp(x) - 1`` without cancellation."""
    bits = x.format.bits
    reduced = reduce_exponential(x.clamp(*((-40.0, 710.0) if bits == 64 else (-18.0, 89.0))))
    # The largest exponent is halved, and the value doubled at the end, to stay finite.
    large = reduced.exponent > x.format.bias - 8
    exponent = large.select_integer(reduced.exponent - 1, reduced.exponent)
    value = minus_one(reduced.excess, exponent)
    value = large.select(value * 2.0, value)
    return x.equals(0.0).select(x, value)


def minus_one(excess: Float, exponent: Integer) -> Float:
    """``2**exponent * (1 + excess) - 1``, as ``2**exponent * excess + (2**exponent - 1)``."""
    power = exponent.power_of_two()
    return power.multiply_add(excess, power - 1.0)


def exp_and_expm1(x: Float) -> tuple[Float, Float]:
    """``exp(x)`` for ``x <= 0`` and ``exp(x) - 1`` for ``x`` from -1 to the first overflow."""
    reduced = reduce_exponential(x.clamp(*limits(x)))
    excess = minus_one(reduced.excess, reduced.exponent)
    return scale_down(reduced.excess + 1.0, reduced.exponent), x.equals(0.0).select(x, excess)


def sigmoid(x: Float) -> Float:
    """``1 / (1 + exp(-x))``; the exponential is of ``-abs(x)``, so that small results keep their bits."""
    small = decay(-abs(x))
    return x.is_below_zero().select(small, 1.0) / (small + 1.0)
