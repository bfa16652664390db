"""Ctrl-C while numba is imported or compiles: its modules and tables are whole only before and after."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """A Ctrl-C within the block takes effect at its end, some tenths of a second later.

    An exception at any place leaves numba with generators that have ended, or with modules that import each
    other and are there in part, so that it compiles nothing more.
    Python runs handlers of signals in its main thread: elsewhere there is nothing to delay.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    arrived: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: arrived.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            handler(signal.SIGINT, arrived[-1])
