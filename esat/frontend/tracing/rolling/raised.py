"""Errors that stand before some code, and names that nothing may have been assigned to.

A check of a program is raised when all of it has run: what comes after a ``raise`` is computed of values that
the user's code excludes. A loop that runs as long as these say so could then run for ever, so that it does
not begin where an error stands before it.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np

from esat.base.records import record
from esat.frontend.tracing.path import Path
from esat.frontend.tracing.trace import check, current_trace
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable


def fails_before(path: Path) -> Variable | None:
    """Whether one of the errors is raised that a function may have raised so far; None where there is none.

    It is handed on from one loop to the next, so that equal iterations of one around them stay equal.
    """
    count, before = path.failing
    conditions = [one.condition for one in path.checks[count:] if one.condition is not None]
    if not conditions:
        return None if before is None else before.variable
    found = as_variable(np.bool_(False)) if before is None else before.variable
    for one in conditions:
        found = op_named("bitwise_or")(found, one)
    path.failing = len(path.checks), TracedNumber(found, bool)
    return found


def unless_failed(condition: Variable) -> Variable:
    """A condition of a loop, which does not hold where an error stands before the loop."""
    trace = current_trace()
    failed = None if trace is None or trace.path is None else fails_before(trace.path)
    if failed is None:
        return condition
    holds = op_named("invert")(failed)
    if isinstance(condition, Constant) and bool(condition.data):
        return holds  # type: ignore[no-any-return]
    return op_named("bitwise_and")(holds, condition)  # type: ignore[no-any-return]


@record(frozen=True, eq=False)
class HalfBound:
    """What a name stands for that something was assigned to in some cases only.

    Attributes
    ----------
    value
        What that was; anything of its type in the other cases.
    is_bound
        Whether it was.
    """

    value: Any
    is_bound: Any


def bound(value: Any, name: str) -> Any:
    """What a name stands for, where it is looked at: as Python does, a call raises UnboundLocalError where
    nothing was assigned to it."""
    if type(value) is not HalfBound:
        return value
    frame = sys._getframe(1)
    place = types.TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
    error = UnboundLocalError(
        f"cannot access local variable {name!r} where it is not associated with a value"
    )
    is_bound = value.is_bound
    unbound = op_named("invert")(is_bound.variable) if type(is_bound) is TracedNumber else not is_bound
    check(unbound, error.with_traceback(place))
    return value.value
