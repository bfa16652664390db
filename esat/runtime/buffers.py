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
from esat.phases.memory.memory_plan import ALIGNMENT, BufferPlan

POOLED_FROM = 1 << 18
"""Bytes from which the memory of outputs is kept for reuse; below, a fresh array costs less."""
KEPT_PER_OUTPUT = 3
_LAST_FIRST = range(KEPT_PER_OUTPUT - 1, -1, -1)
HUGE_PAGE = 1 << 21
"""Bytes of a huge page, where the system has them: an array in such pages is written a tenth faster."""

Allocator = Callable[[], Array]


def _references_of_unshared() -> int:
    """What ``sys.getrefcount`` says, in a frame like the pool's, of an array that only the pool holds."""
    bases = np.empty(1, object)
    bases[0] = np.empty(1, np.uint8)
    base = bases[0]
    return sys.getrefcount(base)


_UNSHARED = _references_of_unshared()


def _counts_are_exact() -> bool:
    """Whether reference counts tell who can see an array; without the interpreter lock they do not."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def aligned_bytes(size: int) -> Array:
    """Fresh memory that begins with a cache line, or with a huge page if it is as large as one.

    Views of it hold this array itself, not what it lies in.
    """
    memory: Any = _in_huge_pages(size) if size >= HUGE_PAGE else None
    boundary = ALIGNMENT if memory is None else HUGE_PAGE
    if memory is None:
        memory = np.empty(size + boundary, np.uint8).data
    start = -int(np.frombuffer(memory, np.uint8).ctypes.data) % boundary
    return np.frombuffer(memory, np.uint8, size, start)


def _in_huge_pages(size: int) -> mmap.mmap | None:
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
    return mapping


def allocator(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Allocator:
    """A function that returns an uninitialized C-contiguous array, each time one nobody else sees."""
    if prod(shape) * dtype.itemsize < POOLED_FROM or not _counts_are_exact():
        return functools.partial(np.empty, shape, dtype)
    return BufferPool(shape, dtype).take


def pool_of(taken_from: Allocator) -> BufferPool | None:
    """The pool that an allocator takes memory from; None where all of its arrays are new."""
    owner = getattr(taken_from, "__self__", None)
    return owner if isinstance(owner, BufferPool) else None


class BufferPool:
    """Storage for one output: memory is reused when no array shows it any more.

    Every array handed out is a new view of a base. NumPy lets every further view, and every export of
    memory, hold that base as well, so that its reference count says whether any is left. Whoever looks at the
    count holds the base himself: of two threads that look at the same one, neither finds it unseen.

    Attributes
    ----------
    bases
        The bases, as objects, each of ``size`` bytes; None until there are so many. The last one that nobody
        sees is taken, whether here or by native code: the caches may still hold it.
    size
        Bytes.
    """

    __slots__ = ("_dtype", "_shape", "bases", "size")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape = shape
        self._dtype = dtype
        self.size = prod(shape) * dtype.itemsize
        self.bases = np.full(KEPT_PER_OUTPUT, None, object)

    def take(self) -> Array:
        """An array whose memory nobody else sees."""
        bases = self.bases
        for place in _LAST_FIRST:
            base = bases[place]
            if sys.getrefcount(base) == _UNSHARED:
                break
        else:
            base = _added(bases, self.size)
        return np.ndarray(self._shape, self._dtype, base)


def provide(bases: np.ndarray[Any, Any], size: int) -> bool:
    """Add memory to the bases of a pool if somebody sees all of them; whether that was so.

    Native code takes a base that nobody sees, and makes none.
    """
    for place in _LAST_FIRST:
        base = bases[place]
        if sys.getrefcount(base) == _UNSHARED:
            return False
    _added(bases, size)
    return True


def _added(bases: np.ndarray[Any, Any], size: int) -> Array:
    """A new base, which takes the place of the oldest one."""
    base = aligned_bytes(size)
    bases[:-1] = bases[1:]
    bases[-1] = base
    return base


class ScratchFrames:
    """Scratch results of one combination of shapes: one frame of arrays for each call in progress.

    Attributes
    ----------
    idle
        Frames that no call uses; a call pops one, or makes one, and appends it when it is done.
    """

    __slots__ = ("_arrays", "idle", "plan")

    def __init__(self, plan: BufferPlan, arrays: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> None:
        self.plan = plan
        self._arrays = tuple(arrays)
        self.idle: deque[tuple[Array, ...]] = deque()

    @property
    def idle_bytes(self) -> int:
        """Bytes that idle frames hold."""
        return len(self.idle) * self.plan.peak_bytes

    def make(self) -> tuple[Array, ...]:
        """A new frame: one array for each scratch result, some of them in the same memory."""
        buffers = [aligned_bytes(size) for size in self.plan.sizes]
        return tuple(
            np.ndarray(shape, dtype, buffers[place])
            for (shape, dtype), place in zip(self._arrays, self.plan.places, strict=True)
        )
