"""What stands for the variables of a step in LLVM's text: numbers in registers, tables in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from esat.base.records import record
from esat.codegen.matmul.straight_line import StraightLine
from esat.codegen.small_loops.number_lines import KINDS, NoCodeError, cost_of
from esat.codegen.small_loops.step_lines import MOST_NUMBERS, Numbers, as_numbers
from esat.codegen.small_loops.stored_tables import Part, Root, StoredTable, contiguous
from esat.graph import Apply, Constant, Variable
from esat.ops.index.entries import OPERAND, Entry, Slice

LARGEST = 1 << 62
"""Integers from which sums may not be those of 64 bits."""
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
"""What stands for a variable: :data:`Numbers`, :class:`StoredTable`, :class:`Affine` or :class:`Patched`."""


class ValueLines:
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
        Numbers that lines read at ``%constant0`` and so on; shapes and dtypes of ``%scratch0`` and so on.
    requires
        How often something has been required.
    cost
        About how many lines take as long, but for loops within that ask for signals.
    counted
        The number of lines of which that is.
    ranges
        Integers of 64 bits, and between which bounds they are.
    changeable
        The memory that the step may write to.
    handed
        Arrays that are made in the place of others, see :func:`handed_on`.
    """

    def __init__(self) -> None:
        self.code = StraightLine(1)
        self.values: dict[Variable, Value] = {}
        self.block = "entry"
        self.constants: list[np.ndarray[Any, Any]] = []
        self.scratch: list[tuple[tuple[int, ...], str]] = []
        self.requires = 0
        self.cost = self.counted = 0
        self.ranges: dict[str, tuple[int, int]] = {}
        self.changeable: set[Root] = set()
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
            self.requires += 1
            fine = self.label("fine")
            self.line(f"br i1 {bit}, label %{fine}, label %refused")
            self.begin(fine)

    def count(self) -> None:
        """Add the cost of new lines."""
        new = self.code.lines[self.counted :]
        self.cost += sum(map(cost_of, new))
        self.counted = len(self.code.lines)

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

    def table(self, value: Value) -> StoredTable:
        """What is in memory, or is put there."""
        if isinstance(value, StoredTable):
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

    def _stored(self, data: np.ndarray[Any, Any]) -> StoredTable:
        """Numbers that are known, in memory."""
        self.constants.append(np.ascontiguousarray(data))
        shape, dtype = data.shape, str(data.dtype)
        name = f"%constant{len(self.constants) - 1}"
        return StoredTable(Root(dtype), 0, name, shape, contiguous(shape, BYTES[dtype]))

    def fresh(self, shape: tuple[int, ...], dtype: str) -> StoredTable:
        """Memory of this step's own."""
        self.scratch.append((shape, dtype))
        root = Root(dtype)
        self.changeable.add(root)
        return StoredTable(
            root, 0, f"%scratch{len(self.scratch) - 1}", shape, contiguous(shape, BYTES[dtype])
        )

    def loaded(self, table: StoredTable) -> Numbers:
        """The numbers of a small table."""
        if not 1 <= table.size <= MOST_NUMBERS:
            raise NoCodeError
        found = np.empty(table.shape, object)
        for place in np.ndindex(table.shape):
            found[place] = self.load(table, list(map(str, place)))
        return found

    def address(self, table: StoredTable, places: Sequence[str]) -> str:
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

    def load(self, table: StoredTable, places: Sequence[str]) -> str:
        """An element. Raises NoCodeError where it has been written over."""
        if not table.is_current:
            raise NoCodeError
        dtype, pointer = table.root.dtype, self.address(table, places)
        if dtype == "bool":
            byte = self.code.value(f"load i8, ptr {pointer}, align 1")
            return self.code.value(f"icmp ne i8 {byte}, 0")
        return self.code.value(f"load {KINDS[dtype]}, ptr {pointer}, align {BYTES[dtype]}")

    def store(self, table: StoredTable, places: Sequence[str], value: str) -> None:
        """Write an element; the version of the table is the caller's."""
        dtype, pointer = table.root.dtype, self.address(table, places)
        if dtype == "bool":
            byte = self.code.value(f"zext i1 {value} to i8")
            self.line(f"store i8 {byte}, ptr {pointer}, align 1")
        else:
            self.line(f"store {KINDS[dtype]} {value}, ptr {pointer}, align {BYTES[dtype]}")

    def put(self, table: StoredTable, value: Value, combine: Callable[[str, str], str] | None = None) -> None:
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
        self.count()
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
        self.count()
        self.cost = cost + shape[0] * (self.cost - cost)
        self.begin(after)

    def own(self, value: Value, dtype: str) -> StoredTable:
        """A table that the step may change: what is its own, or a copy."""
        if isinstance(value, StoredTable) and value.root in self.changeable:
            return value
        if isinstance(value, Patched) or not prod(value.shape):
            raise NoCodeError
        copy = self.fresh(value.shape, dtype)
        self.put(copy, value)
        return copy.written()

    def bounds(self, number: str) -> tuple[int, int] | None:
        """Between which bounds an integer of 64 bits is known to be."""
        if number.lstrip("-").isdigit():
            return int(number), int(number)
        return self.ranges.get(number)

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

    def chosen(self, table: StoredTable, entries: Sequence[str | range], told: Part) -> StoredTable:
        """A part of a table."""
        firsts = [one if isinstance(one, str) else str(one.start if one else 0) for one in entries]
        kept = [axis for axis, one in enumerate(entries) if isinstance(one, range)]
        shape = [len(entries[axis]) for axis in kept]
        strides = [_scaled(table.strides[axis], entries[axis]) for axis in kept]
        return table.chosen(told, self.address(table, firsts), shape, strides)


def affine(data: np.ndarray[Any, Any]) -> Affine | None:
    """Integers that grow by the same along each axis; None for others."""
    if data.dtype != np.int64 or not data.ndim or data.size < 2:
        return None
    first, last = int(data.flat[0]), int(data.flat[-1])
    if abs(first) + abs(last) >= LARGEST:
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


def one_number(name: str) -> Numbers:
    """A scalar of this name."""
    found = np.empty((), object)
    found[()] = name
    return found


def _scaled(stride: int | str, chosen: Any) -> int | str:
    if isinstance(stride, int):
        return int(stride * chosen.step)
    if chosen.step != 1:
        raise NoCodeError
    return stride
