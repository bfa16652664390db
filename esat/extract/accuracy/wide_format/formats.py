"""The wide format: what truths are computed in.

It is ``longdouble`` where that has 64 bits or more, else numbers of two doubles, which have no complex ones:
there, complex values are not judged. The environment variable :data:`VARIABLE` with the value ``pairs`` asks
for those everywhere.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from esat.extract.accuracy.wide_format.double_double import DoubleDouble, double_double
from esat.extract.accuracy.wide_format.pair_functions import computes

VARIABLE = "ESAT_WIDE_FORMAT"
PAIRS = os.environ.get(VARIABLE) == "pairs" or np.finfo(np.longdouble).nmant < 63
"""Whether numbers of two doubles are the wide format."""
NAME = "pairs of doubles" if PAIRS else f"longdouble of {np.finfo(np.longdouble).nmant + 1} bits"
REAL: Any = np.float64 if PAIRS else np.longdouble
"""Type of bounds, and of constants."""
COMPLEX: Any = np.complex128 if PAIRS else np.clongdouble
UNIT = REAL(2.0) ** -63
"""Relative error of an operation in the wide format, some of which err by more than half a unit."""
UNKNOWN = REAL(2.0) ** (1000 if PAIRS else 16000)
"""The bound, and what is beyond it, of values of which nothing is known."""
SMALLEST = np.finfo(REAL).tiny * REAL(2.0) ** 100
"""What an operation may lose beyond its relative error, where its result is smaller."""
OVERFLOWN = REAL(1 if PAIRS else 0)
"""Bound of what is infinite by exact operands: zero where the range is so wide that nothing else follows."""


def widened(values: Any) -> Any:
    """An array of the program's in the wide format.

    Raises
    ------
    TypeError
        For complex numbers where the format has none.
    """
    array = values if isinstance(values, DoubleDouble) else np.asarray(values)
    if array.dtype.kind != "c":
        return double_double(array) if PAIRS else array.astype(REAL)
    if PAIRS:
        raise TypeError("pairs of doubles are real")
    return array.astype(COMPLEX)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Zeros for values of a dtype of the program's."""
    return np.zeros(shape, COMPLEX) if dtype.kind == "c" else widened(np.zeros(shape))


def array_of(value: Any) -> Any:
    """A result as an array of the wide format, or of what else it is."""
    return value if isinstance(value, DoubleDouble) else np.asarray(value)


def bound_of(value: Any) -> Any:
    """A bound that was computed with values of the format."""
    return value.high if isinstance(value, DoubleDouble) else value


def lacks(function: Any) -> bool:
    """Whether a ufunc has no loop for the format."""
    if not isinstance(function, np.ufunc):
        return False
    return not computes(function) if PAIRS else not any("g" in types for types in function.types)
