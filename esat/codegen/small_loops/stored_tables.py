"""Arrays of loops that stay in memory: where a part of one is, and whether its elements are still there."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from esat.base.records import record

Part: TypeAlias = tuple[Hashable, ...]
"""How a part of an array is chosen: what chose it, one after the other."""


@dataclass(slots=True, eq=False)
class Root:
    """Memory that steps read, and may write to.

    Attributes
    ----------
    dtype
        Of its elements.
    writes
        The parts that have been written to so far, on the way to where lines are written.
    """

    dtype: str
    writes: list[Part] = field(default_factory=list)


@record(frozen=True, eq=False)
class StoredTable:
    """Elements in memory.

    Attributes
    ----------
    root
        The memory.
    version
        How many writes there were when these elements were there. After further ones they may not be read.
    pointer
        LLVM's name of where the first one is.
    shape, strides
        Sizes of axes, and bytes from element to element, the latter LLVM's text where they are not known.
    part
        How they were chosen.
    """

    root: Root
    version: int
    pointer: str
    shape: tuple[int, ...]
    strides: tuple[int | str, ...]
    part: Part = ()

    @property
    def is_current(self) -> bool:
        """Whether nothing has been written there since."""
        return self.version == len(self.root.writes)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def chosen(
        self, by: Hashable, pointer: str, shape: Sequence[int], strides: Sequence[int | str]
    ) -> StoredTable:
        """A part of it."""
        return replace(
            self, pointer=pointer, shape=tuple(shape), strides=tuple(strides), part=(*self.part, by)
        )

    def written(self) -> StoredTable:
        """The elements after a write to them."""
        self.root.writes.append(self.part)
        return self.now()

    def now(self) -> StoredTable:
        """The elements that are there now."""
        return replace(self, version=len(self.root.writes))

    def has_kept(self, inner: StoredTable) -> bool:
        """Whether all that was written since is in a part, which holds what is there now."""
        since = self.root.writes[self.version :]
        return inner.is_current and all(one[: len(inner.part)] == inner.part for one in since)


def contiguous(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Bytes from element to element of elements in C order."""
    strides = [itemsize]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return tuple(strides[: len(shape)])
