"""Steps and loops as LLVM's text: numbers are registers, tables are written to where they are.

A loop within a step is a loop of the same function, a choice is a branch. What cannot be in place, because a
step reads what it has written over, is no code here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from esat.codegen.small_loops.number_lines import KINDS, NoCodeError
from esat.codegen.small_loops.order import handed_on, in_order, is_array, is_choice
from esat.codegen.small_loops.step_lines import MOST_LINES, MOST_NUMBERS, Numbers, number_lines
from esat.codegen.small_loops.stored_tables import Part, Root, StoredTable
from esat.codegen.small_loops.table_lines import asserted, filled, part, shuffled, size, written
from esat.codegen.small_loops.value_lines import LARGEST, Affine, Value, ValueLines, one_number
from esat.graph import Apply, Constant, FunctionGraph, Variable
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.arrays.view import Reshape
from esat.ops.control import Assert, IfElse
from esat.ops.index.basic import Subtensor
from esat.ops.index.write import PartWrite
from esat.ops.loops.record import LoopOp, Scan, While

BETWEEN_SIGNALS = 1 << 28
"""Lines that run without a look at signals: a tenth of a second."""
SHORT = 1 << 20
"""Lines of a loop that asks for no signals itself."""


class LoopLines(ValueLines):
    """Writes steps and loops of one function. Its block ``refused`` ends it with results that are not to be
    used, and ``raised`` where a handler of a signal has raised an error.

    Attributes
    ----------
    looks
        Whether a loop asks for signals.
    steps
        How many operations lines are of.
    """

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.steps, self._first = False, 0, 0
        self._eager: set[Apply] = set()

    # ---- steps

    def step(self, body: FunctionGraph, given: Mapping[Variable, Value]) -> list[Value]:
        """What a body gives."""
        self.values.update(given)
        self.handed |= handed_on(
            [*body.outputs, *(one for node in body.apply_nodes if isinstance(node.op, LoopOp)
             for one in node.inputs[1 : 1 + node.op.carries])]
        )  # fmt: skip
        self.region(body.outputs)
        return list(map(self.value, body.outputs))

    def region(self, targets: Sequence[Variable]) -> None:
        """Have what targets need."""
        for node in in_order(targets, self.values, self.handed):
            self.steps += 1
            for output, value in zip(node.outputs, self._results(node), strict=True):
                self.values[output] = value
            for bit in self.code.conditions:
                self.require(bit)
            self.code.conditions.clear()
            if len(self.code.lines) - self._first > MOST_LINES:
                raise NoCodeError

    def _results(self, node: Apply) -> list[Value]:
        op = node.op
        if is_choice(node) and not isinstance(op, IfElse):
            return self.switch(node)
        for kind, write in _WRITERS.items():
            if isinstance(op, kind):
                found = write(self, node)
                if found is not None:
                    return found
        found = number_lines(self.code, node, [self.numbers(one) for one in node.inputs])
        self._narrow(node, found)
        return found

    def _narrow(self, node: Apply, found: Sequence[Numbers]) -> None:
        """Know between which bounds a sum of integers is."""
        name = getattr(node.op, "name", "")
        type = node.outputs[0].tensor_type
        if name in ("add", "sub") and type.dtype == "int64" and not type.ndim:
            bounds = [self.bounds(self.numbers(one).item()) for one in node.inputs]
            if len(bounds) == 2 and bounds[0] and bounds[1]:
                (low, high), (other, last) = bounds[0], bounds[1]
                both = (low + other, high + last) if name == "add" else (low - last, high - other)
                if max(map(abs, both)) < LARGEST:
                    self.ranges[found[0].item()] = both

    # ---- choices

    def switch(self, node: Apply) -> list[Value]:
        """One of two numbers, of which only that one is computed where neither may raise an error."""
        made: list[list[Any]] = [self.code.lines, self.constants, self.scratch]
        counts, requires = list(map(len, made)), self.requires
        block, ranges, steps = self.block, dict(self.ranges), self.steps
        if node not in self._eager:
            found = self.choice(node)
            if self.requires == requires:
                return found
            self._eager.add(node)
            for lines, count in zip(made, counts, strict=True):
                del lines[count:]
            self.block, self.ranges, self.steps = block, ranges, steps
            self.counted = min(self.counted, counts[0])
        self.region(node.inputs)
        return number_lines(self.code, node, list(map(self.numbers, node.inputs)))

    def choice(self, node: Apply) -> list[Value]:
        """The values of one branch, which alone is run."""
        condition = self.numbers(node.inputs[0]).item()
        half = (len(node.inputs) + 1) // 2
        sides = node.inputs[1:half], node.inputs[half:]
        labels = [self.label("then"), self.label("otherwise")]
        after = self.label("joined")
        known, own = self.values, self.changeable
        before = {root: list(root.writes) for root in own}
        self.line(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        found: list[list[Value]] = []
        written: list[dict[Root, list[Part]]] = []
        ends: list[str] = []
        for label, side in zip(labels, sides, strict=True):
            for root, writes in before.items():
                root.writes = list(writes)
            self.values, self.changeable = dict(known), set(own)
            self.begin(label)
            self.region(side)
            values = [self.value(one) for one in side]
            if any(isinstance(one, StoredTable) and not one.is_current for one in values):
                raise NoCodeError
            found.append([
                self.numbers(one) if not out.tensor_type.ndim or isinstance(value, np.ndarray) else value
                for one, value, out in zip(side, values, node.outputs, strict=True)
            ])  # fmt: skip
            written.append({root: root.writes[len(writes) :] for root, writes in before.items()})
            ends.append(self.block)
            self.line(f"br label %{after}")
        self.values, self.changeable = known, own
        for root, writes in before.items():
            root.writes = [*writes, *written[0][root], *written[1][root]]
        self.begin(after)
        return [
            self._joined(then, otherwise, ends, output.tensor_type.dtype)
            for then, otherwise, output in zip(*found, node.outputs, strict=True)
        ]

    def _joined(self, then: Value, otherwise: Value, ends: list[str], dtype: str) -> Value:
        if isinstance(then, StoredTable) and isinstance(otherwise, StoredTable):
            if (then.root, then.part, then.shape) != (otherwise.root, otherwise.part, otherwise.shape):
                raise NoCodeError
            pair = f"[ {then.pointer}, %{ends[0]} ], [ {otherwise.pointer}, %{ends[1]} ]"
            return replace(then.now(), pointer=self.code.value(f"phi ptr {pair}"))
        if not (isinstance(then, np.ndarray) and isinstance(otherwise, np.ndarray)):
            raise NoCodeError
        kind = KINDS[dtype]
        found = np.empty(then.shape, object)
        if then.shape != otherwise.shape:
            raise NoCodeError
        for place in np.ndindex(then.shape):
            pair = f"[ {then[place]}, %{ends[0]} ], [ {otherwise[place]}, %{ends[1]} ]"
            found[place] = self.code.value(f"phi {kind} {pair}")
        return found

    # ---- loops

    @contextmanager
    def _within(self, roots: set[Root]) -> Iterator[None]:
        known, own = self.values, self.changeable
        self.values, self.changeable = dict(known), set(roots)
        yield
        self.values, self.changeable = known, own

    def loop(
        self,
        op: LoopOp,
        control: str,
        operands: Sequence[Value],
        rows: Sequence[StoredTable],
        most: int | None,
    ) -> list[Value]:
        """The last carries and, of a loop with a condition, how many steps there were, and whether there is
        another one.

        Parameters
        ----------
        op
            The loop.
        control
            How many steps there are, or whether there is a first one.
        operands
            Carries, sequences and invariants. Carries that are tables are changed where they are.
        rows
            Where traces go.
        most
            The most steps that there are, if that is known.
        """
        carries, sequences, invariants = op.split(operands)
        carries = [one.written() if isinstance(one, StoredTable) else one for one in carries]
        self.count()
        outside, self.cost = self.cost, 0
        before, start, body, after = self.block, *map(self.label, ("loop", "body", "done"))
        place = f"%{start}_place"
        dtypes = [one.tensor_type.dtype for one in op.body.inputs[: op.carries]]
        now = [
            one if isinstance(one, StoredTable) else _named(f"%{start}_{number}", one.shape)
            for number, one in enumerate(carries)
        ]
        self.line(f"br label %{start}")
        self.begin(start)
        slot = len(self.code.lines)
        self.code.lines.append("")
        limit: str | None = control
        goes_on = f"%{start}_goes_on"
        if isinstance(op, While):
            limit = None if op.max_steps is None else str(op.max_steps)
        runs = "true" if limit is None else self.code.value(f"icmp slt i64 {place}, {limit}")
        if isinstance(op, While):
            runs = self.code.value(f"and i1 {runs}, {goes_on}")
        self.line(f"br i1 {runs}, label %{body}, label %{after}")
        self.begin(body)
        self._first = self._first or len(self.code.lines)
        at = place
        if isinstance(op, Scan) and op.reverse:
            at = self.code.value(f"sub i64 {self.code.value(f'sub i64 {limit}, 1')}, {place}")
        given = [*now, *(self._element(one, at) for one in sequences), *invariants]
        with self._within({one.root for one in now if isinstance(one, StoredTable)}):
            found = self.step(op.body, dict(zip(op.body.inputs, given, strict=True)))
            following = self._following(now, found, dtypes)
            kept = found[len(found) - len(rows) :]
            for row, value in zip(rows, kept, strict=True):
                target = replace(row, pointer=self.address(row, [at, *["0"] * (len(row.shape) - 1)]),
                                 shape=row.shape[1:], strides=row.strides[1:])  # fmt: skip
                self.put(target, value)
            further = self.numbers(op.body.outputs[op.carries]).item() if isinstance(op, While) else ""
        self._look_at_signals(most)
        advanced = self.code.value(f"add nuw nsw i64 {place}, 1")
        self.line(f"br label %{start}")
        self.count()
        ways = [f"  {place} = phi i64 [ 0, %{before} ], [ {advanced}, %{self.block} ]"]
        if isinstance(op, While):
            ways.append(f"  {goes_on} = phi i1 [ {control}, %{before} ], [ {further}, %{self.block} ]")
        for first, one, value, dtype in zip(carries, now, following, dtypes, strict=True):
            if isinstance(one, np.ndarray):
                ways += [
                    f"  {name} = phi {KINDS[dtype]} [ {begin}, %{before} ], [ {end}, %{self.block} ]"
                    for name, begin, end in zip(one.flat, first.flat, value.flat, strict=True)
                ]
        self.code.lines[slot] = "\n".join(ways)
        self.cost += outside
        self.begin(after)
        last = [one.now() if isinstance(one, StoredTable) else one for one in now]
        return [*last, one_number(place), one_number(goes_on)] if isinstance(op, While) else last

    def _element(self, sequence: Value, place: str) -> Value:
        """What a sequence has for a step."""
        if isinstance(sequence, Affine):
            return self._moved(sequence, place)
        if not isinstance(sequence, StoredTable):
            raise NoCodeError
        rest = ["0"] * (len(sequence.shape) - 1)
        pointer = self.address(sequence, [place, *rest])
        row = sequence.chosen(place, pointer, sequence.shape[1:], sequence.strides[1:])
        return self.loaded(row) if not row.shape else row

    def _moved(self, numbers: Affine, place: str) -> Value:
        """Those at a place of the first axis."""
        step, *distances = numbers.distances
        found, (low, high), last = numbers.first, numbers.bounds, step * (numbers.shape[0] - 1)
        if step:
            found = place if step == 1 else self.code.value(f"mul i64 {place}, {step}")
            found = found if numbers.first == "0" else self.code.value(f"add i64 {found}, {numbers.first}")
        bounds = low + min(last, 0), high + max(last, 0)
        if distances:
            return Affine(found, bounds, tuple(distances), numbers.shape[1:])
        if not found.lstrip("-").isdigit():
            self.ranges[found] = bounds
        return one_number(found)

    def _following(self, now: Sequence[Value], found: Sequence[Value], dtypes: Sequence[str]) -> list[Value]:
        """The next carries; tables are where the carries were."""
        following: list[Value] = []
        copies: list[tuple[StoredTable, Value]] = []
        for one, value in zip(now, found, strict=False):
            if not isinstance(one, StoredTable):
                following.append(value if isinstance(value, np.ndarray) else self.loaded(self.table(value)))
                continue
            following.append(one)
            is_there = isinstance(value, StoredTable) and (value.root, value.part) == (one.root, one.part)
            if is_there and not value.is_current:
                raise NoCodeError
            if not is_there:
                copies.append((one, value))
        while copies:
            sources = [value.root for _, value in copies if isinstance(value, StoredTable)]
            ready = [pair for pair in copies if pair[0].root not in sources]
            if not ready:
                raise NoCodeError
            copies.remove(ready[0])
            if ready[0][0].shape != ready[0][1].shape:
                raise NoCodeError
            self.put(*ready[0])
            ready[0][0].written()
        return following

    def _look_at_signals(self, most: int | None) -> None:
        """See to it that handlers of signals run now and then."""
        self.count()
        if most is not None and most * self.cost <= SHORT:
            self.cost *= most
            return
        self.looks = True
        asks, goes_on = self.label("asks"), self.label("goes_on")
        left = self.code.value("load i64, ptr %left")
        less = self.code.value(f"sub i64 {left}, {self.cost + 8}")
        self.line(f"store i64 {less}, ptr %left")
        late = self.code.value(f"icmp slt i64 {less}, 0")
        self.line(f"br i1 {late}, label %{asks}, label %{goes_on}")
        self.begin(asks)
        self.line(f"store i64 {BETWEEN_SIGNALS}, ptr %left")
        found = self.code.value("call i32 @asks()")
        self.line(f"br i1 {self.code.value(f'icmp eq i32 {found}, 0')}, label %{goes_on}, label %raised")
        self.begin(goes_on)
        self.cost = 0
        self.counted = len(self.code.lines)


def is_table(body: FunctionGraph, variable: Variable) -> bool:
    """Whether a body chooses elements of an input, or of what becomes of it, that are not known before."""
    if not is_array(variable):
        return False
    if not 1 <= prod(size or MOST_NUMBERS + 1 for size in variable.tensor_type.shape) <= MOST_NUMBERS:
        return True
    of = {variable}
    for node in body.toposort():
        if of.isdisjoint(node.inputs[: 1 if isinstance(node.op, Subtensor | PartWrite) else None]):
            continue
        if isinstance(node.op, LoopOp):
            return True
        if isinstance(node.op, Subtensor | PartWrite):
            places = node.inputs[1 if isinstance(node.op, Subtensor) else 2 :]
            if not all(isinstance(one, Constant) for one in places):
                return True
        if isinstance(node.op, Subtensor | PartWrite | IfElse | DimShuffle | Reshape):
            of.update(filter(is_array, node.outputs))
    return False


def _named(name: str, shape: tuple[int, ...]) -> Numbers:
    found = np.empty(shape, object)
    for number, place in enumerate(np.ndindex(shape)):
        found[place] = f"{name}_{number}"
    return found


def _loop(lines: LoopLines, node: Apply) -> list[Value]:
    op = node.op
    assert isinstance(op, LoopOp)
    control = lines.numbers(node.inputs[0]).item()
    inputs = op.body.inputs
    operands = [lines.value(one) for one in node.inputs[1:]]
    for number, (inner, one) in enumerate(zip(inputs, node.inputs[1:], strict=True)):
        if number < op.carries:
            holds = is_table(op.body, inner)
            operands[number] = (
                lines.own(operands[number], one.tensor_type.dtype) if holds else lines.numbers(one)
            )
    known = lines.bounds(control) if isinstance(op, Scan) else None
    most = None if known is None else known[1]
    for sequence in op.split(operands)[1]:
        if most is None or most > sequence.shape[0]:
            lines.require(lines.code.value(f"icmp sle i64 {control}, {sequence.shape[0]}"))
    operands = [
        lines.own(one, inner.tensor_type.dtype)
        if op.carries <= number < op.carries + op.sequences and isinstance(one, np.ndarray) else one
        for number, (one, inner) in enumerate(zip(operands, inputs, strict=True))
    ]  # fmt: skip
    if isinstance(op, While):
        most = op.max_steps
    rows = []
    for kept in op.kept:
        shape = tuple(kept.tensor_type.shape)
        if None in shape or not most or (known is None or known[0] != known[1]):
            raise NoCodeError
        rows.append(lines.fresh((most, *(size or 0 for size in shape)), kept.tensor_type.dtype))
    found = lines.loop(op, control, operands, rows, most)
    return [*found, *(one.written() for one in rows)]


_WRITERS: Mapping[type, Callable[[LoopLines, Apply], list[Value] | None]] = {
    IfElse: LoopLines.choice,
    LoopOp: _loop,
    Subtensor: part,
    PartWrite: written,
    DimShuffle: shuffled,
    Alloc: filled,
    ShapeI: size,
    Assert: asserted,
}
"""What writes the lines of ops that are not of numbers alone."""
