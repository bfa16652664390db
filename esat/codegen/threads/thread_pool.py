"""The process's pool: how many threads there are, and the memory that the protocol runs on.

Helpers are daemon threads that start when they are first needed. A forked child has none of its parent's
threads: it starts a pool of its own, so that it computes in parallel, too.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import config as numba_config

from esat.base.native import Library
from esat.base.native.own_machine import processor_counts, processors
from esat.codegen.threads import helper_placement, protocol

_ASKED_AGAIN_AFTER = 0.1
"""Seconds: asking the system takes a good part of what it takes to call a kernel."""


class _Processors:
    """Processors that this process may run on, as the system said a moment ago."""

    def __init__(self) -> None:
        self.allowed: frozenset[int] = frozenset()
        self._count = 1
        self._asked_again = 0.0

    def count(self) -> int:
        now = time.monotonic()
        if now > self._asked_again:
            self._asked_again = now + _ASKED_AGAIN_AFTER
            allowed = processors()
            if allowed is None:
                self._count = processor_counts()[1]
            elif allowed != self.allowed:
                self.allowed, self._count = allowed, len(allowed)
        return self._count


_processors = _Processors()
available_threads = _processors.count


def configured_threads() -> int:
    """NUMBA_NUM_THREADS: no call uses more, since ``numba.set_num_threads`` only lowers the number."""
    configured: Any = numba_config
    return max(1, int(configured.NUMBA_NUM_THREADS))


def default_threads() -> int:
    """Threads that a kernel runs in where nothing else is said.

    NUMBA_NUM_THREADS, or what ``numba.set_num_threads`` said in this thread, but no more than there are
    processors.
    """
    return max(1, min(_numba_threads(), available_threads()))


def granted_threads(limit: int | None) -> int:
    """The most threads a function may use: its own limit, else what :func:`default_threads` says."""
    return default_threads() if limit is None else limit


def most_threads() -> int:
    """What :func:`default_threads` may come to say on the processors there are now."""
    return min(configured_threads(), available_threads())


def _numba_threads() -> int:
    # Asking numba before anyone has set a number would launch its own threading layer.
    layer: Any = sys.modules.get("numba.np.ufunc.parallel")
    if layer is not None and layer._is_initialized:
        return int(layer.get_num_threads())
    return configured_threads()


def pool_address(threads: int) -> int:
    """The address of a pool with helpers for so many threads, the caller counted; 0 for a single one."""
    if threads <= 1:
        return 0
    pool = _process.pool
    if pool is None or pool.helpers < threads - 1:
        pool = _process.pool_with(threads - 1)
    if pool.allowed is not _processors.allowed and pool.can_place:
        pool.allow(_processors.allowed)
    return pool.address


_pools: list[HelperPool] = []
"""All that were made: helpers of smaller ones look at their memory for ever."""


class HelperPool:
    """Helpers, and the memory they share with callers. Both last as long as the process."""

    def __init__(self, capacity: int) -> None:
        _pools.append(self)
        size = protocol.CALLER + (1 + capacity) * protocol.THREAD
        self._memory = np.zeros(size + protocol.LINE, np.uint8)
        self.address = self._memory.ctypes.data + -self._memory.ctypes.data % protocol.LINE
        self.capacity = capacity
        self.helpers = 0
        self.put(protocol.SHARE, _LIBRARY.address(protocol.share))
        self.put(protocol.ACQUIRE, _address_of("PyThread_acquire_lock"))
        self.put(protocol.RELEASE, _address_of("PyThread_release_lock"))
        self.put(protocol.DONE, _held_lock())
        here, allow = helper_placement.functions()
        self.put(protocol.HERE, here)
        self.put(protocol.ALLOW, allow)
        self.can_place = bool(allow)
        self.allowed: frozenset[int] | None = frozenset()
        self._masks: dict[frozenset[int], np.ndarray[Any, Any]] = {}

    def put(self, offset: int, value: int) -> None:
        """Write one of the protocol's words."""
        ctypes.c_int64.from_address(self.address + offset).value = value

    def word(self, offset: int) -> int:
        """One of the protocol's words."""
        return ctypes.c_int64.from_address(self.address + offset).value

    def start(self, helpers: int) -> None:
        """Have at least so many helpers."""
        work = _WORK(_LIBRARY.address(protocol.work))
        for number in range(self.helpers + 1, helpers + 1):
            self.put(protocol.CALLER + number * protocol.THREAD + protocol.LOCK, _held_lock())
            name = f"esat kernel helper {number}"
            thread = threading.Thread(target=work, args=(self.address, number), name=name, daemon=True)
            thread.start()
            self.put(protocol.CALLER + number * protocol.THREAD + protocol.AVOIDED, -1)
            self.put(protocol.CALLER + number * protocol.THREAD + protocol.SYSTEM, thread.native_id or 0)
            self.helpers = number

    def allow(self, processors: frozenset[int]) -> None:
        """Let helpers run on these processors, from when they next wake."""
        masks = self._masks.get(processors)
        if masks is None:  # all are kept: a caller may be looking at those before
            masks = self._masks.setdefault(processors, helper_placement.masks_of(processors))
        self.put(protocol.MASKS, masks.ctypes.data)
        for number in range(1, self.helpers + 1):
            self.put(protocol.CALLER + number * protocol.THREAD + protocol.AVOIDED, -1)
        self.allowed = processors


class _Process:
    """The pool of this process, made anew in a forked child.

    Attributes
    ----------
    pool
        The present one; None before the first task.
    """

    def __init__(self) -> None:
        self.pool: HelperPool | None = None
        self._lock = threading.Lock()

    def pool_with(self, helpers: int) -> HelperPool:
        """A pool with at least so many helpers."""
        with self._lock:
            pool = self.pool
            if pool is None or pool.capacity < helpers:
                pool = HelperPool(max(helpers, available_threads() - 1))
            pool.start(helpers)
            self.pool = pool
            return pool

    def forget(self) -> None:
        """In a forked child: helpers are gone, and whoever held the lock is gone, too."""
        self.pool = None
        self._lock = threading.Lock()


_process = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forget)


def _address_of(function: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, function), ctypes.c_void_p).value or 0


def _held_lock() -> int:
    """A new lock of Python's, held: who acquires it sleeps until another thread releases it."""
    allocate = ctypes.pythonapi.PyThread_allocate_lock
    allocate.restype = ctypes.c_void_p
    lock = allocate()
    if not lock:
        raise MemoryError("no lock for a pool of threads")
    ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
    return int(lock)


# ---- machine code


_LIBRARY = Library((protocol.share, protocol.work))
_WORK = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
_SHARE = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 2, ctypes.c_char_p, *[ctypes.c_int64] * 3)
_TASK = ctypes.CFUNCTYPE(None, ctypes.c_char_p, *[ctypes.c_int64] * 2)


@functools.cache
def _share() -> Callable[..., None]:
    return _SHARE(_LIBRARY.address(protocol.share))


def run_task(task: int, data: bytes, units: int, turns: int, pool: int, threads: int) -> None:
    """Run a task for all its units, as :func:`esat.codegen.threads.tasks.in_parallel` does in kernels.

    Parameters
    ----------
    task
        The address of a C function, which takes that of the data and units from one up to another, and raises
        nothing.
    data
        What it works on.
    units, turns, pool, threads
        As there.
    """
    if pool == 0:
        _TASK(task)(data, 0, units)
    else:
        _share()(pool, task, data, units, turns, threads - 1)
