"""Other processes that compile kernels ahead of this one, into the disk cache that all share.

Numba compiles one kernel at a time in a process. A helper is a fork, because a new process would load numba
and its registries first, which takes as long as compiling eight kernels. This process goes through the
kernels from the first to the last and finds on disk what helpers, which begin at the last, have done. It
never waits for them: should one hang or fail, this process compiles everything, as it would have alone.
Helpers run at low priority and are ended when all kernels are there; where the machine has no processor to
spare there are none.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from esat.base.native.own_machine import processor_counts
from esat.codegen import cache
from esat.errors import CompileError

PROCESSES_VARIABLE = "ESAT_COMPILE_PROCESSES"
"""Environment variable: the most processes that compile the kernels of one program; 1 for no helper."""
MOST_PROCESSES = 4
LEAST_LEFT = 3
"""Kernels that must be left for a helper to be worth its fork."""
LARGEST_PROCESS = 1 << 31
"""Bytes in memory of this process beyond which a fork, which copies the tables of pages, takes long."""
LOWER_PRIORITY = 10
LIFETIME = 120
"""Seconds after which a helper that lost its parent ends, whatever it does."""

Result = TypeVar("Result")


def with_helpers(jobs: Sequence[Callable[[], Result]]) -> Iterator[Result]:
    """The results of compilations, in order.

    Helpers start once one of them turns out not to be in the cache.

    Parameters
    ----------
    jobs
        Each compiles one kernel through :mod:`esat.codegen.cache`, and changes nothing else that lasts.

    Raises
    ------
    CompileError
        When :data:`PROCESSES_VARIABLE` is no number, and what the jobs raise.
    """
    helpers: list[int] = []
    left = len(jobs)
    waiting = True
    try:
        for job in jobs:
            misses = cache.misses()
            result = job()
            left -= 1
            if waiting and cache.misses() > misses:
                waiting = False
                helpers += _start(jobs[len(jobs) - left :])
            yield result
    finally:
        for helper in helpers:
            _end(helper)


def _start(jobs: Sequence[Callable[[], object]]) -> list[int]:
    """Helpers for jobs, as many as pay and may be: their process numbers."""
    count = min(_processes() - 1, len(jobs) // LEAST_LEFT)
    if count < 1 or not _may_fork():
        return []
    helpers = []
    # Some libraries warn of every fork; it is theirs that the child would touch, and it does not.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(count):
            try:
                helper = os.fork()
            except OSError:  # no memory, or no more processes: there is no help, then
                break
            if helper == 0:
                _help(jobs[::-1][number::count])
            helpers.append(helper)
    return helpers


def _processes() -> int:
    """How many processes may compile, this one included."""
    text = os.environ.get(PROCESSES_VARIABLE, "")
    try:
        wanted = int(text) if text else MOST_PROCESSES
    except ValueError:
        raise CompileError(f"{PROCESSES_VARIABLE} is {text!r}: a number of processes is needed") from None
    if sys.platform != "linux":
        return 1  # elsewhere forks are slow, or libraries do not survive them
    # What this process itself has done of late is part of the load, but for the first seconds.
    free = processor_counts()[1] - os.getloadavg()[0]
    return min(wanted, 1 + int(free))


def _may_fork() -> bool:
    """Whether a fork disturbs nobody: no thread that may hold a lock, no one who looks after children.

    A process that is itself a worker leaves the other processors to its siblings.
    """
    return (
        threading.active_count() == 1
        and signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
        and multiprocessing.parent_process() is None
        and _resident_bytes() <= LARGEST_PROCESS
        and cache.is_stored()
    )


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _help(jobs: Sequence[Callable[[], object]]) -> None:
    """Do the jobs and end this process, without a word: the parent meets the same errors."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIFETIME)
        os.nice(LOWER_PRIORITY)
        for job in jobs:
            job()
    finally:
        os._exit(0)


def _end(helper: int) -> None:
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(helper, signal.SIGKILL)
        os.waitpid(helper, 0)
