"""Loops of Python's that are traced step by step, and exchanged for one op where all steps are shown equal.

``for t in range(n)`` runs as ever in a function that is traced: each iteration is traced with the integer
that Python gives. When it has ended, its iterations are compared. Where they are equal, each value that
something still refers to is exchanged for the result of a :class:`Scan` that is equal to it; nobody can tell
the difference but by the time it takes. Where they are not, nothing happens.
"""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from esat.errors import EsatError, UserLine
from esat.frontend.indexing import getitem, set_subtensor
from esat.frontend.shaping import stack
from esat.frontend.tracing.arrays import TracedArray
from esat.frontend.tracing.iterations import (
    MOST_BACK,
    Iterations,
    Key,
    NotEqualError,
    StepNode,
    StepOperand,
    needed,
    rows_of,
)
from esat.frontend.tracing.numbers import TracedNumber
from esat.frontend.tracing.skipping import FEWEST_SKIPPED, TRACED, Skipped, StateWatch
from esat.frontend.tracing.trace import Trace, TracedInFull, current_trace
from esat.graph.callers import user_line
from esat.graph.op import as_variable
from esat.graph.traversal import ancestors
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable
from esat.graph.watching import watching_nodes
from esat.ops.creation import alloc
from esat.ops.dimshuffle import dimshuffle
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import Slice
from esat.ops.loops.parts import LoopParts

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
    if path is not None and path.point() != begin:
        reason: str | None = "it decides or checks values"
    else:
        reason = _roll(nodes, trace)
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
    nodes: Sequence[Sequence[Apply]], trace: Trace, skip: Any = None, own: Sequence[Apply] = ()
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
    """
    live = [one for one in (reference() for reference in trace.live) if one is not None]
    trace.live[:] = [reference for reference in trace.live if reference() is not None]
    read = {value for value in map(_held, live) if value is not None}
    kept = needed([*nodes, own], read)
    if skip is None and sum(map(len, kept)) < FEWEST_NODES:
        return "it is short"
    skipped = None
    try:
        iterations = Iterations(kept[:-1])
        skipped = None if skip is None else skip(iterations, kept[-1])
        found = _Rolling(iterations).exchanged(read)
    except NotEqualError as error:
        return error.reason if error.where is None else f"{error.reason}{_shown(error.where)}"
    except EsatError as error:
        return str(error).splitlines()[0]
    if skipped is not None:
        found.update((one, skipped.last(one)) for one in read & skipped.of_number)
    for one in live:
        value = _held(one)
        if value is not None and value in found:
            one.exchange(found[value])
    for one in live:
        if type(one) is TracedArray:
            one.look_again()
    return None if skipped is None else _left_over(live, skipped)


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


class _Rolling:
    """The loop that computes what some iterations do.

    Parameters
    ----------
    iterations
        The iterations, which are equal.
    """

    def __init__(self, iterations: Iterations) -> None:
        self.iterations = iterations
        self.steps, self.count = iterations.steps, iterations.count
        self.taps: dict[tuple[Key, int], Variable] = {}
        self.sequences: dict[Variable, Variable] = {}
        self.kept: dict[Variable, int] = {}
        self.made: dict[Key, Variable] = {}
        self._base_rows: dict[tuple[Variable, int], Variable] = {}
        self.rows: dict[int, int] = {}
        self.written = self._find_written()

    # ---- arrays that are written row by row

    def _find_written(self) -> dict[int, StepOperand]:
        """Nodes that write a row of an array which is handed on for that alone -> what they write."""
        found: dict[int, StepOperand] = {}
        for place, step in enumerate(self.steps):
            first = step.operands[0] if step.operands else None
            is_write = isinstance(step.node.op, SetSubtensor) and step.places is not None
            if (
                not is_write
                or first is None
                or (first.kind, first.back, first.key) != ("step", 1, (place, 0))
            ):
                continue
            if len(set(step.places or ())) == self.count and self._is_only_read_in_part(place):
                found[place] = step.operands[1]
        return found

    def _is_only_read_in_part(self, place: int) -> bool:
        """Whether an array that is written is used for nothing in a step but to read rows, and to write."""
        for number, step in enumerate(self.steps):
            for position, operand in enumerate(step.operands):
                if operand.kind != "step" or operand.key != (place, 0):
                    continue
                is_part = step.rows is not None and position == 0 and operand.back in (0, 1)
                is_own = number == place and operand.back == 1
                if not is_part or (isinstance(step.node.op, SetSubtensor) and not is_own):
                    return False
        return True

    def _read_row(self, number: int, array: int, back: int) -> Variable:
        """What a step reads of an array that is written row by row: what was written there some steps
        before, or what was there before the loop."""
        step, writer = self.steps[number], self.steps[array]
        read, written = step.rows, writer.rows
        assert read is not None
        assert written is not None
        where = {place: at for at, place in enumerate(written)}
        since: list[int | None] = []
        for at, place in enumerate(read):
            by = where.get(place)
            since.append(None if by is None or by > at - back else at - by)
        base = self._base(array)
        distance = since[-1]
        if distance is None:
            if any(one is not None for one in since):
                raise NotEqualError("rows are read that some steps only have written", step.node.where)
            return self._element(base, step)
        value = writer.operands[1]
        if value.kind != "step" or value.back or writer.node.inputs[1].type != step.node.outputs[0].type:
            raise NotEqualError("a row is read that was written in another form", step.node.where)
        for at, one in enumerate(since):
            if one is None and at < distance:
                row = self._row(base, read[at])
                self.iterations.set_initial(value.key, distance - at, row, step.node.where)
            elif one != distance:
                raise NotEqualError("rows are read that were written at several distances", step.node.where)
        return self._value(value.key, distance)

    def _row(self, base: Variable, place: int) -> Variable:
        """A row of an array before the loop, one Variable for each."""
        if (base, place) not in self._base_rows:
            self._base_rows[base, place] = getitem(base, place)
        return self._base_rows[base, place]

    def _base(self, array: int) -> Variable:
        """The array before the first step that writes to it."""
        return self.iterations.initial[(array, 0), 1]

    # ---- the body

    def exchanged(self, read: set[Variable]) -> dict[Variable, Variable]:
        """Values of iterations -> those of the loop that are equal to them. Raises NotEqualError."""
        for number in range(len(self.steps)):
            if number not in self.written:
                self._make(number)
        wanted = [(one, *found) for one in read if (found := self.iterations.place(one)) is not None]
        last, plans = self.count - 1, list[tuple[Variable, int, Key]]()
        for variable, at, key in wanted:
            if key[0] in self.written:
                if at == last:
                    self.rows[key[0]] = self._keep(self._written_value(key[0]))
                    plans.append((variable, at, key))
                continue
            if at == last and self._has_cheap_type(key):
                self._value(key, 1)
            elif at != last or (key, 1) not in self.taps:
                self._keep(self.made[key])
            plans.append((variable, at, key))
        if not plans:
            raise NotEqualError("nothing that it computes is used")
        return self._results(plans)

    def _written_value(self, place: int) -> Variable:
        return self._operand(self.written[place], self.steps[place].node.inputs[1])

    def _has_cheap_type(self, key: Key) -> bool:
        shape = self.steps[key[0]].node.outputs[key[1]].tensor_type.shape
        return (key, 1) in self.taps or None not in shape

    def _keep(self, variable: Variable) -> int:
        """Which trace has the value of each step."""
        return self.kept.setdefault(variable, len(self.kept))

    def _make(self, number: int) -> None:
        """A node of the body."""
        step = self.steps[number]
        first = step.operands[0] if step.operands else None
        if step.places is not None and first is not None:
            if first.kind == "step" and first.key[0] in self.written:
                self.made[number, 0] = self._read_row(number, first.key[0], first.back)
                return
            if step.varies:
                if first.variable is None or isinstance(step.node.op, SetSubtensor):
                    reason = f"{step.node.op.name} at another place in each step"
                    raise NotEqualError(reason, step.node.where)
                self.made[number, 0] = self._element(first.variable, step)
                return
        operands = [self._operand(one, own) for one, own in zip(step.operands, step.node.inputs, strict=True)]
        made = step.node.op.make_node(*operands)
        if [one.type for one in made.outputs] != [one.type for one in step.node.outputs]:
            raise NotEqualError(f"{step.node.op.name} has another type in a loop", step.node.where)
        made.where = step.node.where
        for index, output in enumerate(made.outputs):
            self.made[number, index] = output

    def _operand(self, operand: StepOperand, own: Variable) -> Variable:
        if operand.kind == "outside":
            assert operand.variable is not None
            return operand.variable
        if operand.kind == "step":
            if operand.key[0] in self.written:
                raise NotEqualError("an array that is written is used as a whole")
            return self._value(operand.key, operand.back)
        if operand.kind == "each":
            return self._sequence(
                stack(operand.each), TensorType(own.dtype, shape=(None, *own.tensor_type.shape))
            )
        rows = rows_of(operand)
        return own if rows is None else self._sequence(as_variable(rows), as_variable(rows).tensor_type)

    def _value(self, key: Key, back: int) -> Variable:
        """A result of so many steps back."""
        if back == 0:
            if key not in self.made:
                raise NotEqualError("a value is used before it is computed")
            return self.made[key]
        if back > MOST_BACK:
            raise NotEqualError(f"a value of {back} steps back is used")
        for one in range(1, back + 1):
            if (key, one) not in self.taps:
                self.taps[key, one] = Variable(self.steps[key[0]].node.outputs[key[1]].type)
        return self.taps[key, back]

    def _element(self, source: Variable, step: StepNode) -> Variable:
        """The part of an array that each step takes, at another place along one axis."""
        assert step.places is not None
        assert isinstance(step.node.op, Subtensor)
        entries = step.node.op.entries
        axes = [axis for axis, entry in enumerate(entries) if not isinstance(entry, Slice)]
        moving = [number for number in range(len(axes)) if len({place[number] for place in step.places}) > 1]
        if not moving:
            part: Variable = step.node.op(source)
            return part
        if len(moving) > 1:
            raise NotEqualError("it moves along several axes of an array", step.node.where)
        axis = axes[moving[0]]
        places = [place[moving[0]] for place in step.places]
        rank = source.tensor_type.ndim
        rows = dimshuffle(source, (axis, *(one for one in range(rank) if one != axis))) if axis else source
        element = self._sequence(_rows_at(rows, places), rows.tensor_type)
        rest = tuple(entry for one, entry in enumerate(entries) if one != axis)
        if all(isinstance(entry, Slice) and entry.is_full for entry in rest):
            return element
        chosen: Variable = Subtensor(rest)(element)
        return chosen

    def _sequence(self, rows: Variable, like: TensorType) -> Variable:
        """What stands for the row of each step."""
        element = Variable(like.with_shape(like.shape[1:]))
        self.sequences[element] = rows
        return element

    # ---- the loop

    def _results(self, plans: Sequence[tuple[Variable, int, Key]]) -> dict[Variable, Variable]:
        carries = {stand: self._first(*tap) for tap, stand in self.taps.items()}
        following = [self.made[key] if back == 1 else self.taps[key, back - 1] for key, back in self.taps]
        control = as_variable(np.int64(self.count))
        parts = LoopParts(control, carries, following, list(self.kept), dict(self.sequences))
        parts.close()
        parts.prune([True] * len(carries), [True] * len(self.kept))
        made = parts.node().outputs
        last = dict(zip(self.taps, made, strict=False))
        rows = made[len(carries) :]
        found: dict[Variable, Variable] = {}
        for variable, at, key in plans:
            if key[0] in self.written:
                found[variable] = self._array(key[0], rows)
            elif at == self.count - 1 and (key, 1) in last:
                found[variable] = last[key, 1]
            else:
                found[variable] = getitem(rows[self.kept[self.made[key]]], at)
            if found[variable].type != variable.type:
                raise NotEqualError(f"a result has type {found[variable].type}, not {variable.type}")
        return found

    def _first(self, key: Key, back: int) -> Variable:
        """What stands for a result some steps before the first one: anything where nobody reads it."""
        known = self.iterations.initial.get((key, back))
        if known is not None:
            return known
        type = self.steps[key[0]].node.outputs[key[1]].tensor_type
        if None in type.shape:
            raise NotEqualError("the size of a value is not known")
        zero = np.zeros((), type.numpy_dtype)
        filled: Variable = alloc(as_variable(zero), *type.shape) if type.shape else as_variable(zero)
        return filled

    def _array(self, place: int, rows: Sequence[Variable]) -> Variable:
        """An array that was written row by row, after the last step."""
        step, base = self.steps[place], self._base(place)
        trace = rows[self.rows[place]]
        places = step.rows
        assert places is not None
        if trace.tensor_type.shape[1:] != base.tensor_type.shape[1:]:
            raise NotEqualError("a row is written from a value of another shape", step.node.where)
        if places == list(range(base.tensor_type.shape[0] or 0)) and trace.type == base.type:
            return trace
        return set_subtensor(_rows_at(base, places), trace)


def _rows_at(source: Variable, places: Sequence[int]) -> Variable:
    """The rows of an array at places: a slice where they are evenly spaced."""
    distances = {after - before for before, after in itertools.pairwise(places)}
    size = source.tensor_type.shape[0]
    if len(distances) == 1 and 0 not in distances and min(places) >= 0:
        (distance,) = distances
        if distance == 1 and places[0] == 0 and size == len(places):
            return source
        stop = places[-1] + (1 if distance > 0 else -1)
        return getitem(source, slice(places[0], None if stop < 0 else stop, distance))
    return getitem(source, np.array(places, np.int64))
