"""A line on the terminal while something takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TextIO, TypeVar

PATIENCE = 1.0
"""Seconds that pass without a word."""

WIDTH = 24
_ERASE = "\r\x1b[K"

Item = TypeVar("Item")


def progress(items: Sequence[Item], what: str, stream: TextIO | None = None) -> Iterator[Item]:
    """Go through the items; where that takes over a second, a terminal shows how many are done.

    The line is gone at the end. Nothing is written where the stream is no terminal.

    Parameters
    ----------
    items
        What to go through.
    what
        What happens to them, for the line.
    stream
        Where the line stands; by default standard error.
    """
    out = sys.stderr if stream is None else stream
    begun, shown = time.perf_counter(), False
    try:
        for done, item in enumerate(items):
            if time.perf_counter() - begun > PATIENCE and out is not None and out.isatty():
                bar = "#" * (WIDTH * done // len(items))
                out.write(f"{_ERASE}esat: {what} [{bar:.<{WIDTH}}] {done} of {len(items)}")
                out.flush()
                shown = True
            yield item
    finally:
        if shown:
            out.write(_ERASE)
            out.flush()
