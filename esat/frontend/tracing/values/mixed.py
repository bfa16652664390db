"""Numbers that are integers after one branch of an ``if`` and floating after the other.

A program has one dtype for each value, and so such a number is floating. That is what NumPy computes where
the type of a result is the same for both, as in ``x * a`` with floating ``x``; where it is not, no program
can do the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from esat.errors import UserLine
from esat.frontend.tracing.path import NotChosen
from esat.frontend.tracing.trace import current_trace
from esat.graph.tracing import Traced, WeakNumber
from esat.graph.variables import Variable

NumberType: TypeAlias = Any
"""One of Python's types of numbers, or a dtype."""
_KEEPING = frozenset(
    {"add", "subtract", "multiply", "negative", "positive", "absolute", "maximum", "minimum"}
)
"""Functions of integers whose results are the same numbers where the operands are floating."""
_PYTHONS = (int, float, complex)


def type_of(value: Any) -> NumberType:
    """One of Python's types for its numbers, the dtype of other values."""
    if isinstance(value, WeakNumber):
        return value.kind
    return type(value) if type(value) in (bool, *_PYTHONS) else np.dtype(getattr(value, "dtype", type(value)))


def note_mixed(made: Any, line: UserLine, types: Sequence[NumberType]) -> None:
    """Note that a number is of one type or another, after the branches at a line."""
    trace, variable = current_trace(), _variable(made)
    is_one = type(types[0]) is type(types[1]) and types[0] == types[1]  # a dtype equals types of Python's
    if trace is not None and variable is not None and not is_one and not variable.ndim:
        trace.mixed[variable] = line, (types[0], types[1])


def keep_mixed(result: Any, operands: Sequence[Any]) -> Any:
    """A number of Python's that was computed of others: of one type or another, as they are."""
    trace = current_trace()
    if trace is not None and trace.mixed and not any(type_of(one) is complex for one in operands):
        noted = [trace.mixed.get(_variable(one)) for one in operands]
        rest = [type_of(one) for one, mark in zip(operands, noted, strict=True) if mark is None]
        first = next((mark for mark in noted if mark is not None), None)
        if first is not None and float not in rest:
            trace.mixed[_variable(result)] = first
    return result


def mixed_result(ufunc: np.ufunc, operands: Sequence[Any]) -> tuple[UserLine, tuple[Any, Any]] | None:
    """The types that the result of a ufunc has, one or the other.

    Raises
    ------
    NotChosen
        Where no program has such a result.
    """
    trace = current_trace()
    if trace is None or not trace.mixed or ufunc.signature is not None:
        return None
    noted = [trace.mixed.get(_variable(one)) for one in operands]
    line = next((one[0] for one in noted if one is not None), None)
    if line is None:
        return None
    ways = [
        [type_of(one) if mark is None else mark[1][way] for one, mark in zip(operands, noted, strict=True)]
        for way in (0, 1)
    ]
    first, second = (_resolved(ufunc, way) for way in ways)
    is_rounded = any(
        any(one is float for one in mark[1])
        and first is not None
        and first[place] != _variable(operands[place]).dtype
        for place, mark in enumerate(noted)
        if mark is not None and np.dtype("float32") in mark[1]
    )
    if first is not None and second is not None and not is_rounded:
        if first[-1] == second[-1]:
            return None
        is_one = all(one[-1].kind in "iu" or one[-1] == np.float64 for one in (first, second))
        if is_one and ufunc.__name__ in _KEEPING and not any(np.ndim(one) for one in operands):
            return line, (first[-1], second[-1])
    names = " or ".join(str(getattr(one, "__name__", one)) for one in next(filter(None, noted))[1])
    raise NotChosen(
        line,
        f"a number is of type {names}, and what numpy.{ufunc.__name__} makes of it depends on which; give it "
        "one type, as 1.0 in place of 1, or bool(...)",
    )


def _resolved(ufunc: np.ufunc, types: Sequence[NumberType]) -> tuple[np.dtype[Any], ...] | None:
    """The dtypes in which a ufunc computes, and that of the result; None where there is no such one.

    Where there are numbers of Python's only, its booleans are integers: ``~True`` is -2.
    """
    whole = int if all(one in (bool, *_PYTHONS) for one in types) else np.dtype(bool)
    given = [whole if one is bool else one for one in types]
    try:
        return ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    except TypeError:
        return None


def _variable(value: Any) -> Any:
    """The Variable behind a traced object; None for other values."""
    if isinstance(value, WeakNumber):
        return value.variable
    held = getattr(value, "value", None) if isinstance(value, Traced) else None
    return held if isinstance(held, Variable) else None
