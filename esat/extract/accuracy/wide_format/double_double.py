"""Numbers of two doubles, for platforms whose ``longdouble`` is no wider than a double.

A number is the unevaluated sum of a double and a much smaller one: 106 bits, in the range of doubles. Arrays
of them take part in NumPy's ufuncs, and in the functions of arrays that the judge calls; one that is missing
here raises TypeError. Sums and products follow T. J. Dekker, "A floating-point technique for extending the
available precision", Numerische Mathematik 18 (1971), and Y. Hida, X. S. Li and D. H. Bailey, "Library for
double-double and quad-double arithmetic" (2007). Functions are in ``pair_functions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
            whole: Any = UFUNCS[np.trunc](self)
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
        function = UFUNCS.get(ufunc)
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
    return selected(np.isfinite(exact.high) & np.isfinite(y.high), exact, double_double(first))


def selected(condition: Any, x: Any, y: Any) -> Pair:
    """``x`` where a condition holds, else ``y``."""
    left, right = double_double(x), double_double(y)
    return DoubleDouble(np.where(condition, left.high, right.high), np.where(condition, left.low, right.low))


def absolute(x: Pair) -> Pair:
    """Sizes."""
    return selected(x.high < 0, _negative(x), x)


def scaled(x: Pair, exponent: Any) -> Pair:
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


def _rounded(function: Callable[[Any], Any]) -> Callable[[Pair], Pair]:
    def rounded(x: Pair) -> Pair:
        high = function(x.high)
        return selected(high == x.high, _normal(high, function(x.low)), high)

    return rounded


def _rint(x: Pair) -> Pair:
    floor: Pair = np.floor(x)
    rest = x - floor
    odd = np.fmod(floor.high, 2.0) != 0
    up = (rest > 0.5) | ((rest == 0.5) & odd)
    return selected(up, floor + 1.0, floor)


def _larger(x: Pair, y: Pair) -> Pair:
    greater = (x > y) | np.isnan(x.high)
    return selected(greater, x, y)


def _smaller(x: Pair, y: Pair) -> Pair:
    less = (x < y) | np.isnan(x.high)
    return selected(less, x, y)


def _remainder(x: Pair, y: Pair) -> Pair:
    value = x - np.floor(x / y) * y
    value = selected((value.high != 0) & ((value.high < 0) != (y.high < 0)), value + y, value)
    return selected(np.abs(x.high / y.high) < 2.0**40, value, np.nan)


def _on_high(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*(operand.high for operand in operands))


UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: _add, np.subtract: _subtract, np.multiply: _multiply, np.divide: _divide,
    np.negative: _negative, np.positive: lambda x: x, np.conjugate: lambda x: x,
    np.absolute: absolute, np.fabs: absolute,
    np.square: lambda x: _multiply(x, x), np.reciprocal: lambda x: _divide(double_double(1.0), x),
    np.floor: _rounded(np.floor), np.ceil: _rounded(np.ceil), np.rint: _rint,
    np.trunc: lambda x: selected(x.high < 0, np.ceil(x), np.floor(x)),
    np.floor_divide: lambda x, y: np.floor(x / y), np.remainder: _remainder,
    np.sign: lambda x: double_double(np.sign(x.high)),
    np.copysign: lambda x, y: selected(np.signbit(x.high) != np.signbit(y.high), _negative(x), x),
    np.maximum: lambda x, y: selected(np.isnan(y.high), y, _larger(x, y)),
    np.minimum: lambda x, y: selected(np.isnan(y.high), y, _smaller(x, y)),
    np.fmax: lambda x, y: selected(np.isnan(x.high), y, _larger(x, y)),
    np.fmin: lambda x, y: selected(np.isnan(x.high), y, _smaller(x, y)),
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
    np.where: selected,
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
