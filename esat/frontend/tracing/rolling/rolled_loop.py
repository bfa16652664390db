"""The loop that computes what equal iterations do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.frontend.arrays.indexing import getitem, set_subtensor
from esat.frontend.arrays.shaping import stack
from esat.frontend.tracing.rolling.iterations import (
    MOST_BACK,
    Iterations,
    Key,
    NotEqualError,
    StepNode,
    StepOperand,
    rows_of,
)
from esat.frontend.tracing.rolling.numbers_around import close_with_numbers
from esat.frontend.tracing.trace import current_trace
from esat.graph.algorithms.traversal import ancestors
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.control import ifelse
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Slice
from esat.ops.loops.parts import LoopParts


class RolledLoop:
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
            rows = step.rows
            is_row = rows is not None and bool(np.diff(np.sort(rows, kind="stable")).all())
            if is_row and self._is_only_read_in_part(place):
                found[place] = step.operands[1]
        return found

    def _is_only_read_in_part(self, place: int) -> bool:
        """Whether an array that is written is used for nothing in a step but to read rows, and to write."""
        axis = self.steps[place].axis
        for number, step in enumerate(self.steps):
            for position, operand in enumerate(step.operands):
                if operand.kind != "step" or operand.key != (place, 0):
                    continue
                is_part = step.axis == axis and position == 0 and operand.back in (0, 1)
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
        order = np.argsort(written, kind="stable")
        found = order[np.searchsorted(written[order], read).clip(max=len(order) - 1)]
        since = np.arange(len(read)) - found
        is_here = (written[found] == read) & (since >= back)
        base, distance = self._base(array), int(since[-1])
        if not is_here[-1]:
            if is_here.any():
                raise NotEqualError("rows are read that some steps only have written", step.node.where)
            return self._element(base, step)
        value = writer.operands[1]
        if value.kind != "step" or value.back or writer.node.inputs[1].type != step.node.outputs[0].type:
            raise NotEqualError("a row is read that was written in another form", step.node.where)
        others = np.flatnonzero(~is_here | (since != distance))
        if (is_here[others] | (others >= distance)).any():
            raise NotEqualError("rows are read that were written at several distances", step.node.where)
        for at in others.tolist():
            row = self._row(base, writer.axis or 0, int(read[at]))
            self.iterations.set_initial(value.key, distance - at, row, step.node.where)
        return self._value(value.key, distance)

    def _row(self, base: Variable, axis: int, place: int) -> Variable:
        """A row along an axis of an array before the loop, one Variable for each."""
        if (base, place) not in self._base_rows:
            self._base_rows[base, place] = getitem(base, (*[slice(None)] * axis, place))
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

    def left(
        self, condition: Variable, wanted: dict[Variable, tuple[Variable, int]], raising: set[int]
    ) -> tuple[dict[Variable, Variable], Variable, Variable]:
        """The loop that ends with the step in which a condition holds, if there is one.

        Parameters
        ----------
        condition
            Of the last step.
        wanted
            What to find -> a value of some step, and how many steps that is to be before the last one.
        raising
            Nodes of a step that are not run where it is the last one, since they may raise an error.

        Returns
        -------
        What those values are; how many steps there are; and whether the condition ended them.

        Raises
        ------
        NotEqualError
            Where such a loop cannot be built.
        """
        if self.iterations.first:
            raise NotEqualError("its first steps are others")
        for number in range(len(self.steps)):
            if number not in self.written:
                self._make(number)
        for place in self.written:
            row = self._sequence(
                as_variable(np.array(self.steps[place].rows)), TensorType("int64", shape=(None,))
            )
            array, axis = self._value((place, 0), 1), self.steps[place].axis or 0
            part = getitem(array, (*[slice(None)] * axis, row))
            self.made[place, 0] = set_subtensor(part, self._written_value(place))
        taps: dict[Variable, tuple[Key, int]] = {}
        for variable, (value, back) in wanted.items():
            found = self.iterations.place(value)
            assert found is not None
            taps[variable] = (found[1], back + 1)
            self._value(*taps[variable])
        ends = self.iterations.place(condition)
        if ends is None:
            raise NotEqualError("what ends it is not computed in each step")
        step = Variable(TensorType("int64", shape=()))
        carries = {stand: self._first(*tap) for tap, stand in self.taps.items()}
        ended = self.made[ends[1]]
        not_run = {made for (place, _), made in self.made.items() if place in raising}
        following = [
            self.taps[key, back - 1] if back > 1
            else ifelse(ended, stand, self.made[key]) if not not_run.isdisjoint(ancestors([self.made[key]]))
            else self.made[key]
            for (key, back), stand in self.taps.items()
        ]  # fmt: skip
        parts = LoopParts(
            as_variable(np.bool_(True)),
            {**carries, step: as_variable(np.int64(0))},
            [*following, op_named("add")(step, 1)],
            goes_on=op_named("invert")(ended),
            max_steps=self.count,
        )
        elements = {own: getitem(as_variable(rows), step) for own, rows in self.sequences.items()}
        parts.replace(dict(elements))
        parts.close()
        parts.prune([own in {self.taps[tap] for tap in taps.values()} for own in parts.carries], [])
        made = parts.node().outputs
        last = dict(zip(parts.carries, made, strict=False))
        results = {variable: last[self.taps[tap]] for variable, tap in taps.items()}
        for variable, result in results.items():
            if result.type != variable.type:
                raise NotEqualError(f"a result has type {result.type}, not {variable.type}")
        count, goes_on = made[len(parts.carries) : len(parts.carries) + 2]
        return results, count, op_named("invert")(goes_on)

    def _written_value(self, place: int) -> Variable:
        return self._operand(self.written[place], self.steps[place].node.inputs[1])

    def _has_cheap_type(self, key: Key) -> bool:
        shape = self.steps[key[0]].node.outputs[key[1]].tensor_type.shape
        return (key, 1) in self.taps or None not in shape

    def _keep(self, variable: Variable) -> int:
        """Which trace has the value of each step."""
        trace = current_trace()
        given = [variable] if trace is None else trace.arrays
        if None in variable.tensor_type.shape and all(None not in one.tensor_type.shape for one in given):
            raise NotEqualError("the size of a value is known when it is computed only")
        return self.kept.setdefault(variable, len(self.kept))

    def _make(self, number: int) -> None:
        """A node of the body."""
        step = self.steps[number]
        first = step.operands[0] if step.operands else None
        if step.places is not None and first is not None:
            if first.kind == "step" and first.key[0] in self.written:
                self.made[number, 0] = self._read_row(number, first.key[0], first.back)
                return
            if step.varies and isinstance(step.node.op, Subtensor) and first.variable is not None:
                assert first.variable is not None
                self.made[number, 0] = self._element(first.variable, step)
                return
            if step.varies or (first.kind == "step" and self._is_written_anywhere(first.key)):
                self.made[number, 0] = self._part(step)
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
        pairs = zip(step.operands[1:], step.node.inputs[1:], strict=True)
        asked = [self._operand(one, own) for one, own in pairs]
        axes = [axis for axis, entry in enumerate(entries) if type(entry) is int]
        moving = np.flatnonzero((step.places != step.places[:1]).any(axis=0)).tolist()
        if not moving:
            part: Variable = step.node.op(source, *asked)
            return part
        if len(moving) > 1:
            raise NotEqualError("it moves along several axes of an array", step.node.where)
        axis = axes[moving[0]]
        places = step.places[:, moving[0]]
        rank = source.tensor_type.ndim
        rows = _rows_at(source, places, axis)
        rows = dimshuffle(rows, (axis, *(one for one in range(rank) if one != axis))) if axis else rows
        element = self._sequence(rows, rows.tensor_type)
        rest = tuple(entry for one, entry in enumerate(entries) if one != axis)
        if all(isinstance(entry, Slice) and entry.is_full for entry in rest):
            return element
        chosen: Variable = Subtensor(rest)(element, *asked)
        return chosen

    def _is_written_anywhere(self, key: Key) -> bool:
        """Whether a value is an array that a step writes to at another place in each step."""
        writer = self.steps[key[0]]
        return isinstance(writer.node.op, SetSubtensor) and writer.varies

    def _part(self, step: StepNode) -> Variable:
        """A part of an array that changes in each step, or the array with such a part written: its places are
        numbers that the step is given."""
        assert step.places is not None
        op = step.node.op
        assert isinstance(op, Subtensor | SetSubtensor)
        operands = [self._operand(one, own) for one, own in zip(step.operands, step.node.inputs, strict=True)]
        kept = 1 if isinstance(op, Subtensor) else 2
        columns, asked = iter(step.places.T), iter(operands[kept:])
        index: list[Any] = []
        for entry in op.entries:
            if isinstance(entry, Slice):
                index.append(slice(*entry.parts()))
            elif entry is OPERAND:
                index.append(next(asked))
            else:
                column = next(columns)
                rows = as_variable(np.ascontiguousarray(column))
                is_fixed = (column == column[0]).all()
                index.append(int(column[0]) if is_fixed else self._sequence(rows, rows.tensor_type))
        part: Variable = getitem(operands[0], tuple(index))
        made = part if isinstance(op, Subtensor) else set_subtensor(part, operands[1])
        if made.type != step.node.outputs[0].type:
            raise NotEqualError(f"{op.name} has another type in a loop", step.node.where)
        return made

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
        trace = current_trace()
        if trace is not None and trace.within:
            outside = {
                one.variable for step in self.steps for one in step.operands if one.variable is not None
            }
            close_with_numbers(parts, outside, trace.skipping)
        else:
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
        trace, axis = rows[self.rows[place]], step.axis or 0
        places = step.rows
        assert places is not None
        rank, shape = base.tensor_type.ndim, base.tensor_type.shape
        if trace.tensor_type.shape[1:] != (*shape[:axis], *shape[axis + 1 :]):
            raise NotEqualError("a row is written from a value of another shape", step.node.where)
        if axis:  # the steps are along the first axis of a trace
            trace = dimshuffle(trace, (*range(1, axis + 1), 0, *range(axis + 1, rank)))
        if np.array_equal(places, np.arange(shape[axis] or 0)) and trace.type == base.type:
            return trace
        return set_subtensor(_rows_at(base, places, axis), trace)


def _rows_at(source: Variable, places: np.ndarray[Any, np.dtype[np.int64]], axis: int = 0) -> Variable:
    """The rows along an axis at places: a slice where they are evenly spaced."""
    size, before = source.tensor_type.shape[axis], [slice(None)] * axis
    distance = int(places[1] - places[0]) if len(places) > 1 else 0
    if distance and places.min() >= 0 and (np.diff(places) == distance).all():
        first, last = int(places[0]), int(places[-1])
        if distance == 1 and first == 0 and size == len(places):
            return source
        stop = last + (1 if distance > 0 else -1)
        return getitem(source, (*before, slice(first, None if stop < 0 else stop, distance)))
    return getitem(source, (*before, np.ascontiguousarray(places)))
