"""Work counted in calls of functions: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable


def calls_of(work: Callable[[], object]) -> int:
    """How many functions, Python's and built-in ones, are called while ``work()`` runs in this thread."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def assert_near_linear(work_of: Callable[[int], Callable[[], object]], size: int) -> None:
    """Fail unless four times the size takes no more than five times the calls.

    Parameters
    ----------
    work_of
        Prepares a problem of a size, uncounted, and returns the work on it.
    size
        Of the smaller problem.
    """
    work_of(size // 4)()  # what is only done once
    small, large = (calls_of(work_of(number)) for number in (size, 4 * size))
    assert large < 5 * small, f"{small} calls for size {size}, {large} for {4 * size}"
