"""The trace that runs now, and what is said where a value is asked for that only a call can know."""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from esat.errors import GraphError, TracingError, UserLine
from esat.frontend.tracing.path import ErrorCheck, NotChosen, Path, PathDecision, TracedInFull
from esat.frontend.tracing.values.conditions import NumberCondition, condition_of
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.algorithms.traversal import inputs_of
from esat.graph.calls.callers import called_library, user_line
from esat.graph.registry import op_named
from esat.graph.scoped import Block, Scoped
from esat.graph.variables import Constant, Variable


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


def _ignored(value: Any) -> None:
    pass


_LOOPS = (
    "how often a loop runs cannot depend on values of arrays in Python: esat.while_loop(cond, body, value) "
    "runs as long as a condition holds; in a loop of a fixed number of steps, esat.where and esat.ifelse "
    "choose between values"
)
_CHOICES = (
    "each `if` in a loop doubles the ways through the function: x = np.where(condition, new, old) chooses "
    "between values; how often a loop runs cannot depend on values of arrays in Python: "
    "esat.while_loop(cond, body, value) runs as long as a condition holds"
)
_OTHERWISE = (
    "the function runs once for each answer, and it does not do the same each time: what it keeps from one "
    "call to the next must not decide what it does"
)
MOST_DECISIONS = 64
"""Decisions on one way through a function: each may be taken the other way in a further trace."""


@contextmanager
def placing(place: Callable[[list[Variable]], list[Variable]], batching: bool = False) -> Iterator[None]:
    """For a function that is traced with Variables of its own: what it decides and checks becomes what holds
    of the values that take their places.

    Parameters
    ----------
    place
        From Variables of the function to those of its surroundings.
    batching
        Whether the function is one of elements of a batch.
    """
    trace = current_trace()
    path = None if trace is None else trace.path
    if path is None:
        yield
        return
    begin, before, failing = path.point(), path.batching, path.failing
    path.batching = before or batching
    try:
        yield
    finally:
        path.batching, path.failing = before, failing
        path.placed(begin, place)


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
        What a user's code calls -> what is called in its place; see ``rebinding``.
    watch, made
        Notice draws from now on, but those of a generator that is made now; see ``outside``.
    path
        The way through the function that is taken; None where values decide nothing.
    leaves
        Of the arguments of the call.
    conditions
        Conditions of the call's numbers that decided, and how they were.
    warned
        Arrays from outside that the user was warned of, by identity.
    arrays, least
        Inputs that stand for arrays of a call, and how large their axes are at least that have no known size.
    stand_ins
        Variables that stand for others, of a gradient or for the elements of a batch -> the sizes of these.
    has_ended
        Whether the function has returned: what stood for its arrays and numbers means nothing then.
    skips, may_end
        Whether iterations of loops need not be traced where others tell what they do: of all loops, and of
        those that values end.
    skipping
        Numbers of loops that stand for all that are left.
    live
        What stands for its arrays and numbers, as long as something refers to it.
    within
        How many loops run.
    unchosen, first
        Lines of conditions of which one branch at a time is traced, and why; of loops whose first steps are
        traced by themselves, and a reason for each of these.
    loops
        Loops of the function that have ended: the line, how many iterations there were, and why they were not
        rolled up into one op, or None.
    lost
        What stands for values of a loop that are known only where it has more than one step.
    mixed
        Scalars that are of one type after one branch and of another after the other -> where, and the types.
    """

    name: str
    numbers: Mapping[Variable, int] = field(default_factory=dict)
    exchange: Callable[[Any], Any] = _as_it_is
    watch: Callable[[], None] = _nothing
    made: Callable[[Any], None] = _ignored
    path: Path | None = None
    leaves: Sequence[Any] = ()
    conditions: list[NumberCondition] = field(default_factory=list)
    warned: set[int] = field(default_factory=set)
    arrays: frozenset[Variable] = frozenset()
    least: int = 0
    stand_ins: dict[Variable, tuple[Variable, ...]] = field(default_factory=dict)
    has_ended: bool = False
    skips: bool = False
    may_end: bool = False
    skipping: set[Variable] = field(default_factory=set)
    live: list[weakref.ref[Any]] = field(default_factory=list)
    within: int = 0
    unchosen: Mapping[UserLine, str] = field(default_factory=dict)
    first: Mapping[UserLine, Sequence[str]] = field(default_factory=dict)
    loops: list[tuple[UserLine | None, int, str | None]] = field(default_factory=list)
    lost: set[Variable] = field(default_factory=set)
    mixed: dict[Variable, tuple[UserLine, tuple[Any, Any]]] = field(default_factory=dict)

    def lose(self, value: Variable) -> Variable:
        """What stands for a value that nothing may be done with any more, or the function is traced anew."""
        stand = Variable(value.type)
        self.lost.add(stand)
        return stand


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
    TracingError
        Where it depends on arrays; the message names the user's line and says what to write instead.
    """
    free = [leaf for leaf in inputs_of([variable]) if not isinstance(leaf, Constant)]
    if not free:
        value: np.ndarray[Any, np.dtype[Any]] = np.asarray(evaluate(variable))
        return value
    trace = current_trace()
    if trace is not None and not trace.skipping.isdisjoint(free):
        raise TracedInFull
    if trace is not None and all(leaf in trace.numbers for leaf in free):
        raise ValueAsked(frozenset(trace.numbers[leaf] for leaf in free), user_line())
    error = not_known(variable, asked, advice)
    if trace is not None and trace.path is not None:
        trace.path.asked = error
    raise error


