"""Sets of small numbers as the bits of an integer: union and comparison in a few machine words."""

from __future__ import annotations

from collections.abc import Iterator


def bits_of(bits: int) -> Iterator[int]:
    """Positions of the ones, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
