"""Whose call this is: the user's line, and the function of esat that was called there."""

from __future__ import annotations

import sys
from pathlib import Path

from esat.errors import UserLine

_PACKAGE = str(Path(__file__).resolve().parent.parent)


def user_line() -> UserLine | None:
    """The innermost line on the call stack that is not esat's own."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def caller() -> str:
    """The name of the function, method or op that the user's line called, as errors begin: ``"sum: "``.

    Empty where no function of esat was called.
    """
    frame, called = sys._getframe(1), None
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        called, frame = frame, frame.f_back  # type: ignore[assignment]
    if called is None or called.f_code.co_name == "<module>":
        return ""
    name = called.f_code.co_name
    if name == "__call__":
        name = getattr(called.f_locals.get("self"), "name", name)
    return f"{name.strip('_')}: "
