"""What a long compilation is doing, on standard error.

After three seconds a terminal has a line that is written anew as work goes on, and is gone at the end. What
is no terminal, such as a log, gets a line after three seconds, and again when twice the time has passed.
``ESAT_PROGRESS=0`` keeps both quiet.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 3.0
"""Seconds that pass without a word."""
REFRESH = 0.1
"""Seconds between two states of a terminal's line."""
VARIABLE = "ESAT_PROGRESS"

_ERASE = "\r\x1b[K"


class _Line:
    """What is said of one compilation."""

    def __init__(self, name: str, stream: TextIO | None) -> None:
        self._name, self._stream = name, stream
        self._begun = time.perf_counter()
        self._next = PATIENCE
        self._shown = False

    def tell(self, state: str) -> None:
        passed = time.perf_counter() - self._begun
        stream = self._stream if self._stream is not None else sys.stderr
        if passed < self._next or stream is None or os.environ.get(VARIABLE) == "0":
            return
        text = f"esat: compiling {self._name}: {state}, {passed:.0f} s"
        if stream.isatty():
            stream.write(f"{_ERASE}{text}")
            self._shown, self._next = True, passed + REFRESH
        else:
            stream.write(f"{text}\n")
            self._next = 2 * passed
        stream.flush()

    def erase(self) -> None:
        stream = self._stream if self._stream is not None else sys.stderr
        if self._shown and stream is not None:
            stream.write(_ERASE)
            stream.flush()


class _Current(threading.local):
    line: _Line | None = None


_CURRENT = _Current()


@contextmanager
def compiling(name: str, stream: TextIO | None = None) -> Iterator[None]:
    """Say what is done until this ends, under a name; within another compilation by the name of that."""
    if _CURRENT.line is not None:
        yield
        return
    _CURRENT.line = line = _Line(name, stream)
    try:
        yield
    finally:
        _CURRENT.line = None
        line.erase()


def tell(state: str) -> None:
    """Say what the compilation of this thread does now, if it takes long."""
    if _CURRENT.line is not None:
        _CURRENT.line.tell(state)
