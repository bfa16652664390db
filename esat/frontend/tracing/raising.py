"""``if condition: raise ...`` and ``assert`` of a user's, where only a call can know the condition.

The code that is traced has ``if MAY_FAIL(condition, True):`` there, with the ``raise`` in a ``try``, whose
handler asks ``FAILS()`` whether to raise the error again. Of what only a call can know the error is made, and
becomes a check of the program; nothing is decided, so that code goes on, and loops are as they were. Where
a handler of the user's may catch the error, Python asks as ever, and the function has two ways.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from typing import Any

from esat.errors import EsatError
from esat.frontend.tracing.code.outside import is_users_file
from esat.frontend.tracing.path import ErrorCheck
from esat.frontend.tracing.trace import current_trace, is_of_numbers, truth
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.registry import op_named
from esat.graph.variables import Variable


class PendingErrors:
    """The conditions of errors that are being made."""

    def __init__(self) -> None:
        self._conditions: list[Variable | None] = []

    def may_fail(self, condition: Any, wanted: bool) -> bool:
        """Whether a condition is, or may be in a call, what an error is raised for."""
        unknown = _unknown(condition)
        if unknown is not None:
            self._conditions.append(unknown if wanted else op_named("invert")(unknown))
            return True
        if bool(condition) is not wanted:
            return False
        self._conditions.append(None)
        return True

    def fails(self) -> bool:
        """Whether the error that was made is raised; if not, calls raise it where its condition holds."""
        condition, error = self._conditions.pop(), sys.exc_info()[1]
        trace = current_trace()
        if condition is None or trace is None or trace.path is None:
            return True
        if not isinstance(error, Exception) or isinstance(error, EsatError):
            return True
        trace.path.checks.append(ErrorCheck(condition, error, len(trace.path.decisions)))
        return False


def _unknown(condition: Any) -> Variable | None:
    """The scalar that a condition is, where a program can check it in every call."""
    trace = current_trace()
    if trace is None or trace.path is None or trace.path.batching or trace.skipping:
        return None
    if type(condition) is TracedNumber:
        variable: Any = condition.variable
    else:
        variable = condition.value if type(condition) is TracedArray else None
    if not isinstance(variable, Variable) or variable.ndim or is_of_numbers(variable):
        return None
    return None if _may_be_caught() else truth(variable)


CALLS_TRACED = "esat.functions.traced_calls"
"""The module whose functions call a user's, to trace it."""


def _may_be_caught() -> bool:
    """Whether one of the user's functions that run is within a ``try`` or a ``with``."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != CALLS_TRACED:
        code = frame.f_code
        is_within = any(begin <= frame.f_lasti < end for begin, end in _guarded(code))
        if is_within and is_users_file(code.co_filename):
            return True
        frame = frame.f_back
    return False


@functools.lru_cache(maxsize=512)
def _guarded(code: types.CodeType) -> list[tuple[int, int]]:
    """Where in code an error leads to a handler."""
    return [(one.start, one.end) for one in dis.Bytecode(code).exception_entries]  # type: ignore[attr-defined]
