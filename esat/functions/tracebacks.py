"""Errors of traced functions as users see them: with the line of their code, and without frames of esat's."""

from __future__ import annotations

import os
import types

from esat.errors import EsatError
from esat.frontend.tracing.code.outside import is_users_file
from esat.graph.calls.callers import is_own

FULL = "full"
"""The value of the environment variable ``ESAT_TRACEBACK`` that keeps all frames."""


def shown(error: Exception, name: str) -> Exception:
    """An error with the user's line in its message, and with frames of the user's and of libraries alone.

    Parameters
    ----------
    error
        What was raised while a function was traced.
    name
        Of the function.
    """
    trace = error.__traceback__
    place = _users_place(trace)
    if isinstance(error, EsatError) and place is not None and "\n  at " not in str(error):
        where = f"at {place[0]}:{place[1]}, in {name}"
        if len(error.args) == 1 and str(error) == error.args[0]:
            error.args = (f"{error.args[0]}\n  {where}",)
        if where not in str(error):  # an AxisError has its text elsewhere
            error.add_note(where)
    if os.environ.get("ESAT_TRACEBACK") == FULL:
        return error
    return error.with_traceback(_without_own(trace))


def _users_place(trace: types.TracebackType | None) -> tuple[str, int] | None:
    """The innermost line of the user's."""
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_users_file(file):
            found = file, trace.tb_lineno
        trace = trace.tb_next
    return found


def _without_own(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without frames of esat's; all of it where no other is left, as for errors of calls."""
    kept: list[types.TracebackType] = []
    while trace is not None:
        if not is_own(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    found: types.TracebackType | None = None
    for one in reversed(kept):
        found = types.TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found
