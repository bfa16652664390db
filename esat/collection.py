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
    if _keeps_objects_from_collection():
        yield
        return
    try:  # from the beginning: the exception of a signal may come as soon as objects are frozen
        gc.freeze()
        yield
    finally:
        gc.unfreeze()


@contextmanager
def without_collecting() -> Iterator[None]:
    """Until this ends, nothing is collected: for what makes much and leaves no garbage, such as imports.

    All objects count as old afterwards. Else the next collection of young ones, which comes at once, would go
    through all that was made: after the import of the compiler that takes 30 ms.
    """
    enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if enabled:
            try:
                with without_old_objects():
                    pass  # what was frozen is old
            finally:
                gc.enable()


def _keeps_objects_from_collection() -> bool:
    """Whether this process froze objects by itself, which is to be left alone."""
    return gc.get_freeze_count() > _KEPT_BY_PYTHON
