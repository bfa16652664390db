"""Where helpers run, where the system lets a thread say so: they wake on another processor than the caller's.

Linux may put a thread that wakes onto the processor of the one that wakes it, although others are idle, and
takes milliseconds to notice: seen on two cores, where a kernel of two milliseconds so took as long in two
threads as in one, and takes half with this.

Where another process takes a processor while a helper is at work there, the caller waits for what that
helper has begun until the system lets it go on, four milliseconds as a rule. So a caller that has waited for
long calls the helper to its own processor, and sleeps: beside a library whose threads look for work all the
time, a quarter of such waits are left.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import Any

import numpy as np

from esat.base.native.own_machine import processors

WORD_BITS = 64


def functions() -> tuple[int, int]:
    """Addresses of the C library's ``sched_getcpu`` and ``sched_setaffinity``; zeros where one is missing."""
    if processors() is None:
        return 0, 0
    library: Any = ctypes.CDLL(None)
    try:
        found = library.sched_getcpu, library.sched_setaffinity
    except AttributeError:
        return 0, 0
    here, allow = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in found)
    return here, allow


def masks_of(allowed: Collection[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """For each processor, as bits, all allowed ones but that, or all of them where it is the only one.

    The first word is how many processors have such a row of words. The rows follow, and then for each of them
    a row for that processor alone.
    """
    count = max(allowed) + 1
    masks = np.zeros((2, count, -(-count // WORD_BITS)), np.uint64)
    for one in range(count):
        for row, chosen in enumerate((set(allowed) - {one} or allowed, {one})):
            for processor in chosen:
                word, bit = divmod(processor, WORD_BITS)
                masks[row, one, word] |= np.uint64(1 << bit)
    return np.concatenate([np.array([count], np.uint64), masks.reshape(-1)])
