"""Buffers that outlive a call: scratch frames, and storage of outputs the caller has let go.

Large fresh arrays cost a page fault every four kilobytes, up to three times what a kernel takes to
fill them. So a program keeps the memory of its results and uses it again, never while anyone can
still see it.
"""

from __future__ import annotations

import functools
import mmap
import sys
from collections import deque
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from esat.graph.op import Array
from esat.phases.memory import ALIGNMENT, BufferPlan

POOLED_FROM = 1 << 18
"""Bytes from which the memory of outputs is kept for reuse; below, a fresh array costs less."""
KEPT_PER_OUTPUT = 3
HUGE_PAGE = 1 << 21
"""Bytes of a huge page, where the system has them: an array in such pages is written a tenth faster."""

Allocator = Callable[[], Array]


def _references_of_unshared() -> int:
    """What ``sys.getrefcount`` says, in a frame like the pool's, of an array only a local name holds."""
    held: deque[Array] = deque((np.empty(1, np.uint8),))
    base = held.popleft()
    return sys.getrefcount(base)


_UNSHARED = _references_of_unshared()


def _counts_are_exact() -> bool:
    """Whether reference counts tell who can see an array; without the interpreter lock they do not."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def raw_buffer(size: int) -> tuple[Array, int]:
    """A fresh byte array, and the offset in it from which ``size`` bytes are aligned."""
    base: Array | None = _in_huge_pages(size) if size >= HUGE_PAGE else None
    if base is not None:
        return base, -int(base.ctypes.data) % HUGE_PAGE
    base = np.empty(size + ALIGNMENT, np.uint8)
    return base, -int(base.ctypes.data) % ALIGNMENT


def _in_huge_pages(size: int) -> Array | None:
    """Room for ``size`` bytes from the start of a huge page, in whole ones; None where there are none.

    What an allocator hands out for the second time keeps the small pages that it had.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return None
    pages = -(-size // HUGE_PAGE) + 1
    try:
        mapping = mmap.mmap(-1, pages * HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        mapping.madvise(advice)
    except OSError:  # the system refuses: what NumPy says about it is clearer
        return None
    return np.frombuffer(mapping, np.uint8)


def allocator(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Allocator:
    """A function that returns an uninitialized C-contiguous array, each time one nobody else sees."""
    if prod(shape) * dtype.itemsize < POOLED_FROM or not _counts_are_exact():
        return functools.partial(np.empty, shape, dtype)
    return _Pool(shape, dtype).take


class _Pool:
    """Storage for one output: memory is reused when no array shows it any more.

    Every array handed out is a new view of a base array. NumPy lets every further view, and every
    export of memory, hold that base as well, so that its reference count says whether any is left.
    A base is taken out of the queue while it is looked at: two threads never look at the same one. The one
    that was handed out last is taken first: the caches may still hold it.
    """

    __slots__ = ("_bases", "_dtype", "_shape", "_size")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape = shape
        self._dtype = dtype
        self._size = prod(shape) * dtype.itemsize
        self._bases: deque[tuple[Array, int]] = deque(maxlen=KEPT_PER_OUTPUT)

    def take(self) -> Array:
        """An array whose memory nobody else sees."""
        bases = self._bases
        busy: list[tuple[Array, int]] = []
        found: tuple[Array, int] | None = None
        while found is None:
            try:
                base, offset = bases.pop()
            except IndexError:
                found = raw_buffer(self._size)
                break
            if sys.getrefcount(base) == _UNSHARED:
                found = base, offset
            else:
                busy.append((base, offset))
        array: Array = np.ndarray(self._shape, self._dtype, *found)
        bases.extend(reversed(busy))
        bases.append(found)
        return array


class ScratchFrames:
    """Scratch results of one combination of shapes: one frame of arrays for each call in progress.

    Attributes
    ----------
    idle
        Frames that no call uses; a call pops one, or makes one, and appends it when it is done.
    elsewhere
        What is called in place of the program for these shapes; None for the program itself.
    """

    __slots__ = ("_arrays", "elsewhere", "idle", "plan")

    def __init__(self, plan: BufferPlan, arrays: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        self.plan = plan
        self._arrays = tuple(arrays)
        self.elsewhere: Callable[..., Any] | None = None
        self.idle: deque[tuple[Array, ...]] = deque()

    @property
    def idle_bytes(self) -> int:
        """Bytes that idle frames hold."""
        return len(self.idle) * self.plan.peak_bytes

    def make(self) -> tuple[Array, ...]:
        """A new frame: one array for each scratch result, some of them in the same memory."""
        buffers = [raw_buffer(size) for size in self.plan.sizes]
        return tuple(
            np.ndarray(shape, dtype, *buffers[place])
            for (shape, dtype), place in zip(self._arrays, self.plan.places, strict=True)
        )
