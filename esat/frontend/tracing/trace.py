"""The trace that runs now, and what is said where a value is asked for that only a call can know."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.errors import DtypeError, EsatWarning, GraphError, UserLine, describe
from esat.graph.callers import user_line
from esat.graph.evaluate import evaluate
from esat.graph.scoped import Block, Scoped
from esat.graph.traversal import inputs_of
from esat.graph.variables import Constant, Variable

LARGE_CONSTANT = 1 << 22
"""Bytes from which an array that a function takes from outside is worth a warning."""


class ValueAsked(BaseException):
    """Numbers of a call whose values decide what is traced: it is traced anew, with these known.

    No Exception, so that no handler of the user's takes it for an error.

    Attributes
    ----------
    leaves
        Positions of the numbers among the leaves of the arguments.
    where
        The line that asked.
    """

    def __init__(self, leaves: frozenset[int], where: UserLine | None) -> None:
        super().__init__(f"the values of arguments {sorted(leaves)} are asked for")
        self.leaves = leaves
        self.where = where


class SizesAsked(BaseException):
    """A program for arrays that have axes of at least so many elements, or known sizes, is wanted instead.

    Attributes
    ----------
    least
        How many.
    """

    def __init__(self, least: int) -> None:
        super().__init__(f"sizes below {least} are asked for")
        self.least = least


def _as_it_is(value: Any) -> Any:
    return value


def _nothing() -> None:
    pass


@dataclass(slots=True)
class Trace:
    """What is known of the function that is traced.

    Attributes
    ----------
    name
        Of the function, for messages.
    numbers
        Inputs that stand for Python numbers of a call -> their positions among its leaves.
    exchange
        A user's function -> what is called in its place; see ``rebinding``.
    watch
        Notice draws from now on; see ``outside``.
    warned
        Arrays from outside that the user was warned of, by identity.
    arrays, least
        Inputs that stand for arrays of a call, and how large their axes are at least that have no known size.
    stand_ins
        Variables that stand for others, of a gradient or for the elements of a batch -> the sizes of these.
    has_ended
        Whether the function has returned: what stood for its arrays and numbers means nothing then.
    """

    name: str
    numbers: Mapping[Variable, int] = field(default_factory=dict)
    exchange: Callable[[Any], Any] = _as_it_is
    watch: Callable[[], None] = _nothing
    warned: set[int] = field(default_factory=set)
    arrays: frozenset[Variable] = frozenset()
    least: int = 0
    stand_ins: dict[Variable, tuple[Variable, ...]] = field(default_factory=dict)
    has_ended: bool = False


_current = Scoped[Trace]("trace")


def tracing(trace: Trace) -> Block[Trace]:
    """Let a trace be the current one."""
    return _current.set(trace)


def current_trace() -> Trace | None:
    """The trace that runs in this thread, or None."""
    return _current.get()


def require_running(trace: Trace | None, kind: str) -> None:
    """Raise GraphError where an array or a number is used after the trace that it belongs to."""
    if trace is not None and trace.has_ended:
        line = user_line()
        place = "" if line is None else f"\n  at {line[0]}:{line[1]}"
        raise GraphError(
            f"{kind} of {trace.name} is used, but it stood for a value only while {trace.name} was traced; "
            f"return it from {trace.name}, and use what a call gives{place}"
        )


def value_of(variable: Variable, asked: str, advice: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The value of a Variable that depends on nothing.

    Raises
    ------
    ValueAsked
        Where it depends on numbers of the call only.
    DtypeError
        Where it depends on arrays; the message names the user's line and says what to write instead.
    """
    free = [leaf for leaf in inputs_of([variable]) if not isinstance(leaf, Constant)]
    if not free:
        value: np.ndarray[Any, np.dtype[Any]] = np.asarray(evaluate(variable))
        return value
    trace = current_trace()
    if trace is not None and all(leaf in trace.numbers for leaf in free):
        raise ValueAsked(frozenset(trace.numbers[leaf] for leaf in free), user_line())
    raise not_known(variable, asked, advice)


def not_known(variable: Variable, asked: str, advice: str) -> DtypeError:
    """The error of asking for the value of what is computed when the function runs."""
    trace = current_trace()
    name = "the function" if trace is None else trace.name
    reason = f"{name} is being traced, so that this has no value yet; {advice}"
    return DtypeError(describe(asked, [variable.type], reason, user_line()))


def note_constant(array: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Warn where a large array from outside the function becomes part of its program."""
    trace = current_trace()
    if trace is None or array.nbytes < LARGE_CONSTANT or id(array) in trace.warned:
        return
    trace.warned.add(id(array))
    line = user_line()
    place = "" if line is None else f"\n  at {line[0]}:{line[1]}"
    warnings.warn(
        f"{trace.name} holds an array of {array.nbytes / 1e6:.1f} MB that is no argument of it: its present "
        f"values are copied into the program, and later changes are not seen; pass it as an argument{place}",
        EsatWarning,
        stacklevel=2,
    )
