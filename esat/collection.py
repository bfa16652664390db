"""Python's garbage collector while much is built at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT_BY_PYTHON = 1000
"""Python 3.12 begins with some hundred objects that the collector passes by; whoever freezes has more."""


@contextmanager
def without_old_objects() -> Iterator[None]:
    """Until this ends, the collector looks only at objects made since it began.

    Each of its full passes goes through all objects there are, some hundred thousand once the compiler is
    loaded; a large graph starts several, which then take longer than the work. Garbage that is made
    meanwhile is still collected. A process that keeps objects from the collector by itself is left alone.
    """
    if gc.get_freeze_count() > _KEPT_BY_PYTHON:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def without_collecting() -> Iterator[None]:
    """Until this ends, nothing is collected: for what makes much and leaves no garbage, such as imports."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
