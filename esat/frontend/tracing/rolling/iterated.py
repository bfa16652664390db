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
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from esat.errors import EsatError, UserLine
from esat.frontend.tracing.path import ErrorCheck, Path, TracedInFull
from esat.frontend.tracing.rolling.iterations import (
    Iterations,
    NotEqualError,
    needed,
)
from esat.frontend.tracing.rolling.left_loop import LeftLoop, held_by, in_all_steps
from esat.frontend.tracing.rolling.rolled_loop import RolledLoop
from esat.frontend.tracing.rolling.skipping import (
    FEWEST_SKIPPED,
    MOST_TRACED,
    TRACED,
    Skipped,
    StateWatch,
)
from esat.frontend.tracing.trace import Trace, current_trace
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.traversal import ancestors
from esat.graph.calls.callers import user_line
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Variable
from esat.graph.watching import watching_nodes
from esat.ops.index.basic import Subtensor
from esat.ops.loops.record import LoopOp

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
    if type(value) is range and target is not None and trace.may_end and length > MOST_TRACED:
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
    failing = None if path is None else path.failing
    is_within = path is not None and path.of_step is not None
    is_told = not is_within and _is_told(path)
    decided: list[int] = []
    decides = settled = False
    remaining = iter(values)
    while True:
        if watch is not None and 1 <= len(nodes) <= MOST_TRACED:
            watch.look(sys._getframe(1))
        if watch is not None and TRACED <= len(nodes) <= MOST_TRACED:
            decides = is_told or (not is_within and _decides(path, begin, decided))
            is_enough = decides or _may_skip(values, trace, begin, nodes[-1])
            settled = watch.settles(TRACED - 2) and is_enough
            if settled:
                break
            if len(nodes) == MOST_TRACED:
                watch.forget()
        with watching_nodes() as own:
            try:
                value = next(remaining)
            except StopIteration:
                break
            with _running(trace):
                yield value
        nodes.append(own)
        if path is not None and begin is not None:
            path.drop_texts(begin)
            decided.append(len(path.decisions if path.of_step is None else path.of_step))
    if watch is not None and settled:
        further = _deciding if decides else _skipping
        yield from further(values, nodes, trace, watch, line)
        return
    if is_told:  # a step changes what Python knows
        raise TracedInFull
    _look_again()
    reason: str | None = "it decides by values"
    if path is None or begin is None:
        reason = _roll(nodes, trace)
    elif (len(path.decisions), len(path.texts)) == (begin[0], begin[2]):
        checks = path.checks[begin[1] :]
        reason = _roll(nodes, trace, checks=checks)
        path.checks[begin[1] :] = joined(checks) if reason is None else checks
        path.failing = failing or path.failing
    trace.loops.append((line, len(nodes), reason))


@contextmanager
def _running(trace: Trace) -> Iterator[None]:
    """While a step of a loop is traced."""
    trace.within += 1
    try:
        yield
    finally:
        trace.within -= 1


def _is_told(path: Path | None) -> bool:
    """Whether it is known that all steps of a loop decide the same; what they do is noted from now on."""
    if path is None or len(path.decisions) not in path.breaks:
        return False
    path.of_step = []
    return True


def _may_skip(values: Any, trace: Trace, begin: tuple[int, int, int] | None, nodes: Sequence[Apply]) -> bool:
    """Whether a loop that decides nothing is long enough to have iterations left out, as any with loops in
    its steps is: what one that is left computes has its number in it."""
    is_plain = trace.path is None or trace.path.point() == begin
    is_long = type(values) is range and (
        len(values) >= FEWEST_SKIPPED or any(isinstance(node.op, LoopOp) for node in nodes)
    )
    return is_plain and trace.skips and is_long


def _decides(path: Path | None, begin: tuple[int, int, int] | None, decided: Sequence[int]) -> bool:
    """Whether each step so far has decided one thing, the same one, which was false."""
    if path is None or begin is None:
        return False
    own = path.decisions[begin[0] :]
    return (
        list(decided) == list(range(begin[0] + 1, begin[0] + 1 + len(decided)))
        and path.point()[1:] == begin[1:]
        and len(path.forced) <= begin[0]
        and all(not (one.outcome or one.breaks) and one.line == own[0].line for one in own)
    )