def is_of_numbers(variable: Variable) -> bool:
    """Whether a Variable depends on numbers of the call and on nothing else that is unknown."""
    trace = current_trace()
    free = [leaf for leaf in inputs_of([variable]) if not isinstance(leaf, Constant)]
    return trace is not None and all(leaf in trace.numbers for leaf in free)


def decided(variable: Variable, asked: str, advice: str) -> bool:
    """Whether a scalar is true, where Python asks for it to choose which code runs.

    Conditions of numbers of the call become a part of what programs are found by. Those of arrays are true on
    one way through the function and false on another, and the program chooses between them when it runs.

    Raises
    ------
    ValueAsked, TracingError
        As :func:`value_of`, where a condition is none of these.
    """
    trace = current_trace()
    if trace is None or variable.tensor_type.ndim:
        return bool(value_of(variable, asked, advice))
    path = trace.path
    is_of_step = path is not None and path.of_step is not None
    if not is_of_step:
        require_no_skip(variable)
    if is_of_numbers(variable):
        condition = condition_of(variable, trace.numbers)
        outcome = None if condition is None else condition.outcome(trace.leaves)
        if condition is None or outcome is None:
            return bool(value_of(variable, asked, advice))
        if condition not in trace.conditions:
            trace.conditions.append(condition)
        return outcome
    if path is None or path.batching:
        raise not_known(variable, asked, _LOOPS if _is_while(user_line()) else advice)
    if path.choices:
        raise NotChosen(path.choices[0], "a value decides in it whether code goes on elsewhere")
    number, line = len(path.decisions), user_line()
    is_again = line in path.lines
    if is_again:
        advice = _LOOPS if _is_while(line) else _CHOICES
    reason = _why_not(trace, line)
    if reason is not None:
        advice = f"both ways cannot be one program: {reason}; {advice}"
    if number >= MOST_DECISIONS or (is_again and _is_while(line)):
        raise not_known(variable, asked, advice)
    path.lines.add(line)
    if path.of_step is not None:
        refusal = not_known(variable, asked, advice)
        path.of_step.append(PathDecision(truth(variable), path.leaves, refusal, line, breaks=True))
        return path.leaves
    outcome = False
    if number < len(path.forced):
        outcome, before = path.forced[number]
        if before != line:
            raise not_known(variable, asked, _OTHERWISE)
    path.decisions.append(PathDecision(truth(variable), outcome, not_known(variable, asked, advice), line))
    return outcome


def check(condition: Any, error: Exception, advice: str = "") -> None:
    """Let the program raise an error where a condition holds.

    Parameters
    ----------
    condition
        A scalar or array of dtype bool: a Variable, or known.
    error
        What Python raises there.
    advice
        For the message where no program can do so.
    """
    if not isinstance(condition, Variable):
        if np.any(condition):
            raise error
        return
    trace = current_trace()
    require_no_skip(condition)
    if condition.tensor_type.ndim:
        condition = condition.any()
    path = None if trace is None else trace.path
    of_numbers = trace is not None and is_of_numbers(condition)
    if path is None or (of_numbers and condition_of(condition, trace.numbers) is not None):  # type: ignore[union-attr]
        if decided(condition, "bool", advice):
            raise error
        return
    path.checks.append(ErrorCheck(condition, error, len(path.decisions)))


def _why_not(trace: Trace, line: UserLine | None) -> str | None:
    """Why no program chooses at a line: for its own sake, or for that of a loop above it which it may end."""
    if line is None:
        return None
    reasons = {**{one: why[-1] for one, why in trace.first.items()}, **trace.unchosen}
    loops = [one for one in reasons if one[0] == line[0] and one[1] < line[1] and _is_loop(one)]
    found = line if line in reasons else max(loops, default=None)
    return None if found is None else reasons[found]


def _is_loop(line: UserLine) -> bool:
    return linecache.getline(*line).lstrip().startswith(("while ", "for "))


def _is_while(line: UserLine | None) -> bool:
    return line is not None and linecache.getline(*line).lstrip().startswith("while ")


def truth(variable: Variable) -> Variable:
    """Whether a scalar is true."""
    if variable.tensor_type.dtype == "bool":
        return variable
    is_true: Variable = op_named("ne")(variable, 0)
    return is_true


def require_no_skip(variable: Variable) -> None:
    """Raise TracedInFull where a value depends on the number of a loop that stands for several."""
    trace = current_trace()
    if trace is not None and trace.skipping and not trace.skipping.isdisjoint(inputs_of([variable])):
        raise TracedInFull


def not_known(variable: Variable, asked: str, advice: str) -> TracingError:
    """The error of asking for the value of what is computed when the function runs."""
    trace = current_trace()
    name = "the function" if trace is None else trace.name
    line = user_line()
    code = "" if line is None else linecache.getline(*line).strip()
    what = f"`{code}` asks" if code else f"{asked} asks"
    library = called_library()
    if library is not None:
        advice = (
            f"{library} computes with known values, and is no function of esat's: call it outside of {name}, "
            "and pass its result, or write what it computes with NumPy's functions"
        )
    place = "" if line is None else f"\n  at {line[0]}:{line[1]}, in {name}"
    return TracingError(
        f"{name}: {what} for the value of {variable.type}, which is known only when the program runs "
        f"({asked}); {advice}{place}"
    )
