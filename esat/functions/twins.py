"""Arguments that are the same memory, or share some of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MOST_WORK = 1 << 12
"""Candidates that are tried to find an element that two arrays share; beyond that, they are taken to."""


def twins_of(leaves: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Positions of arrays that are given again, with those where they are given first."""
    arrays = [place for place, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.size]
    found: list[tuple[int, int]] = []
    for number, place in enumerate(arrays):
        first = next((one for one in arrays[:number] if is_same(leaves[one], leaves[place])), None)
        if first is not None:
            found.append((place, first))
    return tuple(found)


def is_same(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return (
        one.ctypes.data == other.ctypes.data
        and one.dtype == other.dtype
        and (one.shape, one.strides) == (other.shape, other.strides)
    )


def share_elements(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays share an element, or it takes too long to find out."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return bool(np.shares_memory(one, other, max_work=MOST_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
