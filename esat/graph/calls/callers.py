"""Whose call this is: the user's line, and the function of esat that was called there."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import sysconfig
from pathlib import Path
from types import FrameType, TracebackType

from esat.errors import CallLine, UserLine
from esat.graph.scoped import Block, Scoped

PACKAGE = str(Path(__file__).resolve().parents[2])


FULL = "full"
"""The value of the environment variable ``ESAT_TRACEBACK`` that keeps all frames."""

GENERATED = "<esat "
"""How names of files begin that stand for text that the package wrote."""
_OWN = (PACKAGE, GENERATED)
_TRACING = (os.path.join(PACKAGE, "frontend", "tracing"), os.path.join(PACKAGE, "functions"))
"""Functions that stand between a user's call of NumPy's and ours: messages do not name them."""


@functools.cache
def is_own(file: str) -> bool:
    """Whether a file of code is one of the package's, or text that it wrote."""
    return file.startswith(_OWN)


def hide_own_frames(error: BaseException) -> None:
    """Leave frames of esat's out of an error's traceback, unless ``ESAT_TRACEBACK`` is ``full``."""
    if os.environ.get("ESAT_TRACEBACK") == FULL:
        return
    kept: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        if not is_own(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for one in reversed(kept):
        found = TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    error.__traceback__ = found


def user_line() -> UserLine | None:
    """The innermost line on the call stack that is neither esat's own nor a library's, with the function that
    it called; where all others are libraries', that of the innermost."""
    frame: FrameType | None = sys._getframe(1)
    called, of_library = "", None
    while frame is not None:
        file = frame.f_code.co_filename
        if is_own(file):
            called = "_" if _is_tracing(file) else frame.f_code.co_name
        elif of_library is None or not _is_library(file):
            line: UserLine = (file, frame.f_lineno)
            line = line if called.startswith(("_", "<")) else CallLine(line, called)
            if not _is_library(file):
                return line
            of_library = line
        frame = frame.f_back
    return of_library


def called_library() -> str | None:
    """The function of a library's that runs, as the user has called it; None where none is between the
    user's code and esat's."""
    frame: FrameType | None = sys._getframe(1)
    found: FrameType | None = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OWN):
            if not file.startswith(libraries()):
                break
            found = frame
        elif found is not None:  # esat's own code has called it
            return None
        frame = frame.f_back
    if found is None or frame is None:
        return None
    module = str(found.f_globals["__name__"])
    parts = [one for one in found.f_code.co_qualname.split(".") if one not in ("__init__", "__call__")]
    rooms = itertools.accumulate(module.split("."), "{}.{}".format)
    public = (one for one in rooms if hasattr(sys.modules.get(one), parts[0]))
    return ".".join((next(public, module), *parts))


@functools.cache
def _is_tracing(file: str) -> bool:
    return file.startswith(_TRACING)


@functools.cache
def _is_library(file: str) -> bool:
    return file.startswith(libraries())


@functools.cache
def libraries() -> tuple[str, ...]:
    """How names of files begin that are Python's or of installed libraries."""
    paths = sysconfig.get_paths()
    folders = {os.path.join(paths[key], "") for key in ("purelib", "platlib", "stdlib", "platstdlib")}
    return ("<frozen", "<__array_function__", *sorted(folders))


_BUILT_FOR = Scoped[tuple[UserLine | None]]("built_for")
"""During compilation: the line that new nodes stand for, which is not the line that asked for it."""


def built_for(line: UserLine | None) -> Block[tuple[UserLine | None]]:
    """Let nodes that are built meanwhile have this line, that of what they replace; None where unknown."""
    return _BUILT_FOR.set((line,))


def node_line() -> UserLine | None:
    """The user's line of a node that is built now."""
    replaced = _BUILT_FOR.get()
    return user_line() if replaced is None else replaced[0]


def caller() -> str:
    """The name of the function, method or op that the user's line called, as errors begin: ``"sum: "``.

    Empty where no function of esat was called.
    """
    frame, called = sys._getframe(1), None
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        called, frame = frame, frame.f_back  # type: ignore[assignment]
    if called is None or called.f_code.co_name == "<module>":
        return ""
    name = called.f_code.co_name
    if name == "__call__":
        name = getattr(called.f_locals.get("self"), "name", "")
    if not name:
        return ""
    return f"{name.strip('_')}: "
