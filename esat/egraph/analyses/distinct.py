"""The distinct values of a vector, and where each value is among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def distinct(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct values in ascending order, and for each value its place among them.

    What ``np.unique`` does; that imports ``numpy.ma`` first, which takes as long as a small extraction.
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    is_first = np.ones(len(values), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    number = np.empty(len(values), np.int64)
    number[order] = np.cumsum(is_first) - 1
    return ascending[is_first], number
