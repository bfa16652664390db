"""Numba's locks after exceptions from other threads, which arrive at any moment and cannot be held back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target


@contextmanager
def released_locks() -> Iterator[None]:
    """Numba compiles within the block, after which this thread has none of its locks that it had not before.

    Numba takes them in functions of Python. An exception that arrives after a lock is taken, and before what
    releases it is noted, leaves it with this thread: no other one would ever compile again.
    """
    owners: tuple[Any, ...] = (cpu_target.typing_context.callstack, global_compiler_lock)
    free = [owner._lock for owner in owners if not owner._lock._is_owned()]
    try:
        yield
    except BaseException:
        for lock in free:
            while lock._is_owned():
                lock.release()
        raise
