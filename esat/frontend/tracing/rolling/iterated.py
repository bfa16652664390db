"""Loops of Python's that are traced step by step, and exchanged for one op where all steps are shown equal.

``for t in range(n)`` runs as ever in a function that is traced: each iteration is traced with the integer
that Python gives. When it has ended, its iterations are compared. Where they are equal, each value that
something still refers to is exchanged for the result of a :class:`Scan` that is equal to it; nobody can tell
the difference but by the time it takes. Where they are not, nothing happens.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from esat.errors import EsatError, UserLine
from esat.frontend.tracing.rolling.iterations import (
    Iterations,
    NotEqualError,
    needed,
)
from esat.frontend.tracing.rolling.rolled_loop import RolledLoop
from esat.frontend.tracing.rolling.skipping import FEWEST_SKIPPED, TRACED, Skipped, StateWatch
from esat.frontend.tracing.trace import ErrorCheck, Trace, TracedInFull, current_trace
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.traversal import ancestors
from esat.graph.calls.callers import user_line
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable
from esat.graph.watching import watching_nodes
from esat.ops.index.basic import Subtensor

FEWEST_STEPS = 6
FEWEST_NODES = 128
"""Operations of all iterations together from which a loop is rolled up: algebra finds what a short one that
is unrolled has in common, and one kernel runs it."""


def rolled(value: Any, target: str | None = None) -> Any:
    """What a loop goes through: the same as ``value``, with iterations compared at the end.

    Of a range, iterations may be skipped: ``target`` is the name of the loop's variable, None where it is no
    statement of its own.
    """
    trace = current_trace()
    if trace is None:
        return value
    length = _length(value)
    if length is None or length < FEWEST_STEPS:
        return value
    if type(value) is range and target is not None and trace.skips and length >= FEWEST_SKIPPED:
        return _iterated(value, trace, StateWatch(target))
    return _iterated(_elements(value) if type(value) is TracedArray else value, trace)


def _length(value: Any) -> int | None:
    """How many elements a loop goes through; None for what is asked while it runs."""
    if type(value) in (range, list, tuple, _Together):
        return len(value)
    is_array = type(value) is TracedArray and value.ndim and type(value.shape[0]) is int
    return int(value.shape[0]) if is_array else None


def _elements(value: Any, backwards: bool = False) -> Iterator[Any]:
    """The elements of what has a length, those of an array each made when it is asked for."""
    if type(value) is not TracedArray:
        return reversed(value) if backwards else iter(value)
    places = range(int(value.shape[0]))
    return (value[place] for place in (reversed(places) if backwards else places))


class _Together:
    """What Python's ``zip``, ``enumerate`` and ``reversed`` give of what has a length."""

    def __init__(self, made: Iterator[Any], length: int) -> None:
        self._made, self._length = made, length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._made)


def _zip(*values: Any, strict: bool = False) -> Any:
    lengths = [_length(value) for value in values]
    if not values or None in lengths or current_trace() is None or strict:
        return zip(*values, strict=strict)
    made = zip(*map(_elements, values), strict=False)
    return _Together(made, min(length for length in lengths if length is not None))


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    length = _length(iterable)
    if length is None or current_trace() is None:
        return enumerate(iterable, start)
    return _Together(enumerate(_elements(iterable), start), length)


def _reversed(sequence: Any, /) -> Any:
    length = _length(sequence)
    if length is None or type(sequence) is _Together or current_trace() is None:
        return reversed(sequence)
    return _Together(_elements(sequence, True), length)


LOOPED: dict[type, Any] = {zip: _zip, enumerate: _enumerate, reversed: _reversed}
"""Types of Python's -> what is called where they are called, so that loops through these are seen."""


def told_loops(trace: Trace) -> Iterator[str]:
    """What became of the loops of a function, a line each."""
    for line, count, reason in trace.loops:
        place = "a loop" if line is None else f"the loop at {line[0]}:{line[1]}"
        became = "is one op" if reason is None else f"is unrolled: {reason}"
        yield f"{place}, of {count} steps, {became}"


def _iterated(values: Iterable[Any], trace: Trace, watch: StateWatch | None = None) -> Iterator[Any]:
    """Values of a loop, whose iterations are compared at the end."""
    line = user_line()
    nodes: list[list[Apply]] = []
    path = trace.path
    begin = None if path is None else path.point()
    remaining = iter(values)
    while True:
        if watch is not None and 1 <= len(nodes) <= TRACED:
            watch.look(sys._getframe(1))
        if watch is not None and len(nodes) == TRACED:
            if watch.settles(TRACED - 2) and (path is None or path.point() == begin):
                break
            watch.forget()
        with watching_nodes() as own:
            try:
                value = next(remaining)
            except StopIteration:
                break
            yield value
        nodes.append(own)
    if watch is not None and len(nodes) == TRACED:
        yield from _skipping(values, nodes, trace, watch, line)
        return
    reason: str | None = "it decides by values"
    if path is None or begin is None:
        reason = _roll(nodes, trace)
    elif (len(path.decisions), len(path.texts)) == (begin[0], begin[2]):
        checks = path.checks[begin[1] :]
        reason = _roll(nodes, trace, checks=checks)
        path.checks[begin[1] :] = joined(checks) if reason is None else checks
    trace.loops.append((line, len(nodes), reason))


