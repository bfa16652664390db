"""Numbers of two doubles, for platforms whose ``longdouble`` is no wider than a double.

A number is the unevaluated sum of a double and a much smaller one: 106 bits, in the range of doubles. Arrays
of them take part in NumPy's ufuncs, and in the functions of arrays that the judge calls; one that is missing
here raises TypeError. Sums and products follow T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971), and Y. Hida, X. S. Li and D. H. Bailey, "Library for
double-double and quad-double arithmetic" (2007); functions come from those of doubles by a step of Newton's
method, or from a series. Results are right to some 2**-90, which is more than the judge asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
_LARGE = 2.0**990
"""Beyond it a number cannot be split."""
_SPLITTER = 2.0**27 + 1


class DoubleDouble(NDArrayOperatorsMixin):
    """An array of numbers of two doubles.

    Parameters
    ----------
    high, low
        float64 of one shape: their sum is the number, and ``high`` is the double next to it.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, high: Doubles, low: Doubles) -> None:
        self.high, self.low = high, low

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.high.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.high.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.high.size

    @property
    def real(self) -> DoubleDouble:
        """The array itself."""
        return self

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, key: Any) -> DoubleDouble:
        return DoubleDouble(self.high[key], self.low[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        other = double_double(value)
        self.high[key], self.low[key] = other.high, other.low

    def reshape(self, *shape: Any) -> DoubleDouble:
        """The same numbers with other axes."""
        return DoubleDouble(self.high.reshape(*shape), self.low.reshape(*shape))

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The numbers in another dtype of NumPy's."""
        kind = np.dtype(dtype)
        if kind.kind in "iub":
            whole: Any = _UFUNCS[np.trunc](self)
            return whole.high.astype(kind)
        return self.high.astype(kind, copy=copy)

    def any(self) -> bool:
        """Whether one is not zero."""
        return bool(self.high.any())

    def __array__(self, *args: Any, **options: Any) -> Any:
        """Such numbers are no array of NumPy's.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("numbers of two doubles are no array of NumPy's")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "reduce":
            (values,) = inputs
            return _reduced(ufunc, values, options.get("axis", 0), options.get("keepdims", False))
        function = _UFUNCS.get(ufunc)
        if method != "__call__" or function is None or options:
            return NotImplemented
        with np.errstate(all="ignore"):
            return function(*map(double_double, inputs))

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        known = _FUNCTIONS.get(function)
        return NotImplemented if known is None else known(*args, **options)


def double_double(value: Any) -> DoubleDouble:
    """Numbers, or arrays of them, as such an array."""
    if isinstance(value, DoubleDouble):
        return value
    array = np.asarray(value)
    high = array.astype(np.float64)
    low = (array - high.astype(array.dtype)).astype(np.float64) if array.dtype.kind in "iu" else None
    return DoubleDouble(high, np.zeros(high.shape) if low is None else low)


def computes(ufunc: np.ufunc) -> bool:
    """Whether a ufunc takes such arrays."""
    return ufunc in _UFUNCS


# ---- arithmetic

Pair = Any
"""A :class:`DoubleDouble`: what its operators return is not typed."""


def _normal(high: Doubles, low: Doubles) -> Pair:
    """Two doubles as one number; where the first is Inf or NaN it is the number."""
    low = np.where(np.isfinite(high), low, 0.0)
    total = high + low
    rest = low - (total - high)
    return DoubleDouble(total, np.where(np.isfinite(total), rest, 0.0))


def _two_sum(x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _two_product(x: Doubles, y: Doubles) -> tuple[Doubles, Doubles]:
    """A product and what is missing to it."""
    scales = [np.where(np.abs(part) > _LARGE, 2.0**-60, 1.0) for part in (x, y)]
    x, y = x * scales[0], y * scales[1]
    value = x * y
    tops = []
    for part in (x, y):
        wide = _SPLITTER * part
        tops.append(wide - (wide - part))
    (a, c), (b, d) = tops, (x - tops[0], y - tops[1])
    rest = ((a * c - value) + a * d + b * c) + b * d
    factor = 1 / (scales[0] * scales[1])
    return value * factor, rest * factor


def _add(x: Pair, y: Pair) -> Pair:
    high, rest = _two_sum(x.high, y.high)
    low, more = _two_sum(x.low, y.low)
    first = _normal(high, rest + low)
    return _normal(first.high, first.low + more)


def _negative(x: Pair) -> Pair:
    return DoubleDouble(-x.high, -x.low)


def _subtract(x: Pair, y: Pair) -> Pair:
    return _add(x, _negative(y))


def _multiply(x: Pair, y: Pair) -> Pair:
    high, rest = _two_product(x.high, y.high)
    return _normal(high, rest + (x.high * y.low + x.low * y.high))


def _divide(x: Pair, y: Pair) -> Pair:
    first = x.high / y.high
    rest = _subtract(x, _multiply(y, double_double(first)))
    second = rest.high / y.high
    rest = _subtract(rest, _multiply(y, double_double(second)))
    near = _normal(first, second)
    exact = _normal(near.high, near.low + rest.high / y.high)
    return _where(np.isfinite(exact.high) & np.isfinite(y.high), exact, double_double(first))


def _where(condition: Any, x: Any, y: Any) -> Pair:
    left, right = double_double(x), double_double(y)
    return DoubleDouble(np.where(condition, left.high, right.high), np.where(condition, left.low, right.low))


def _absolute(x: Pair) -> Pair:
    return _where(x.high < 0, _negative(x), x)


def _scaled(x: Pair, exponent: Any) -> Pair:
    """Times a power of two, in two steps: neither overflows before the number does."""
    half = exponent // 2
    high, low = (np.ldexp(np.ldexp(part, half), exponent - half) for part in (x.high, x.low))
    return DoubleDouble(high, np.where(np.isfinite(high), low, 0.0))


def _compared(function: Callable[[Any, Any], Any]) -> Callable[[Pair, Pair], NDArray[np.bool_]]:
    def compare(x: Pair, y: Pair) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = np.where(
            x.high == y.high, function(x.low, y.low), function(x.high, y.high)
        )
        return found

    return compare


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
    value = _scaled(_expm1_near_zero(rest) + 1.0, whole.astype(np.int64))
    plain = np.exp(x.high)
    return _where(np.isfinite(plain) & (plain > 0), value, plain)


def _expm1(x: Pair) -> Pair:
    near = np.abs(x.high) < 0.5
    return _where(near, _expm1_near_zero(_where(near, x, 0.0)), _exp(x) - 1.0)


def _log1p_near_zero(x: Pair) -> Pair:
    start = double_double(np.log1p(x.high))
    step = x + (x + 1.0) * _expm1_near_zero(-start)
    return start + (step - step * step * 0.5)


def _log1p(x: Pair) -> Pair:
    near = np.abs(x.high) < 0.25
    return _where(near, _log1p_near_zero(_where(near, x, 0.0)), _log(x + 1.0))


def _log(x: Pair) -> Pair:
    plain = np.log(x.high)
    sure = np.isfinite(plain)
    part, exponent = np.frexp(np.where(sure, x.high, 1.0))
    exponent -= part < np.sqrt(0.5)
    scaled = _scaled(_where(sure, x, 1.0), -exponent)
    return _where(sure, _log_of_two() * exponent.astype(np.float64) + _log1p_near_zero(scaled - 1.0), plain)


def _sqrt(x: Pair) -> Pair:
    plain = np.sqrt(x.high)
    sure = np.isfinite(plain) & (plain > 0)
    start = double_double(np.where(sure, plain, 1.0))
    return _where(sure, start + (x - start * start) / (start * 2.0), plain)


def _cbrt(x: Pair) -> Pair:
    plain = np.cbrt(x.high)
    sure = np.isfinite(plain) & (plain != 0)
    start = double_double(np.where(sure, plain, 1.0))
    return _where(sure, start + (x - start * start * start) / (start * start * 3.0), plain)


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
    first = _where(odd, cosine, sine)
    second = _where(odd, -sine, cosine)
    turned = quadrants >= 2
    return _where(turned, -first, first) + unknown, _where(turned, -second, second) + unknown


def _tan(x: Pair) -> Pair:
    sine, cosine = _sine_and_cosine(x)
    return sine / cosine


def _arctan(x: Pair) -> Pair:
    far = np.abs(x.high) > 1
    near = _where(far, 1.0 / x, x)
    start = double_double(np.arctan(near.high))
    sine, cosine = _sine_and_cosine(start)
    value = start + (near * cosine - sine) / (cosine + near * sine)
    away = _half_pi() * np.sign(x.high) - value
    return _where(far, away, _where(near.high == 0, near, value))


def _arctan2(y: Pair, x: Pair) -> Pair:
    plain = np.arctan2(y.high, x.high)
    sure = np.isfinite(y.high) & np.isfinite(x.high) & (y.high != 0) & (x.high != 0)
    start = double_double(plain)
    sine, cosine = _sine_and_cosine(start)
    value = start + (y * cosine - x * sine) / (x * cosine + y * sine)
    axis = _where((y.high != 0) & (x.high == 0), _half_pi() * np.sign(y.high), plain)
    axis = _where((y.high == 0) & (np.abs(plain) > 3), _half_pi() * (2 * np.sign(plain)), axis)
    return _where(sure & np.isfinite(value.high), value, axis)


def _arcsin(x: Pair) -> Pair:
    return _arctan2(x, _sqrt((1.0 - x) * (1.0 + x)))


def _arccos(x: Pair) -> Pair:
    return _arctan2(_sqrt(1.0 - x), _sqrt(1.0 + x)) * 2.0


def _sinh(x: Pair) -> Pair:
    near = np.abs(x.high) < 0.5
    grown = _expm1(_where(near, x, 0.0))
    power = _exp(x - _log_of_two())  # half of the exponential
    return _where(near, (grown + grown / (grown + 1.0)) * 0.5, power - 0.25 / power)


def _cosh(x: Pair) -> Pair:
    power = _exp(_absolute(x) - _log_of_two())
    return power + 0.25 / power


def _tanh(x: Pair) -> Pair:
    grown = _expm1(_where(np.abs(x.high) < 50, x, np.sign(x.high) * 50) * 2.0)
    return _where(np.isnan(x.high), x, grown / (grown + 2.0))


def _arcsinh(x: Pair) -> Pair:
    size = _absolute(x)
    inside = _where(size.high < 1e100, size, 1.0)
    near = _log1p(inside + inside * inside / (_sqrt(inside * inside + 1.0) + 1.0))
    value = _where(size.high < 1e100, near, _log(size) + _log_of_two())
    return _where(x.high < 0, -value, value)


def _arccosh(x: Pair) -> Pair:
    more = x - 1.0
    near = _log1p(more + _sqrt(more * (more + 2.0)))
    value = _where(x.high < 1e100, near, _log(x) + _log_of_two())
    return _where(x.high < 1, np.nan, value)


def _arctanh(x: Pair) -> Pair:
    size = _absolute(x)
    value = _log1p(size * 2.0 / (1.0 - size)) * 0.5
    return _where(x.high < 0, -value, value)


def _power(x: Pair, y: Pair) -> Pair:
    plain = np.power(x.high, y.high)
    sure = np.isfinite(plain) & (plain != 0) & (x.high != 0) & np.isfinite(x.high) & np.isfinite(y.high)
    value = _exp(y * _log(_absolute(x)))
    value = _where(plain < 0, -value, value)
    return _where(sure, value, plain)


def _hypot(x: Pair, y: Pair) -> Pair:
    largest = np.maximum(np.abs(x.high), np.abs(y.high))
    sure = np.isfinite(largest) & (largest > 0)
    exponent = np.frexp(np.where(sure, largest, 1.0))[1]
    left, right = _scaled(x, -exponent), _scaled(y, -exponent)
    return _where(sure, _scaled(_sqrt(left * left + right * right), exponent), np.hypot(x.high, y.high))


def _rounded(function: Callable[[Any], Any]) -> Callable[[Pair], Pair]:
    def rounded(x: Pair) -> Pair:
        high = function(x.high)
        return _where(high == x.high, _normal(high, function(x.low)), high)

    return rounded


def _rint(x: Pair) -> Pair:
    floor: Pair = np.floor(x)
    rest = x - floor
    odd = np.fmod(floor.high, 2.0) != 0
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return _where(up, floor + 1.0, floor)


def _larger(x: Pair, y: Pair) -> Pair:
    greater = (x > y) | np.isnan(x.high)
    return _where(greater, x, y)


def _smaller(x: Pair, y: Pair) -> Pair:
    less = (x < y) | np.isnan(x.high)
    return _where(less, x, y)


def _remainder(x: Pair, y: Pair) -> Pair:
    value = x - np.floor(x / y) * y
    value = _where((value.high != 0) & ((value.high < 0) != (y.high < 0)), value + y, value)
    return _where(np.abs(x.high / y.high) < 2.0**40, value, np.nan)


def _logaddexp(x: Pair, y: Pair) -> Pair:
    high = _larger(x, y)
    gap = _where(
        x.high == y.high, _absolute(DoubleDouble(x.low - y.low, np.zeros_like(x.low))), _absolute(x - y)
    )
    return _where(np.isfinite(high.high), high + _log1p(_exp(-gap)), high)


def _on_high(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*(operand.high for operand in operands))


_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _add, np.subtract: _subtract, np.multiply: _multiply, np.divide: _divide,
    np.negative: _negative, np.positive: lambda x: x, np.conjugate: lambda x: x,
    np.absolute: _absolute, np.fabs: _absolute,
    np.square: lambda x: _multiply(x, x), np.reciprocal: lambda x: _divide(double_double(1.0), x),
    np.sqrt: _sqrt, np.cbrt: _cbrt, np.hypot: _hypot, np.power: _power, np.float_power: _power,
    np.exp: _exp, np.expm1: _expm1, np.exp2: lambda x: _exp(x * _log_of_two()),
    np.log: _log, np.log1p: _log1p, np.log2: lambda x: _log(x) / _log_of_two(),
    np.log10: lambda x: _log(x) / _log(double_double(10.0)), np.logaddexp: _logaddexp,
    np.sin: lambda x: _sine_and_cosine(x)[0], np.cos: lambda x: _sine_and_cosine(x)[1], np.tan: _tan,
    np.arcsin: _arcsin, np.arccos: _arccos, np.arctan: _arctan, np.arctan2: _arctan2,
    np.sinh: _sinh, np.cosh: _cosh, np.tanh: _tanh,
    np.arcsinh: _arcsinh, np.arccosh: _arccosh, np.arctanh: _arctanh,
    np.deg2rad: lambda x: x * _half_pi() / 90.0, np.rad2deg: lambda x: x * 90.0 / _half_pi(),
    np.floor: _rounded(np.floor), np.ceil: _rounded(np.ceil), np.rint: _rint,
    np.trunc: lambda x: _where(x.high < 0, np.ceil(x), np.floor(x)),
    np.floor_divide: lambda x, y: np.floor(x / y), np.remainder: _remainder,
    np.sign: lambda x: double_double(np.sign(x.high)),
    np.copysign: lambda x, y: _where(np.signbit(x.high) != np.signbit(y.high), _negative(x), x),
    np.maximum: lambda x, y: _where(np.isnan(y.high), y, _larger(x, y)),
    np.minimum: lambda x, y: _where(np.isnan(y.high), y, _smaller(x, y)),
    np.fmax: lambda x, y: _where(np.isnan(x.high), y, _larger(x, y)),
    np.fmin: lambda x, y: _where(np.isnan(x.high), y, _smaller(x, y)),
    np.equal: lambda x, y: (x.high == y.high) & (x.low == y.low),
    np.not_equal: lambda x, y: (x.high != y.high) | (x.low != y.low),
    np.less: _compared(np.less), np.less_equal: _compared(np.less_equal),
    np.greater: _compared(np.greater), np.greater_equal: _compared(np.greater_equal),
    np.isnan: _on_high(np.isnan), np.isfinite: _on_high(np.isfinite), np.isinf: _on_high(np.isinf),
    np.signbit: _on_high(np.signbit), np.logical_not: _on_high(np.logical_not),
    np.logical_and: _on_high(np.logical_and), np.logical_or: _on_high(np.logical_or),
    np.logical_xor: _on_high(np.logical_xor),
}  # fmt: skip


def _reduced(ufunc: np.ufunc, x: Pair, axis: Any, keepdims: bool) -> Pair:
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    over = sorted(one % x.ndim for one in axes)
    value = x
    for one in over:
        parts = [value[(slice(None),) * one + (slice(at, at + 1),)] for at in range(value.shape[one])]
        value = parts[0]
        for part in parts[1:]:
            value = ufunc(value, part)
    kept = [size for place, size in enumerate(value.shape) if place not in over]
    return value if keepdims else value.reshape(kept)


def _reduction(ufunc: np.ufunc) -> Callable[..., Pair]:
    return lambda x, axis=None, keepdims=False: _reduced(ufunc, x, axis, keepdims)


def _of_parts(function: Callable[..., Any]) -> Callable[..., Pair]:
    return lambda x, *args, **options: DoubleDouble(
        function(x.high, *args, **options), function(x.low, *args, **options)
    )


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: _where,
    np.broadcast_to: _of_parts(np.broadcast_to),
    np.transpose: _of_parts(np.transpose),
    np.expand_dims: _of_parts(np.expand_dims),
    np.clip: lambda x, low, high: np.minimum(np.maximum(x, low), high),
    np.max: _reduction(np.maximum),
    np.min: _reduction(np.minimum),
    np.sum: _reduction(np.add),
    np.prod: _reduction(np.multiply),
    np.ones_like: lambda x: double_double(np.ones(x.shape)),
    np.zeros_like: lambda x: double_double(np.zeros(x.shape)),
    np.real: lambda x: x,
}