def _deciding(
    values: Any, nodes: list[list[Apply]], trace: Trace, watch: StateWatch, line: UserLine | None
) -> Iterator[Any]:
    """Two more steps of a loop that each of them may leave, for all that are left.

    In the first one the loop goes on. Where that is so in all of them, it ends there; else the second one is
    that in which it is left.
    """
    number, path = TensorType("int64", shape=()).make_variable(), trace.path
    assert path is not None
    trace.skipping.add(number)
    if path.of_step is None:  # it has decided so far as functions do that have no loop
        del path.decisions[-len(nodes) :]
    begin, path.of_step = path.point(), []
    leaves = begin[0] in path.breaks and path.forced[begin[0]][0]
    with watching_nodes() as own, _running(trace):
        yield TracedNumber(number, int)
    path.drop_texts(begin)
    watch.look(sys._getframe(2))
    if not watch.settles(TRACED - 1) or len(path.of_step) != 1 or path.point() != begin:
        raise TracedInFull
    moved = watch.forget()
    (decision,) = path.of_step
    if not leaves:
        path.of_step = None
        skip = functools.partial(_skipped, number, values)
        reason = _roll(nodes, trace, skip, own, number=number, moved=moved)
        if reason is not None:
            raise TracedInFull
        path.decisions.append(decision)
        trace.skipping.discard(number)
        trace.loops.append((line, len(values), None))
        return
    last = TensorType("int64", shape=()).make_variable()
    trace.skipping.add(last)
    path.of_step, path.leaves = [], True
    with watching_nodes() as ending, _running(trace):
        try:
            yield TracedNumber(last, int)
        except GeneratorExit:
            path.drop_texts(begin)
            path.of_step, path.leaves = None, False
            _look_again()
            loop = LeftLoop(nodes, own, list(ending), trace, (number, last), values, moved)
            path.failed = True  # whoever leaves the loop would not see an error
            with suppress(NotEqualError, EsatError):
                condition = loop.exchanged(decision.condition)
                path.decisions.append(replace(decision, condition=condition, outcome=True))
                path.failed = False
            trace.skipping -= {number, last}
            return
    raise TracedInFull


def _skipped(
    number: Variable, values: range, iterations: Iterations, last: Sequence[Apply], moved: set[Variable]
) -> Skipped:
    return Skipped(iterations, last, number, values, moved)


def _look_again() -> None:
    """Have the variables of the loop's function anew: a frame keeps those of the last look until then."""
    frame: Any = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    len(frame.f_locals)


def _skipping(
    values: Any, nodes: list[list[Apply]], trace: Trace, watch: StateWatch, line: UserLine | None
) -> Iterator[Any]:
    """The number that stands for those of all iterations that are left."""
    number = TensorType("int64", shape=()).make_variable()
    trace.skipping.add(number)
    path = trace.path
    begin = None if path is None else path.point()
    with watching_nodes() as own, _running(trace):
        yield TracedNumber(number, int)
    if path is not None and begin is not None:
        path.drop_texts(begin)
    watch.look(sys._getframe(2))
    if not watch.settles(TRACED - 1) or (path is not None and path.point() != begin):
        raise TracedInFull
    moved = watch.forget()
    skip = functools.partial(_skipped, number, values)
    reason = _roll(nodes, trace, skip, own, number=number, moved=moved)
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
    number: Variable | None = None,
    moved: Collection[int] = (),
) -> str | None:
    """Exchange what refers to values of iterations; why not, where that is not possible.

    Parameters
    ----------
    nodes
        Those of each iteration.
    skip
        Makes a :class:`Skipped` of iterations and the nodes of the last one; None where all were traced.
    own, number
        The nodes of the one that stands for others, and its number.
    checks
        Errors that iterations raise, whose conditions are exchanged too.
    moved
        The identities of values that iterations hand on: they are of the iterations before the last one.
    """
    live = [one for one in (reference() for reference in trace.live) if one is not None]
    trace.live[:] = [reference for reference in trace.live if reference() is not None]
    read = {value for value in map(held_by, live) if value is not None}
    read |= {one.condition for one in checks if one.condition is not None}
    handed_on = {held_by(one) for one in live if id(one) in moved}
    others = {held_by(one) for one in live if id(one) not in moved}
    if not handed_on.isdisjoint(others | {None}):
        return "a part of an array, or a value that is kept, is handed on"
    everywhere = in_all_steps(nodes, own or nodes[-1], number, read)
    kept = needed([*nodes, own], read | everywhere)
    if skip is None and sum(_size(node) for nodes in kept for node in nodes) < FEWEST_NODES:
        return "it is short"
    skipped = None
    try:
        iterations = Iterations(kept[:-1])
        skipped = (
            None
            if skip is None
            else skip(iterations, kept[-1], {one for one in handed_on if one is not None})
        )
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
        value = held_by(one)
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


def _size(node: Apply) -> int:
    """How many operations a node is: those of a step, where it is a loop itself."""
    return len(node.op.body.apply_nodes) if isinstance(node.op, LoopOp) else 1


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
