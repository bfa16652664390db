"""Steps and loops as LLVM's text: numbers are registers, tables are written to where they are.

A loop within a step is a loop of the same function, a choice is a branch. What cannot be in place, because a
step reads what it has written over, is no code here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.codegen.matmul.straight_line import StraightLine
from esat.codegen.small_loops.number_lines import KINDS, NoCodeError, computed, cost_of
from esat.codegen.small_loops.order import handed_on, in_order, is_array
from esat.codegen.small_loops.step_lines import MOST_LINES, MOST_NUMBERS, Numbers, as_numbers, number_lines
from esat.codegen.small_loops.tables import Part, Root, Table, contiguous
from esat.graph import Apply, Constant, FunctionGraph, Variable
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.arrays.view import Reshape
from esat.ops.control import Assert, IfElse
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Entry, Slice
from esat.ops.index.write import PartWrite
from esat.ops.loops.record import LoopOp, Scan, While

BETWEEN_SIGNALS = 1 << 28
"""Lines that run without a look at signals: a tenth of a second."""
SHORT = 1 << 20
"""Lines of a loop that asks for no signals itself."""
BYTES: Mapping[str, int] = {dtype: np.dtype(dtype).itemsize for dtype in KINDS}
"""Of a number in memory."""


@record(frozen=True, eq=False)
class Affine:
    """Integers that grow by the same along each axis, which need not be read.

    Attributes
    ----------
    first
        The first one, as text, and between which bounds it is.
    distances, shape
        How much they grow along axes, and sizes of these.
    """

    first: str
    bounds: tuple[int, int]
    distances: tuple[int, ...]
    shape: tuple[int, ...]


class Patched:
    """An array with one element replaced, of which elements are read: it is nowhere."""

    def __init__(self, array: Value, places: list[str], value: str) -> None:
        self.array, self.places, self.value, self.shape = array, places, value, array.shape


Value: TypeAlias = Any
"""What stands for a variable: :data:`Numbers`, a :class:`Table`, :class:`Affine` or :class:`Patched`."""


class LoopLines:
    """Writes lines of one function. Its block ``refused`` ends it with results that are not to be used, and
    ``raised`` where a handler of a signal has raised an error.

    Attributes
    ----------
    code
        The lines.
    values
        What stands for variables that have been computed, where lines are written.
    block
        The label there.
    constants, scratch
        Numbers that lines read at ``%constant0`` and so on, and shapes and dtypes of ``%scratch0`` and so on.
    cost
        About how many lines take as long, those of the loops within that ask for signals left out.
    looks
        Whether a loop asks for signals.
    """

    def __init__(self) -> None:
        self.code = StraightLine(1)
        self.values: dict[Variable, Value] = {}
        self.block = "entry"
        self.constants: list[np.ndarray[Any, Any]] = []
        self.scratch: list[tuple[tuple[int, ...], str]] = []
        self.cost, self.looks, self.steps = 0, False, 0
        self._counted = self._first = 0
        self._ranges: dict[str, tuple[int, int]] = {}
        self._own: set[Root] = set()
        self._labels = 0
        self.handed: set[Variable] = set()

    # ---- lines

    def line(self, text: str) -> None:
        """A line that gives nothing."""
        self.code.lines.append(f"  {text}")

    def label(self, name: str) -> str:
        """A new label."""
        self._labels += 1
        return f"{name}{self._labels}"

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.code.lines.append(f"{label}:")
        self.block = label

    def require(self, bit: str) -> None:
        """Results are used only where a bit is set."""
        if bit != "true":
            fine = self.label("fine")
            self.line(f"br i1 {bit}, label %{fine}, label %refused")
            self.begin(fine)

    def _count(self) -> None:
        """Add the cost of new lines."""
        new = self.code.lines[self._counted :]
        self.cost += sum(map(cost_of, new))
        self._counted = len(self.code.lines)

    # ---- values

    def value(self, variable: Variable) -> Value:
        """What stands for a variable."""
        if variable not in self.values:
            assert isinstance(variable, Constant)
            self.values[variable] = self._constant(np.asarray(variable.data), variable.tensor_type.dtype)
        return self.values[variable]

    def numbers(self, variable: Variable) -> Numbers:
        """The numbers of a variable. Raises NoCodeError where they are many."""
        found = self.value(variable)
        return found if isinstance(found, np.ndarray) else self.loaded(self.table(found))

    def table(self, value: Value) -> Table:
        """What is in memory, or is put there."""
        if isinstance(value, Table):
            return value
        if isinstance(value, Affine) and value.bounds[0] == value.bounds[1]:
            places = np.indices(value.shape)
            steps = (one * step for one, step in zip(places, value.distances, strict=True))
            return self._stored(np.asarray(sum(steps, np.int64(value.bounds[0])), np.int64))
        raise NoCodeError

    def _constant(self, data: np.ndarray[Any, Any], dtype: str) -> Value:
        if dtype not in KINDS:
            raise NoCodeError
        found = affine(data)
        if found is not None:
            return found
        return as_numbers(data, dtype) if data.size <= MOST_NUMBERS else self._stored(data)

    def _stored(self, data: np.ndarray[Any, Any]) -> Table:
        """Numbers that are known, in memory."""
        self.constants.append(np.ascontiguousarray(data))
        shape, dtype = data.shape, str(data.dtype)
        name = f"%constant{len(self.constants) - 1}"
        return Table(Root(dtype), 0, name, shape, contiguous(shape, BYTES[dtype]))

    def fresh(self, shape: tuple[int, ...], dtype: str) -> Table:
        """Memory of this step's own."""
        self.scratch.append((shape, dtype))
        root = Root(dtype)
        self._own.add(root)
        return Table(root, 0, f"%scratch{len(self.scratch) - 1}", shape, contiguous(shape, BYTES[dtype]))

    def loaded(self, table: Table) -> Numbers:
        """The numbers of a small table."""
        if not 1 <= table.size <= MOST_NUMBERS:
            raise NoCodeError
        found = np.empty(table.shape, object)
        for place in np.ndindex(table.shape):
            found[place] = self.load(table, list(map(str, place)))
        return found

    def address(self, table: Table, places: Sequence[str]) -> str:
        """Where an element is."""
        pointer = table.pointer
        for place, stride in zip(places, table.strides, strict=True):
            if place != "0":
                pointer = self.code.value(
                    f"getelementptr inbounds i8, ptr {pointer}, i64 {self._times(place, stride)}"
                )
        return pointer

    def _times(self, place: str, stride: int | str) -> str:
        if isinstance(stride, int) and place.lstrip("-").isdigit():
            return str(int(place) * stride)
        return self.code.value(f"mul nsw i64 {place}, {stride}")

    def load(self, table: Table, places: Sequence[str]) -> str:
        """An element. Raises NoCodeError where it has been written over."""
        if not table.is_current:
            raise NoCodeError
        dtype, pointer = table.root.dtype, self.address(table, places)
        if dtype == "bool":
            byte = self.code.value(f"load i8, ptr {pointer}, align 1")
            return self.code.value(f"icmp ne i8 {byte}, 0")
        return self.code.value(f"load {KINDS[dtype]}, ptr {pointer}, align {BYTES[dtype]}")

    def store(self, table: Table, places: Sequence[str], value: str) -> None:
        """Write an element; the version of the table is the caller's."""
        dtype, pointer = table.root.dtype, self.address(table, places)
        if dtype == "bool":
            byte = self.code.value(f"zext i1 {value} to i8")
            self.line(f"store i8 {byte}, ptr {pointer}, align 1")
        else:
            self.line(f"store {KINDS[dtype]} {value}, ptr {pointer}, align {BYTES[dtype]}")

    def put(self, table: Table, value: Value, combine: Callable[[str, str], str] | None = None) -> None:
        """Write to all elements what is broadcast to them."""
        if not isinstance(value, np.ndarray):
            value = self.table(value)
            if value.root is table.root:
                value = self.loaded(value)
        if isinstance(value, np.ndarray) and table.size > MOST_NUMBERS and value.size > 1:
            raise NoCodeError

        def element(places: list[str]) -> None:
            pairs = zip(places[len(places) - len(value.shape) :], value.shape, strict=True)
            own = ["0" if size == 1 else place for place, size in pairs]
            given = value[tuple(map(int, own))] if isinstance(value, np.ndarray) else self.load(value, own)
            if combine is not None:
                given = combine(self.load(table, places), given)
            self.store(table, places, given)

        if table.size <= MOST_NUMBERS:
            for place in np.ndindex(table.shape):
                element(list(map(str, place)))
        else:
            self._each(table.shape, [], element)

    def _each(self, shape: Sequence[int], places: list[str], element: Callable[[list[str]], None]) -> None:
        if not shape:
            element(places)
            return
        self._count()
        before, cost = self.block, self.cost
        again, after = self.label("again"), self.label("after")
        place = f"%{again}_place"
        self.line(f"br label %{again}")
        self.begin(again)
        slot = len(self.code.lines)
        self.code.lines.append("")
        self._each(shape[1:], [*places, place], element)
        following = self.code.value(f"add nuw nsw i64 {place}, 1")
        self.code.lines[slot] = f"  {place} = phi i64 [ 0, %{before} ], [ {following}, %{self.block} ]"
        ends = self.code.value(f"icmp eq i64 {following}, {shape[0]}")
        self.line(f"br i1 {ends}, label %{after}, label %{again}")
        self._count()
        self.cost = cost + shape[0] * (self.cost - cost)
        self.begin(after)

    def own(self, value: Value, dtype: str) -> Table:
        """A table that the step may change: what is its own, or a copy."""
        if isinstance(value, Table) and value.root in self._own:
            return value
        if isinstance(value, Patched) or not prod(value.shape):
            raise NoCodeError
        copy = self.fresh(value.shape, dtype)
        self.put(copy, value)
        return copy.written()

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
        if name in ("add", "sub") and not node.outputs[0].tensor_type.ndim:
            bounds = [self.bounds(self.numbers(one).item()) for one in node.inputs]
            if len(bounds) == 2 and bounds[0] and bounds[1]:
                (low, high), (other, last) = bounds[0], bounds[1]
                both = (low + other, high + last) if name == "add" else (low - last, high - other)
                self._ranges[found[0].item()] = both

    def bounds(self, number: str) -> tuple[int, int] | None:
        """Between which bounds an integer of 64 bits is known to be."""
        if number.lstrip("-").isdigit():
            return int(number), int(number)
        return self._ranges.get(number)

    def place(self, number: str, size: int) -> str:
        """An index, counted from the start; it is required to be within bounds."""
        known = self.bounds(number)
        if known is not None and known[0] >= 0 and known[1] < size:
            return number
        if known is None or known[0] < 0:
            negative = self.code.value(f"icmp slt i64 {number}, 0")
            from_end = self.code.value(f"add i64 {number}, {size}")
            number = self.code.value(f"select i1 {negative}, i64 {from_end}, i64 {number}")
        self.require(self.code.value(f"icmp ult i64 {number}, {size}"))
        return number

    def entries(self, node: Apply, first: int, shape: Sequence[int]) -> tuple[list[str | range], Part]:
        """What entries choose of each axis, a place or several; and how they are told, which is the same
        wherever it is computed anew."""
        entries: tuple[Entry, ...] = node.op.entries  # type: ignore[attr-defined]
        given = iter(node.inputs[first:])
        found: list[str | range] = []
        told: list[Hashable] = []
        for entry, size in zip(entries, shape, strict=True):
            if entry is OPERAND or isinstance(entry, int):
                number = str(entry) if isinstance(entry, int) else self.numbers(next(given)).item()
                told.append(number)
                found.append(self.place(number, size))
            elif isinstance(entry, Slice) and entry.is_static and entry.step != 0:
                found.append(range(*slice(*entry.parts()).indices(size)))
                told.append(found[-1])
            else:
                raise NoCodeError
        return found, tuple(told)

    def chosen(self, table: Table, entries: Sequence[str | range], told: Part) -> Table:
        """A part of a table."""
        firsts = [one if isinstance(one, str) else str(one.start if one else 0) for one in entries]
        kept = [axis for axis, one in enumerate(entries) if isinstance(one, range)]
        shape = [len(entries[axis]) for axis in kept]
        strides = [_scaled(table.strides[axis], entries[axis]) for axis in kept]
        return table.chosen(told, self.address(table, firsts), shape, strides)

    # ---- choices

    def choice(self, node: Apply) -> list[Value]:
        """The values of one branch, which alone is run."""
        op = node.op
        assert isinstance(op, IfElse)
        condition = self.numbers(node.inputs[0]).item()
        sides = op.branches(node.inputs)
        labels = [self.label("then"), self.label("otherwise")]
        after = self.label("joined")
        known, own = self.values, self._own
        before = {root: list(root.writes) for root in own}
        self.line(f"br i1 {condition}, label %{labels[0]}, label %{labels[1]}")
        found: list[list[Value]] = []
        written: list[dict[Root, list[Part]]] = []
        ends: list[str] = []
        for label, side in zip(labels, sides, strict=True):
            for root, writes in before.items():
                root.writes = list(writes)
            self.values, self._own = dict(known), set(own)
            self.begin(label)
            self.region(side)
            values = [self.value(one) for one in side]
            if any(isinstance(one, Table) and not one.is_current for one in values):
                raise NoCodeError
            found.append([
                self.numbers(one) if not out.tensor_type.ndim or isinstance(value, np.ndarray) else value
                for one, value, out in zip(side, values, node.outputs, strict=True)
            ])  # fmt: skip
            written.append({root: root.writes[len(writes) :] for root, writes in before.items()})
            ends.append(self.block)
            self.line(f"br label %{after}")
        self.values, self._own = known, own
        for root, writes in before.items():
            root.writes = [*writes, *written[0][root], *written[1][root]]
        self.begin(after)
        return [
            self._joined(then, otherwise, ends, output.tensor_type.dtype)
            for then, otherwise, output in zip(*found, node.outputs, strict=True)
        ]

    def _joined(self, then: Value, otherwise: Value, ends: list[str], dtype: str) -> Value:
        if isinstance(then, Table) and isinstance(otherwise, Table):
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
        known, own = self.values, self._own
        self.values, self._own = dict(known), set(roots)
        yield
        self.values, self._own = known, own

    def loop(
        self, op: LoopOp, control: str, operands: Sequence[Value], rows: Sequence[Table], most: int | None
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
        carries = [one.written() if isinstance(one, Table) else one for one in carries]
        self._count()
        outside, self.cost = self.cost, 0
        before, start, body, after = self.block, *map(self.label, ("loop", "body", "done"))
        place = f"%{start}_place"
        dtypes = [one.tensor_type.dtype for one in op.body.inputs[: op.carries]]
        now = [
            one if isinstance(one, Table) else _named(f"%{start}_{number}", one.shape)
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
        with self._within({one.root for one in now if isinstance(one, Table)}):
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
        self._count()
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
        last = [one.now() if isinstance(one, Table) else one for one in now]
        return [*last, _one(place), _one(goes_on)] if isinstance(op, While) else last

    def _element(self, sequence: Value, place: str) -> Value:
        """What a sequence has for a step."""
        if isinstance(sequence, Affine):
            return self._moved(sequence, place)
        if not isinstance(sequence, Table):
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
            self._ranges[found] = bounds
        return _one(found)

    def _following(self, now: Sequence[Value], found: Sequence[Value], dtypes: Sequence[str]) -> list[Value]:
        """The next carries; tables are where the carries were."""
        following: list[Value] = []
        copies: list[tuple[Table, Value]] = []
        for one, value in zip(now, found, strict=False):
            if not isinstance(one, Table):
                following.append(value if isinstance(value, np.ndarray) else self.loaded(self.table(value)))
                continue
            following.append(one)
            is_there = isinstance(value, Table) and (value.root, value.part) == (one.root, one.part)
            if is_there and not value.is_current:
                raise NoCodeError
            if not is_there:
                copies.append((one, value))
        while copies:
            sources = [value.root for _, value in copies if isinstance(value, Table)]
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
        self._count()
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
        self._counted = len(self.code.lines)


def affine(data: np.ndarray[Any, Any]) -> Affine | None:
    """Integers that grow by the same along each axis; None for others."""
    if data.dtype != np.int64 or not data.ndim or data.size < 2:
        return None
    first, last = int(data.flat[0]), int(data.flat[-1])
    if abs(first) + abs(last) >= 1 << 62:
        return None
    starts = (data[(0,) * axis + (slice(0, 2),) + (0,) * (data.ndim - axis - 1)] for axis in range(data.ndim))
    distances = tuple(int(one[-1]) - int(one[0]) for one in starts)
    wanted: np.ndarray[Any, Any] = np.asarray(first, np.int64)
    for axis, distance in enumerate(distances):
        steps = distance * np.arange(data.shape[axis], dtype=np.int64)
        wanted = wanted + steps.reshape(-1, *[1] * (data.ndim - axis - 1))
    if not np.array_equal(data, wanted):
        return None
    return Affine(str(first), (first, first), distances, data.shape)


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


def _one(name: str) -> Numbers:
    found = np.empty((), object)
    found[()] = name
    return found


def _scaled(stride: int | str, chosen: Any) -> int | str:
    if isinstance(stride, int):
        return int(stride * chosen.step)
    if chosen.step != 1:
        raise NoCodeError
    return stride


def _part(lines: LoopLines, node: Apply) -> list[Value] | None:
    array = lines.value(node.inputs[0])
    op = node.op
    assert isinstance(op, Subtensor)
    if isinstance(array, np.ndarray) and all(isinstance(one, Constant) for one in node.inputs[1:]):
        return None
    entries, told = lines.entries(node, 1, array.shape)
    if isinstance(array, Affine | np.ndarray):
        array = lines.own(array, node.inputs[0].tensor_type.dtype)
    if all(isinstance(one, str) for one in entries):
        dtype = node.outputs[0].tensor_type.dtype
        return [_one(_read(lines, array, [str(one) for one in entries], dtype))]
    if isinstance(array, Patched):
        raise NoCodeError
    return [lines.chosen(array, entries, told)]


def _read(lines: LoopLines, array: Value, places: list[str], dtype: str) -> str:
    if isinstance(array, Table):
        return lines.load(array, places)
    before, same = _read(lines, array.array, places, dtype), "true"
    for own, other in zip(array.places, places, strict=True):
        same = lines.code.value(f"and i1 {same}, {computed(lines.code, 'eq', 'int64', own, other)}")
    return lines.code.value(f"select i1 {same}, {KINDS[dtype]} {array.value}, {KINDS[dtype]} {before}")


def _written(lines: LoopLines, node: Apply) -> list[Value] | None:
    op, dtype = node.op, node.inputs[0].tensor_type.dtype
    if type(op) not in (SetSubtensor, IncSubtensor):
        raise NoCodeError
    array, value = lines.value(node.inputs[0]), lines.value(node.inputs[1])
    if isinstance(array, np.ndarray) and all(isinstance(one, Constant) for one in node.inputs[2:]):
        return None
    entries, told = lines.entries(node, 2, array.shape)
    adds = isinstance(op, IncSubtensor)
    is_element = all(isinstance(one, str) for one in entries)
    if node.outputs[0] not in lines.handed and is_element:
        if isinstance(array, Affine | np.ndarray):
            array = lines.own(array, dtype)
        places, number = [str(one) for one in entries], lines.numbers(node.inputs[1]).item()
        if adds:
            number = computed(lines.code, "add", dtype, _read(lines, array, places, dtype), number)
        return [Patched(array, places, number)]
    if isinstance(value, Table) and isinstance(array, Table) and not adds and value.root is array.root:
        part = lines.chosen(array, entries, told)
        is_same = (value.part, value.shape) == (part.part, part.shape)
        if not (is_same and array.has_kept(value)):
            raise NoCodeError
        return [array.now()]
    array = lines.own(array, dtype)
    if not array.is_current:
        raise NoCodeError
    part = lines.chosen(array, entries, told)
    if part.size:
        lines.put(part, value, (lambda a, b: computed(lines.code, "add", dtype, a, b)) if adds else None)
    part.written()
    return [array.now()]


def _shuffled(lines: LoopLines, node: Apply) -> list[Value] | None:
    array, op = lines.value(node.inputs[0]), node.op
    assert isinstance(op, DimShuffle)
    if not isinstance(array, Table):
        return None
    shape = [1 if axis == "x" else array.shape[int(axis)] for axis in op.order]
    strides = [0 if axis == "x" else array.strides[int(axis)] for axis in op.order]
    return [array.chosen(("shuffled", op.order), array.pointer, shape, strides)]


def _filled(lines: LoopLines, node: Apply) -> list[Value] | None:
    shape = tuple(node.outputs[0].tensor_type.shape)
    if None in shape or not prod(size or 0 for size in shape):
        raise NoCodeError
    sizes = tuple(size for size in shape if size is not None)
    if prod(sizes) <= MOST_NUMBERS and node.outputs[0] not in lines.handed:
        return None
    table = lines.fresh(sizes, node.outputs[0].tensor_type.dtype)
    lines.put(table, lines.value(node.inputs[0]))
    return [table.written()]


def _size(lines: LoopLines, node: Apply) -> list[Value]:
    assert isinstance(node.op, ShapeI)
    return [_one(str(lines.value(node.inputs[0]).shape[node.op.axis]))]


def _asserted(lines: LoopLines, node: Apply) -> list[Value]:
    for one in node.inputs[1:]:
        for bit in lines.numbers(one).flat:
            lines.require(bit)
    return [lines.value(node.inputs[0])]


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
    Subtensor: _part,
    PartWrite: _written,
    DimShuffle: _shuffled,
    Alloc: _filled,
    ShapeI: _size,
    Assert: _asserted,
}
"""What writes the lines of ops that are not of numbers alone."""
