"""Python's garbage collector while much is built at once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT_BY_PYTHON = 1000
"""Python 3.12 begins with some hundred objects that the collector passes by; whoever freezes has more."""
_GROWTH = 1.5
"""By how much memory grows between two full passes, as in Python's own rule."""

_YOUNG = 50_000
"""Objects that are made between two passes while much is built, some megabytes; Python begins one after every
700 to 2,000. A first compilation takes a tenth less of its processor time."""


class _FullPasses:
    """Full passes of the collector, which :func:`without_old_objects` keeps Python from starting by itself.

    To thaw objects makes all of them old, and sets back what Python counts until it looks at old ones again:
    a process that compiles over and over would never do so, and keep every function that it has dropped.
    """

    def __init__(self) -> None:
        self._blocks = 0

    def note(self) -> None:
        """Remember how much memory is in use: there is no garbage in it to speak of."""
        self._blocks = sys.getallocatedblocks()

    def make_if_due(self) -> None:
        """Make a pass where memory has grown enough since the last one."""
        if not gc.isenabled():
            return
        if not self._blocks:
            self.note()
        elif sys.getallocatedblocks() > _GROWTH * self._blocks:
            gc.collect()
            self.note()


_FULL_PASSES = _FullPasses()


@contextmanager
def without_old_objects() -> Iterator[None]:
    """Until this ends, the collector looks only at objects made since it began.

    Each of its full passes goes through all objects there are, some hundred thousand once the compiler is
    loaded; a large graph starts several, which then take longer than the work. Garbage that is made
    meanwhile is still collected, and all there is once memory has grown by a quarter. A process that keeps
    objects from the collector by itself is left alone.
    """
    if _keeps_objects_from_collection():
        yield
        return
    thresholds = gc.get_threshold()
    try:
        if 0 < thresholds[0] < _YOUNG:
            gc.set_threshold(_YOUNG, *thresholds[1:])
        try:  # from the beginning: the exception of a signal may come as soon as objects are frozen
            gc.freeze()
            yield
        finally:
            gc.unfreeze()
    finally:
        gc.set_threshold(*thresholds)
        _FULL_PASSES.make_if_due()


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
                _FULL_PASSES.note()
            finally:
                gc.enable()


def _keeps_objects_from_collection() -> bool:
    """Whether this process froze objects by itself, which is to be left alone."""
    return gc.get_freeze_count() > _KEPT_BY_PYTHON
