"""Sorting e-nodes into kinds, on arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

from esat.egraph.analyses.distinct import distinct
from esat.extract.arrays import IntArray, starts_of

Item = TypeVar("Item", bound=Hashable)


def renumbered(values: IntArray) -> IntArray:
    """Numbers from 0 that are equal where the values are."""
    return distinct(values)[1]


def numbered(items: Sequence[Item]) -> tuple[IntArray, list[Item]]:
    """The number of each of many items among the different ones, int64 ``(items,)``, and these.

    Most are the same object: they need not all be compared by value.
    """
    same = renumbered(np.fromiter(map(id, items), np.int64, len(items)))
    numbers: dict[Item, int] = {}
    objects = [numbers.setdefault(items[first], len(numbers)) for first in examples_of(same).tolist()]
    return np.array(objects, np.int64)[same], list(numbers)


def examples_of(kinds: IntArray) -> IntArray:
    """The first of each kind; kinds are numbered from 0."""
    examples = np.zeros(int(kinds.max(initial=-1)) + 1, np.int64)
    examples[kinds[::-1]] = np.arange(len(kinds))[::-1]
    return examples


def refined(kinds: IntArray, owner: IntArray, items: IntArray) -> IntArray:
    """Kinds by the former ones and by the items that each e-node owns, in their order.

    Parameters
    ----------
    owner
        int64 ``(items,)``, ascending.
    items
        int64 ``(items,)``, not negative.
    """
    start = starts_of(owner, len(kinds))
    length = np.diff(start)
    kinds = kinds.copy()
    span = int(items.max(initial=0)) + 1
    for place in range(int(length.max(initial=0))):
        rows = np.flatnonzero(length > place)
        # Above all former kinds: an e-node whose items have come to an end is of none of the new ones.
        kinds[rows] = renumbered(kinds[rows] * span + items[start[rows] + place]) + kinds.max() + 1
    return kinds


def runs(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """Where runs of equal rows begin, and how long they are."""
    changes = np.zeros(len(columns[0]), np.bool_)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(changes)
    return first, np.diff(np.append(first, len(changes)))


def spread(start: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Ranges one after the other: for each of their numbers the range that it is in, and the number."""
    owner = np.repeat(np.arange(len(start)), counts)
    return owner, np.arange(len(owner)) + np.repeat(start - (np.cumsum(counts) - counts), counts)
