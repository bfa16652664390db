"""Elements in memory as native functions see them: a place, a shape and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from esat.base.records import record
from esat.codegen.native_functions.native_plan import Place
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.index.entries import Entry, Slice

Shape = tuple[int, ...]


@record(frozen=True)
class NativeView:
    """Elements in memory.

    Attributes
    ----------
    strides
        In elements; those of axes of size 1 mean nothing.
    within
        All elements among which the view moves, of one in a loop; None for others.
    alone
        Whether nothing else is where it is: of a place in a loop where a step writes.
    """

    place: Place
    shape: Shape
    strides: tuple[int, ...]
    itemsize: int
    within: NativeView | None = None
    alone: bool = False

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies in memory in C order."""
        wanted = contiguous(self.shape)
        pairs = zip(self.shape, self.strides, wanted, strict=True)
        return 0 in self.shape or all(size == 1 or stride == other for size, stride, other in pairs)

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def byte_strides(self) -> tuple[int, ...]:
        """Strides in bytes."""
        return tuple(stride * self.itemsize for stride in self.strides)

    def shuffled(self, op: DimShuffle) -> NativeView:
        """The view with its axes in another order."""
        shape = tuple(1 if axis == "x" else self.shape[int(axis)] for axis in op.order)
        strides = tuple(0 if axis == "x" else self.strides[int(axis)] for axis in op.order)
        return replace(self, shape=shape, strides=strides)

    def part(self, entries: Sequence[Entry]) -> NativeView | None:
        """The part that known numbers choose; None where one is out of bounds, or not known."""
        first, shape, strides = 0, [], []
        for entry, size, stride in zip(entries, self.shape, self.strides, strict=True):
            if isinstance(entry, Slice) and entry.is_static and entry.step != 0:
                chosen = range(*slice(*entry.parts()).indices(size))
                shape.append(len(chosen))
                strides.append(stride * chosen.step)
                first += stride * chosen.start if chosen else 0
            elif isinstance(entry, int) and -size <= entry < size:
                first += stride * (entry % size)
            else:
                return None
        return replace(self.moved(first), shape=tuple(shape), strides=tuple(strides))

    def moved(self, elements: int) -> NativeView:
        """The view so many elements further on."""
        place = replace(self.place, offset=self.place.offset + elements * self.itemsize)
        return replace(self, place=place)

    def section(self, axis: int, start: int, size: int) -> NativeView:
        """So many elements along an axis."""
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        return replace(self.moved(start * self.strides[axis]), shape=shape)

    def reshaped(self, shape: Shape) -> NativeView:
        """The elements of a contiguous view under another shape."""
        return replace(self, shape=shape, strides=contiguous(shape))

    def stretched(self, shape: Shape) -> NativeView:
        """Broadcast to a shape of the same rank."""
        pairs = zip(self.shape, self.strides, shape, strict=True)
        strides = tuple(0 if size == 1 != wanted else stride for size, stride, wanted in pairs)
        return replace(self, shape=shape, strides=strides)

    def diagonal(self, offset: int) -> NativeView:
        """A diagonal of the matrices in the last two axes, as the last axis."""
        *batch, rows, columns = self.shape
        length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
        down, across = self.strides[-2:]
        view = self.moved(max(-offset, 0) * down + max(offset, 0) * across) if length else self
        return replace(view, shape=(*batch, length), strides=(*self.strides[:-2], down + across))

    def may_overlap(self, other: NativeView) -> bool:
        """Whether two views of one program may have elements in common."""
        if self.within is not None or other.within is not None:
            return (self.within or self).may_overlap(other.within or other)
        if "chosen" in (self.place.kind, other.place.kind):
            same = (self.place.kind, self.place.number) == (other.place.kind, other.place.number)
            return same or not (self.alone or other.alone)
        if self.place.kind != other.place.kind or (
            self.place.kind != "fixed" and self.place.number != other.place.number
        ):
            return False
        (first, last), (other_first, other_last) = self._extent(), other._extent()
        return first < other_last and other_first < last

    def _extent(self) -> tuple[int, int]:
        """The first byte and the one after the last."""
        start = self.place.offset + (self.place.number if self.place.kind == "fixed" else 0)
        if 0 in self.shape:
            return start, start
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)
        return start + low * self.itemsize, start + (high + 1) * self.itemsize


def contiguous(shape: Shape) -> tuple[int, ...]:
    """Strides, in elements, of elements in C order."""
    strides: list[int] = []
    count = 1
    for size in reversed(shape):
        strides.insert(0, count)
        count *= size
    return tuple(strides)
