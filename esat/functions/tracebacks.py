"""Errors of traced functions as users see them: with the line of their code, and without frames of esat's."""

from __future__ import annotations

import types

from esat.errors import EsatError
from esat.frontend.tracing.code.outside import is_users_file
from esat.graph.calls.callers import hide_own_frames


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
    hide_own_frames(error)
    return error


def _users_place(trace: types.TracebackType | None) -> tuple[str, int] | None:
    """The innermost line of the user's."""
    found = None
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_users_file(file):
            found = file, trace.tb_lineno
        trace = trace.tb_next
    return found
