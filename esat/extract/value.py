"""What costs need to know of a value."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from esat.extract.nary import Shape
from esat.graph.types import DTYPES

IMPOSSIBLE = float("inf")
"""Price of what cannot be computed."""
UNKNOWN_SIZE = 256.0
"""Assumed size of an axis that neither the types nor a hint tell."""


@dataclass(frozen=True, slots=True)
class Value:
    """Shape and dtype number of an e-class, as far as costs need them. A scalar has no axes.

    ``transposed``: it can only be had as a view whose axes are out of order.
    """

    shape: Shape
    dtype: int
    transposed: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(np.dtype(DTYPES[self.dtype]).itemsize)

    @property
    def size(self) -> float:
        """Number of elements."""
        return prod(self.shape)