def _skipping(
    values: Any, nodes: list[list[Apply]], trace: Trace, watch: StateWatch, line: UserLine | None
) -> Iterator[Any]:
    """The number that stands for those of all iterations that are left."""
    number = TensorType("int64", shape=()).make_variable()
    trace.skipping.add(number)
    path = trace.path
    begin = None if path is None else path.point()
    with watching_nodes() as own:
        yield TracedNumber(number, int)
    watch.look(sys._getframe(2))
    if not watch.settles(TRACED - 1) or (path is not None and path.point() != begin):
        raise TracedInFull
    watch.forget()
    reason = _roll(nodes, trace, lambda iterations, last: Skipped(iterations, last, number, values), own)
    if reason is not None:
        raise TracedInFull
    trace.skipping.discard(number)
    trace.loops.append((line, len(values), None))


def _roll(
    nodes: Sequence[Sequence[Apply]],
    trace: Trace,
    skip: Any = None,
    own: Sequence[Apply] = (),
    checks: Sequence[ErrorCheck] = (),
) -> str | None:
    """Exchange what refers to values of iterations; why not, where that is not possible.

    Parameters
    ----------
    nodes
        Those of each iteration.
    skip
        Makes a :class:`Skipped` of iterations and the nodes of the last one; None where all were traced.
    own
        The nodes of the one that stands for others.
    checks
        Errors that iterations raise, whose conditions are exchanged too.
    """
    live = [one for one in (reference() for reference in trace.live) if one is not None]
    trace.live[:] = [reference for reference in trace.live if reference() is not None]
    read = {value for value in map(_held, live) if value is not None}
    read |= {one.condition for one in checks if one.condition is not None}
    kept = needed([*nodes, own], read)
    if skip is None and sum(map(len, kept)) < FEWEST_NODES:
        return "it is short"
    skipped = None
    try:
        iterations = Iterations(kept[:-1])
        skipped = None if skip is None else skip(iterations, kept[-1])
        found = RolledLoop(iterations).exchanged(read)
    except NotEqualError as error:
        return error.reason if error.where is None else f"{error.reason}{_shown(error.where)}"
    except EsatError as error:
        return str(error).splitlines()[0]
    if skipped is not None:
        found.update((one, skipped.last(one)) for one in read & skipped.of_number)
    for check in checks:
        if check.condition is not None:
            check.condition = found.get(check.condition, check.condition)
    for one in live:
        value = _held(one)
        if value is not None and value in found:
            one.exchange(found[value])
    for one in live:
        if type(one) is TracedArray:
            one.look_again()
    return None if skipped is None else _left_over(live, skipped)


def joined(checks: Sequence[ErrorCheck]) -> Sequence[ErrorCheck]:
    """The checks of all iterations as one, where they raise the same error on the same way."""
    first = checks[0] if checks else None
    if first is None or any(
        (type(one.error), one.error.args, one.depth) != (type(first.error), first.error.args, first.depth)
        or one.condition is None
        for one in checks
    ):
        return checks
    rows: dict[Variable, Variable] = {}
    for one in checks:
        assert one.condition is not None
        node = one.condition.owner
        is_row = node is not None and isinstance(node.op, Subtensor) and node.inputs[0].ndim == 1
        whole = node.inputs[0] if node is not None and is_row else one.condition
        rows[whole] = whole.any() if is_row else whole
    holds = functools.reduce(op_named("bitwise_or"), rows.values())
    return [ErrorCheck(holds, first.error, first.depth)]


def _left_over(live: Sequence[Any], skipped: Skipped) -> str | None:
    """Why something still depends on the number that stands for others, if it does."""
    for one in live:
        if type(one) is TracedArray and type(one.key) is TracedNumber and one.base is not None:
            one.become(one.base[int(one.key.known())])
        held = one.value if type(one) is TracedArray else one.variable
        if isinstance(held, Variable) and skipped.number in {*ancestors([held])}:
            return "a value of the last iteration depends on its number"
    return None


def _shown(where: UserLine) -> str:
    text = linecache.getline(*where).strip()
    return f", at line {where[1]}" + (f": {text}" if text else "")


def _held(one: Any) -> Variable | None:
    """The Variable behind a traced object, where it is no view of another one."""
    value = one.held
    return value if isinstance(value, Variable) and not isinstance(value, Constant) else None
