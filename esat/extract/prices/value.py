"""What costs need to know of a value."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from esat.extract.prices.nary import Shape
from esat.graph.types import DTYPES

IMPOSSIBLE = float("inf")
"""Price of what cannot be computed."""
UNKNOWN_SIZE = 256.0
"""Assumed size of an axis that neither the types nor a hint tell."""


_ITEMSIZES = tuple(int(np.dtype(name).itemsize) for name in DTYPES)


class Value(NamedTuple):
    """Shape and dtype number of an e-class, as far as costs need them. A scalar has no axes.

    ``transposed``: it can only be had as a view whose axes are out of order.
    """

    shape: Shape
    dtype: int
    transposed: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZES[self.dtype]

    @property
    def size(self) -> float:
        """Number of elements."""
        return prod(self.shape)
