"""Floats as the integers that have their bits, and the other way, by arithmetic that is exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, describe
from esat.frontend.elements import elementwise as own
from esat.frontend.elements.searching import searchsorted, where
from esat.frontend.jax.steps import Equation, Rule
from esat.graph.constants import constant
from esat.graph.variables import Variable
from esat.ops.cast import cast


@record(frozen=True)
class FloatFormat:
    """How floats of a dtype are written.

    Attributes
    ----------
    dtype
        Of the floats.
    unsigned
        The integers of their size.
    fraction
        Bits of the fraction.
    bias
        By how much the stored exponent of a number that is not less than 1 and less than 2 exceeds 0.
    """

    dtype: str
    unsigned: str
    fraction: int
    bias: int

    @property
    def largest(self) -> int:
        """The stored exponent of infinities and NaN."""
        return 2 * self.bias + 1


_FORMATS = {
    one.dtype: one
    for one in (
        FloatFormat("float64", "uint64", 52, 1023),
        FloatFormat("float32", "uint32", 23, 127),
        FloatFormat("float16", "uint16", 10, 15),
    )
}


def _converted(step: Equation) -> Any:
    """Bits of a value as those of another type of the same size."""
    x, dtype = step.first, step.results[0].dtype
    given = x.tensor_type.dtype
    if np.dtype(given).itemsize != np.dtype(dtype).itemsize or {
        np.dtype(given).kind,
        np.dtype(dtype).kind,
    } - {*"iuf"}:
        reason = f"bits of {given} are not taken for {dtype}; those of integers and floats of one size are"
        raise DtypeError(describe("from_jax", [x.type], reason, step.where))
    if given in _FORMATS:
        x = _bits_of(x, _FORMATS[given])
    elif dtype in _FORMATS:
        x = cast(x, _FORMATS[dtype].unsigned)
    return _float_of(x, _FORMATS[dtype]) if dtype in _FORMATS else cast(x, dtype)


def _float_of(bits: Variable, format: FloatFormat) -> Any:
    """Floats from their bits, by a table of powers."""
    dtype = format.dtype
    fraction = own.bitwise_and(bits, constant((1 << format.fraction) - 1, format.unsigned))
    exponent = own.bitwise_and(
        own.right_shift(bits, format.fraction), constant(format.largest, format.unsigned)
    )
    negative = own.ne(own.right_shift(bits, 8 * np.dtype(dtype).itemsize - 1), 0)
    normal = own.gt(exponent, 0)
    whole = own.add(
        cast(fraction, dtype), where(normal, constant(2.0**format.fraction, dtype), constant(0, dtype))
    )
    shift = format.bias + format.fraction
    powers = [math.ldexp(1.0, max(one, 1) - shift) for one in range(format.largest)]
    table = constant(np.array([*powers, math.nan], dtype))
    size = own.mul(whole, table[cast(exponent, "int64")])
    infinite = own.bitwise_and(own.eq(exponent, format.largest), own.eq(fraction, 0))
    size = where(infinite, constant(math.inf, dtype), size)
    return where(negative, own.neg(size), size)


def _bits_of(x: Variable, format: FloatFormat) -> Any:
    """The bits of floats: the exponent is found among powers of two, and what is left is scaled by one."""
    dtype, unsigned = format.dtype, format.unsigned
    size = own.abs(x)
    # The power of two below, as the exponent that is stored: 0 for numbers less than the least normal one.
    powers = constant(
        np.array([math.ldexp(1.0, one - format.bias) for one in range(1, format.largest)], dtype)
    )
    finite = own.isfinite(x)
    exponent = searchsorted(powers, where(finite, size, constant(0, dtype)), "right")
    scale = [format.bias + format.fraction - max(one, 1) for one in range(format.largest)]
    # In two steps, neither of which leaves the range.
    first = constant(np.array([math.ldexp(1.0, one // 2) for one in scale], dtype))
    second = constant(np.array([math.ldexp(1.0, one - one // 2) for one in scale], dtype))
    whole = own.mul(own.mul(where(finite, size, constant(0, dtype)), first[exponent]), second[exponent])
    hidden = where(own.gt(exponent, 0), constant(2.0**format.fraction, dtype), constant(0, dtype))
    fraction = cast(own.sub(whole, hidden), unsigned)
    quiet = where(own.isnan(x), constant(1 << (format.fraction - 1), unsigned), constant(0, unsigned))
    stored = where(finite, cast(exponent, unsigned), constant(format.largest, unsigned))
    sign = cast(own.signbit(x), unsigned)
    bits = own.add(
        own.left_shift(stored, constant(format.fraction, unsigned)), where(finite, fraction, quiet)
    )
    return own.add(bits, own.left_shift(sign, constant(8 * np.dtype(dtype).itemsize - 1, unsigned)))


RULES: dict[str, Rule] = {"bitcast_convert_type": _converted}
