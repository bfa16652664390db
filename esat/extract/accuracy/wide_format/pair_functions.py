"""Elementary functions of numbers of two doubles.

They come from the functions of doubles by a step of Newton's method, or from a series, and are right to some
2**-90, which is more than the judge asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from esat.extract.accuracy.wide_format.double_double import (
    UFUNCS,
    DoubleDouble,
    Pair,
    absolute,
    double_double,
    scaled,
    selected,
)

# ---- constants, from integers


def _arctangent_of_inverse(n: int, bits: int) -> int:
    total, power, place = 0, (1 << bits) // n, 1
    while power:
        total += power // place if place % 4 == 1 else -(power // place)
        power //= n * n
        place += 2
    return total


@cache
def _pi(bits: int) -> int:
    """Pi times a power of two (Machin's formula)."""
    more = bits + 20
    return (16 * _arctangent_of_inverse(5, more) - 4 * _arctangent_of_inverse(239, more)) >> 20


def _of_integer(value: int, bits: int) -> tuple[float, float]:
    high = value / (1 << bits)
    numerator, denominator = high.as_integer_ratio()
    return high, (value - (numerator << bits) // denominator) / (1 << bits)


@cache
def _half_pi() -> Pair:
    return DoubleDouble(*map(np.array, _of_integer(_pi(300), 301)))


@cache
def _log_of_two() -> Pair:
    bits = 300
    total, power, place = 0, (1 << bits) // 3, 1
    while power:  # 2 artanh(1/3)
        total += power // place
        power //= 9
        place += 2
    return DoubleDouble(*map(np.array, _of_integer(2 * total, bits)))


# ---- functions


def _polynomial(x: Pair, coefficients: Sequence[Pair | float]) -> Pair:
    """A polynomial, its highest coefficient first."""
    value = double_double(coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


@cache
def _inverse_factorials(last: int) -> tuple[Pair, ...]:
    found = [double_double(1.0)]
    for n in range(1, last + 1):
        found.append(found[-1] / float(n))
    return tuple(found)


def _expm1_near_zero(x: Pair) -> Pair:
    """``exp(x) - 1`` for ``x`` below one: its series at a small part of ``x``, doubled again and again."""
    part = x * 2.0**-9
    terms = _inverse_factorials(9)
    value = part * _polynomial(part, terms[:0:-1])
    for _ in range(9):
        value = value * 2.0 + value * value
    return value


def _exp(x: Pair) -> Pair:
    whole = np.rint(np.clip(np.nan_to_num(x.high), -1500, 1500) / np.log(2))
    rest = x - _log_of_two() * whole
    value = scaled(_expm1_near_zero(rest) + 1.0, whole.astype(np.int64))
    plain = np.exp(x.high)
    return selected(np.isfinite(plain) & (plain > 0), value, plain)


def _expm1(x: Pair) -> Pair:
    near = np.abs(x.high) < 0.5
    return selected(near, _expm1_near_zero(selected(near, x, 0.0)), _exp(x) - 1.0)


def _log1p_near_zero(x: Pair) -> Pair:
    start = double_double(np.log1p(x.high))
    step = x + (x + 1.0) * _expm1_near_zero(-start)
    return start + (step - step * step * 0.5)


def _log1p(x: Pair) -> Pair:
    near = np.abs(x.high) < 0.25
    return selected(near, _log1p_near_zero(selected(near, x, 0.0)), _log(x + 1.0))


def _log(x: Pair) -> Pair:
    plain = np.log(x.high)
    sure = np.isfinite(plain)
    part, exponent = np.frexp(np.where(sure, x.high, 1.0))
    exponent -= part < np.sqrt(0.5)
    mantissa = scaled(selected(sure, x, 1.0), -exponent)
    return selected(
        sure, _log_of_two() * exponent.astype(np.float64) + _log1p_near_zero(mantissa - 1.0), plain
    )


def _sqrt(x: Pair) -> Pair:
    plain = np.sqrt(x.high)
    sure = np.isfinite(plain) & (plain > 0)
    start = double_double(np.where(sure, plain, 1.0))
    return selected(sure, start + (x - start * start) / (start * 2.0), plain)


def _cbrt(x: Pair) -> Pair:
    plain = np.cbrt(x.high)
    sure = np.isfinite(plain) & (plain != 0)
    start = double_double(np.where(sure, plain, 1.0))
    return selected(sure, start + (x - start * start * start) / (start * start * 3.0), plain)


def _quadrant(x: Pair) -> tuple[NDArray[np.int64], Pair]:
    """The next multiple of half of pi, modulo four, and what is left."""
    bits = 1400
    half_pi = _pi(bits)  # of half of the unit
    quadrants = np.zeros(x.shape, np.int64)
    high, low = np.zeros(x.shape), np.zeros(x.shape)
    for place, (first, second) in enumerate(zip(x.high.flat, x.low.flat, strict=True)):
        if np.isfinite(first):
            total = 0
            for part in (first, second):
                numerator, denominator = float(part).as_integer_ratio()
                total += (numerator << (bits + 1)) // denominator
            count = (2 * total + half_pi) // (2 * half_pi)
            quadrants.flat[place] = count % 4
            high.flat[place], low.flat[place] = _of_integer(total - count * half_pi, bits + 1)
    return quadrants, DoubleDouble(high, low)


def _sine_and_cosine(x: Pair) -> tuple[Pair, Pair]:
    quadrants, rest = _quadrant(x)
    terms = _inverse_factorials(28)
    square = rest * rest
    signed = [term * float(1 - place % 4 // 2 * 2) for place, term in enumerate(terms)]
    sine = rest * _polynomial(square, signed[27:0:-2])
    cosine = _polynomial(square, signed[28::-2])
    odd = quadrants % 2 == 1
    unknown = np.where(np.isfinite(x.high), 0.0, np.nan)
    first = selected(odd, cosine, sine)
    second = selected(odd, -sine, cosine)
    turned = quadrants >= 2
    return selected(turned, -first, first) + unknown, selected(turned, -second, second) + unknown


def _tan(x: Pair) -> Pair:
    sine, cosine = _sine_and_cosine(x)
    return sine / cosine


def _arctan(x: Pair) -> Pair:
    far = np.abs(x.high) > 1
    near = selected(far, 1.0 / x, x)
    start = double_double(np.arctan(near.high))
    sine, cosine = _sine_and_cosine(start)
    value = start + (near * cosine - sine) / (cosine + near * sine)
    away = _half_pi() * np.sign(x.high) - value
    return selected(far, away, selected(near.high == 0, near, value))


def _arctan2(y: Pair, x: Pair) -> Pair:
    plain = np.arctan2(y.high, x.high)
    sure = np.isfinite(y.high) & np.isfinite(x.high) & (y.high != 0) & (x.high != 0)
    start = double_double(plain)
    sine, cosine = _sine_and_cosine(start)
    value = start + (y * cosine - x * sine) / (x * cosine + y * sine)
    axis = selected((y.high != 0) & (x.high == 0), _half_pi() * np.sign(y.high), plain)
    axis = selected((y.high == 0) & (np.abs(plain) > 3), _half_pi() * (2 * np.sign(plain)), axis)
    return selected(sure & np.isfinite(value.high), value, axis)


def _arcsin(x: Pair) -> Pair:
    return _arctan2(x, _sqrt((1.0 - x) * (1.0 + x)))


def _arccos(x: Pair) -> Pair:
    return _arctan2(_sqrt(1.0 - x), _sqrt(1.0 + x)) * 2.0


def _sinh(x: Pair) -> Pair:
    near = np.abs(x.high) < 0.5
    grown = _expm1(selected(near, x, 0.0))
    power = _exp(x - _log_of_two())  # half of the exponential
    return selected(near, (grown + grown / (grown + 1.0)) * 0.5, power - 0.25 / power)


def _cosh(x: Pair) -> Pair:
    power = _exp(absolute(x) - _log_of_two())
    return power + 0.25 / power


def _tanh(x: Pair) -> Pair:
    grown = _expm1(selected(np.abs(x.high) < 50, x, np.sign(x.high) * 50) * 2.0)
    return selected(np.isnan(x.high), x, grown / (grown + 2.0))


def _arcsinh(x: Pair) -> Pair:
    size = absolute(x)
    inside = selected(size.high < 1e100, size, 1.0)
    near = _log1p(inside + inside * inside / (_sqrt(inside * inside + 1.0) + 1.0))
    value = selected(size.high < 1e100, near, _log(size) + _log_of_two())
    return selected(x.high < 0, -value, value)


def _arccosh(x: Pair) -> Pair:
    more = x - 1.0
    near = _log1p(more + _sqrt(more * (more + 2.0)))
    value = selected(x.high < 1e100, near, _log(x) + _log_of_two())
    return selected(x.high < 1, np.nan, value)


def _arctanh(x: Pair) -> Pair:
    size = absolute(x)
    value = _log1p(size * 2.0 / (1.0 - size)) * 0.5
    return selected(x.high < 0, -value, value)


def _power(x: Pair, y: Pair) -> Pair:
    plain = np.power(x.high, y.high)
    sure = np.isfinite(plain) & (plain != 0) & (x.high != 0) & np.isfinite(x.high) & np.isfinite(y.high)
    value = _exp(y * _log(absolute(x)))
    value = selected(plain < 0, -value, value)
    return selected(sure, value, plain)


def _hypot(x: Pair, y: Pair) -> Pair:
    largest = np.maximum(np.abs(x.high), np.abs(y.high))
    sure = np.isfinite(largest) & (largest > 0)
    exponent = np.frexp(np.where(sure, largest, 1.0))[1]
    left, right = scaled(x, -exponent), scaled(y, -exponent)
    return selected(sure, scaled(_sqrt(left * left + right * right), exponent), np.hypot(x.high, y.high))


def _logaddexp(x: Pair, y: Pair) -> Pair:
    high = np.maximum(x, y)
    gap = selected(
        x.high == y.high, absolute(DoubleDouble(x.low - y.low, np.zeros_like(x.low))), absolute(x - y)
    )
    return selected(np.isfinite(high.high), high + _log1p(_exp(-gap)), high)


UFUNCS.update({
    np.sqrt: _sqrt, np.cbrt: _cbrt, np.hypot: _hypot, np.power: _power, np.float_power: _power,
    np.exp: _exp, np.expm1: _expm1, np.exp2: lambda x: _exp(x * _log_of_two()),
    np.log: _log, np.log1p: _log1p, np.log2: lambda x: _log(x) / _log_of_two(),
    np.log10: lambda x: _log(x) / _log(double_double(10.0)), np.logaddexp: _logaddexp,
    np.sin: lambda x: _sine_and_cosine(x)[0], np.cos: lambda x: _sine_and_cosine(x)[1], np.tan: _tan,
    np.arcsin: _arcsin, np.arccos: _arccos, np.arctan: _arctan, np.arctan2: _arctan2,
    np.sinh: _sinh, np.cosh: _cosh, np.tanh: _tanh,
    np.arcsinh: _arcsinh, np.arccosh: _arccosh, np.arctanh: _arctanh,
    np.deg2rad: lambda x: x * _half_pi() / 90.0, np.rad2deg: lambda x: x * 90.0 / _half_pi(),
})  # fmt: skip


def computes(ufunc: np.ufunc) -> bool:
    """Whether a ufunc takes numbers of two doubles."""
    return ufunc in UFUNCS
