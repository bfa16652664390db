"""Loops that write their results past the caches, as source text.

Many results are written row by row from something that all rows have in common: a layer normalisation from a
scale and a shift for each column. Long rows push that out of the first-level cache before the next row needs
it. So such rows are written in groups, half a kilobyte of each in turn::

    gather from row 0; gather from row 1; ...
    store the first part of row 0; the first part of row 1; ...; the second part of row 0; ...

What rows have in common then comes from the second-level cache once for a group. Meanwhile that has the
bandwidth to take in the rows of the next group, which the loop prefetches. On some processors rows one by
one, prefetched otherwise (:mod:`esat.codegen.llvm.prefetching`), are faster: a target's tuning says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numba.core import types

from esat.base.records import record
from esat.codegen.ground.memory_access import LINE
from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import loads_along, read_before, stores_along
from esat.codegen.kernel.loop_ir import (
    Compute,
    Convert,
    Literal,
    Load,
    Loop,
    Statement,
    Store,
    Tile,
    operands_of,
    walk,
)
from esat.codegen.kernel.moments import Moments, accumulator_of, moments_of_row
from esat.codegen.llvm import nontemporal as streaming
from esat.codegen.llvm import prefetching, views
from esat.codegen.llvm.nontemporal import BUFFER
from esat.codegen.llvm.prefetching import ROWS_AHEAD
from esat.codegen.printing.loops import LoopPrinter, is_float_sum
from esat.codegen.printing.print_moments import print_row, print_squares
from esat.codegen.printing.print_prefetches import print_ahead, print_next_row
from esat.codegen.printing.scalars import Names, size_name


@record(frozen=True)
class Stages:
    """The body of a loop over rows in three: a loop that reduces, what lies between, and the last loop.

    Attributes
    ----------
    first, middle
        What comes before the last loop: up to the first loop, and behind it.
    last
        The last loop and what follows it.
    """

    first: tuple[Statement, ...]
    middle: tuple[Statement, ...]
    last: tuple[Statement, ...]

    @property
    def waiting(self) -> Loop:
        """The last loop."""
        loop = self.last[0]
        assert isinstance(loop, Loop)
        return loop


def grouped_rows(loop: Loop, streamed: Sequence[int], target: Target) -> tuple[Loop, Stages] | None:
    """A loop over rows that is to be printed in groups, and its stages; None for other loops.

    Where nothing is reduced along rows, only the last stage has a loop.
    """
    if stores_along(loop) and len(loop.axes) > 1:
        loop = Loop(loop.axes[:-1], (replace(loop, axes=loop.axes[-1:]),))
    stages = _stages_of(loop)
    if stages is None or len(stages.waiting.axes) > 1:
        return None
    row, column = loop.axes[-1], stages.waiting.axes[-1]
    loads = [one.index for one in stages.waiting.body if isinstance(one, Load)]
    is_shared = any(index and index[-1] == column and row not in index for index in loads)
    if not target.tuning.groups_rows and any(index[-2:] == (row, column) for index in loads):
        return None
    return (loop, stages) if is_shared and set(stores_along(stages.waiting)).intersection(streamed) else None


def _stages_of(loop: Loop) -> Stages | None:
    """The stages of a loop over rows whose last loop stores; None for other loops.

    Each row has its own places in all that the loop stores, so rows may be written in any order, and what is
    loaded of them was stored by their own stages.
    """
    places = [place for place, inner in enumerate(loop.body) if isinstance(inner, Loop)]
    inside = tuple(walk(loop.body))
    if (
        not places
        or loop.accumulators
        or any(isinstance(inner, Tile) for inner in inside)
        or any(isinstance(inner, Store) and loop.axes[-1] not in inner.index for inner in inside)
    ):
        return None
    if len(places) == 1:
        return Stages(loop.body[: places[0]], (), loop.body[places[0] :])
    first, last = loop.body[places[0]], loop.body[places[-1]]
    assert isinstance(first, Loop)
    assert isinstance(last, Loop)
    if (
        not first.accumulators
        or last.accumulators
        or any(isinstance(inner, Loop) for inner in (*first.body, *last.body))
    ):
        return None
    begin, end = places[0] + 1, places[-1]
    return Stages(loop.body[:begin], loop.body[begin:end], loop.body[end:])


class StreamPrinter(LoopPrinter):
    """Prints loops; those that store streamed outputs fill a buffer and write that."""

    _streamed: tuple[int, ...] = ()
    _around: Loop | None = None
    moments: tuple[Moments, ...] = ()

    def open_streams(self, outputs: tuple[int, ...]) -> None:
        """Print the buffers of those outputs that the kernel stores; they are streamed from now on."""
        loops = [statement for statement in walk(self.scalars.kernel.body) if isinstance(statement, Loop)]
        stored = {array for loop in loops for array in stores_along(loop)}
        self._streamed = tuple(array for array in outputs if array in stored)
        for array in self._streamed:
            dtype = self.scalars.kernel.arrays[array].dtype
            new = self.source.use("line_buffer", streaming.line_buffer)
            self.source.line(f"lines{array} = {new}({self.source.expression(dtype, dtype)})")

    def end_streams(self) -> None:
        """Print what makes streamed results visible to other threads, if there are any."""
        if self._streamed:
            self.source.line(f"{self.source.use('end_of_stream', streaming.end_of_stream)}()")

    def loop(self, loop: Loop, names: Names) -> None:
        """Print a loop and what follows from its accumulators."""
        grouped = grouped_rows(loop, self._streamed, self.scalars.target)
        if grouped is None:
            self._one_by_one(loop, names)
            return
        rows, stages = grouped
        with self.source.block(f"if {self._is_better_alone(rows, stages)}"):
            self._one_by_one(loop, names)
        with self.source.block("else"), ExitStack() as stack:
            for axis in rows.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
            self._groups(rows, stages, names)

    def _one_by_one(self, loop: Loop, names: Names) -> None:
        if not set(stores_along(loop)).intersection(self._streamed):
            around = self._around
            if any(isinstance(inner, Loop) for inner in loop.body):
                self._around = loop
            super().loop(loop, names)
            self._around = around
            return
        with ExitStack() as stack:
            for axis in loop.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
            self._row(loop, names)

    # ---- a row

    def _row(self, loop: Loop, names: Names) -> None:
        """The innermost loop, in parts as long as a buffer, the second of which starts with a line."""
        axis, length = loop.axes[-1], self._length(loop)
        begin, end = names.bounds.get(axis, ("0", size_name(axis)))
        self._prefetch_end(loop, names)
        self.source.line(f"first{axis} = {begin} - {self._past(loop, names, length)}")
        with self.source.block(f"for part{axis} in range(({end} - first{axis} + {length - 1}) // {length})"):
            self.source.line(f"next{axis} = first{axis} + {length}")
            self.source.line(f"start = {self._uintp()}(max(first{axis}, {begin}))")
            self.source.line(f"width = {self._uintp()}(min(next{axis}, {end}) - max(first{axis}, {begin}))")
            # Where vectors have 64 bytes, that was measured for groups only.
            for count in self._counts(length) if self.scalars.target.vector_bytes < LINE else ["width"]:
                self._prefetch(loop, names, count)
                self._through_buffers(loop, names, count)
            self.source.line(f"first{axis} = next{axis}")

    def _counts(self, length: int) -> Iterator[str]:
        """Open a block for parts that are as long as a buffer, and one for others; how long they are.

        Loops as short as these take a fifth longer than the code of a whole part, which has no jumps in it.
        """
        for header, count in ((f"if width == {length}", str(length)), ("else", "width")):
            with self.source.block(header):
                yield count

    def _prefetch(self, loop: Loop, names: Names, count: str) -> None:
        """Fetch what the loop has yet to read from memory; of a row that was read before, the one below."""
        inside = names.with_position(loop.axes[-1], "start")
        loads = self._loads(loop)
        again = [load for load in loads if self._around and read_before(load, loop, self._around)]
        if again:
            near = not self.scalars.target.tuning.groups_rows
            distance = self._rows_ahead(loop, again) if near else "1"
            print_next_row(again, self.scalars, inside, count, distance, near)
        print_ahead([load for load in loads if load not in again], self.scalars, inside, count)

    def _rows_ahead(self, loop: Loop, loads: Sequence[Load]) -> str:
        """How far below the row lies that is fetched while this one is written: further if rows are short."""
        width = max(np.dtype(self.scalars.kernel.arrays[load.array].dtype).itemsize for load in loads)
        return f"1 + {ROWS_AHEAD // width} // {size_name(loop.axes[-1])}"

    def look_ahead(self, loop: Loop, names: Names, length: int) -> None:
        """Fetch a part of the row below, where loops that take sums share that among them."""
        beside = self._around.body if self._around else ()
        for sums in (self._sums_before(one) for one in beside if isinstance(one, Loop)):
            if loop in sums:
                axis, share = loop.axes[-1], length // len(sums)
                place = f"{self._uintp()}(first{axis} + {sums.index(loop) * share})"
                ahead = names.with_position(axis, place)
                print_next_row(loads_along(loop, ()), self.scalars, ahead, str(share), near=True)
                return

    def _sums_before(self, loop: Loop) -> list[Loop]:
        """The loops that take sums of the row that a loop writes, where memory has to be busy meanwhile."""
        around = self._around
        if around is None or self.scalars.target.tuning.groups_rows or not self._stores(loop):
            return []
        again = [load for load in self._loads(loop) if read_before(load, loop, around)]
        return [
            other
            for other in around.body[: around.body.index(loop)]
            if isinstance(other, Loop)
            and any(is_float_sum(accumulator) for accumulator in other.accumulators)
            and [(load.array, load.index) for load in again]
            == [(load.array, load.index) for load in loads_along(other, ())]
        ]

    def _prefetch_end(self, loop: Loop, names: Names) -> None:
        """Fetch the line in which a row ends: it is stored in part, and so read, while what follows waits."""
        axis = loop.axes[-1]
        last = names.with_position(axis, f"{names.bounds.get(axis, ('0', size_name(axis)))[1]} - 1")
        prefetch = self.source.use("prefetch_lines", prefetching.prefetch_lines)
        for store in self._stores(loop):
            self.source.line(f"{prefetch}({self._place(store, last)}, 1)")

    def _through_buffers(self, loop: Loop, names: Names, count: str) -> None:
        """What goes through the buffers at a time: ``count`` places from ``start`` on."""
        streamed, axis = self._stores(loop), loop.axes[-1]
        places = count if count == "width" else f"{self._uintp()}({count})"
        with self.source.block(f"for place in range({places})"):
            inside = names.with_position(axis, "start + place")
            for statement in loop.body:
                if statement in streamed:
                    text = f"lines{statement.array}[place] = {inside.value(statement.operand)}"
                    self.source.line(text, statement.comment)
                else:
                    self.block([statement], inside, loop, flat=True)
        write = self.source.use("stream", streaming.stream)
        for store in streamed:
            place = self._place(store, names.with_position(axis, "start"))
            self.source.line(f"{write}({place}, lines{store.array}, {count})")

    # ---- groups of rows

    def _groups(self, loop: Loop, stages: Stages, names: Names) -> None:
        """Look at the rows of a group one after another, and then write them in turns."""
        row = loop.axes[-1]
        begin, end = names.bounds.get(row, ("0", size_name(row)))
        kept = self._kept(stages)
        for value, dtype in kept.items():
            new = self.source.use("scratch", views.scratch)
            self.source.line(f"kept{value} = {new}({self.source.expression(dtype, dtype)})")
        self.source.line(f"group = {self._group(loop, stages)}")
        with self.source.block(f"for low in range({begin}, {end}, group)"):
            self.source.line(f"rows = {self._uintp()}(min(group, {end} - low))")
            if stages.first:
                with self.source.block("for turn in range(rows)"):
                    self.source.line(f"i{row} = {self._uintp()}(low) + turn")
                    self._look_at((*stages.first, *stages.middle), names, loop)
                    for value in kept:
                        self.source.line(f"kept{value}[turn] = v{value}")
            with self.source.block("for turn in range(rows)"):
                self.source.line(f"i{row} = {self._uintp()}(low) + turn")
                self._prefetch_end(stages.waiting, names)
            column, length = stages.waiting.axes[-1], self._length(stages.waiting)
            first, last = names.bounds.get(column, ("0", size_name(column)))
            width = last if first == "0" else f"{last} - {first}"
            parts = f"range(({width} + {2 * length - 2}) // {length})"
            with self.source.block(f"for part in {parts}"), self.source.block("for turn in range(rows)"):
                self._turn(loop, stages, kept, names)
            if stages.last[1:]:
                with self.source.block("for turn in range(rows)"):
                    self._recall(row, kept)
                    self.block(stages.last[1:], names, loop, flat=False)

    def _look_at(self, statements: Sequence[Statement], names: Names, loop: Loop) -> None:
        """What is gathered from a row: moments in one pass, or as written where these are not finite."""
        moments = moments_of_row(statements, self.scalars.target)
        self.moments += moments
        for statement in statements:
            pair = next((one for one in moments if statement in one.loops), None)
            with ExitStack() as stack:
                if pair is not None:
                    gathered = pair.total if statement == pair.loops[0] else pair.squares
                    if gathered is pair.total:
                        print_row(pair, self.scalars)
                    else:
                        print_squares(pair, self.source)
                    finite = self.source.expression("isfinite", pair.dtype)
                    value = accumulator_of(gathered).value
                    stack.enter_context(self.source.block(f"if not {finite}(v{value})"))
                self.block([statement], names, loop, flat=False)

    def _kept(self, stages: Stages) -> dict[int, str]:
        """What the last stage reads of values that others define outside of their loops, and their dtypes."""
        read = {value for inner in walk(stages.last) for value in operands_of(inner)}
        defined: dict[int, str] = {}
        for statement in (*stages.first, *stages.middle):
            if isinstance(statement, Loop):
                defined |= {one.value: one.result_dtype for one in statement.accumulators}
            elif isinstance(statement, Load):
                defined[statement.value] = self.scalars.kernel.arrays[statement.array].dtype
            elif isinstance(statement, Literal | Compute | Convert):
                defined[statement.value] = statement.dtype
        return {value: dtype for value, dtype in defined.items() if value in read}

    def _recall(self, row: int, kept: Iterable[int]) -> None:
        self.source.line(f"i{row} = {self._uintp()}(low) + turn")
        for value in kept:
            self.source.line(f"v{value} = kept{value}[turn]")

    def _turn(self, loop: Loop, stages: Stages, kept: Iterable[int], names: Names) -> None:
        """One part of one row; the first and the last one may be empty, as rows begin anywhere in a line."""
        waiting, row = stages.waiting, loop.axes[-1]
        column, length = waiting.axes[-1], self._length(waiting)
        begin, end = names.bounds.get(column, ("0", size_name(column)))
        self._recall(row, kept)
        before = "" if begin == "0" else f"{begin} + "
        self.source.line(f"first = {before}part * {length} - {self._past(waiting, names, length)}")
        self.source.line(f"start = {self._uintp()}(max(first, {begin}))")
        self.source.line(f"stop = min(first + {length}, {end})")
        self.source.line(f"width = {self._uintp()}(max(0, stop - max(first, {begin})))")
        for count in self._counts(length):
            self._prefetch_group(waiting, row, names, count)
            self._through_buffers(waiting, names, count)

    def _prefetch_group(self, waiting: Loop, row: int, names: Names, count: str) -> None:
        """Fetch the same part of a row of the next group."""
        inside = names.with_position(waiting.axes[-1], "start")
        loads = [load for load in self._loads(waiting) if load.index[-2:-1] == (row,)]
        print_next_row(loads, self.scalars, inside, count, "group")

    def _is_better_alone(self, loop: Loop, stages: Stages) -> str:
        """Whether rows go one by one: the first-level cache holds one of them and what it has in common with
        others, or the second-level cache does not hold two of them."""
        size, (own, common) = size_name(stages.waiting.axes[-1]), self._widths(loop, stages)
        target = self.scalars.target
        near = f"{size} * {own + common} <= {target.near_bytes}"
        return f"{near} or {size} * {2 * own} > {target.tuning.group_bytes}" if own else near

    def _group(self, loop: Loop, stages: Stages) -> str:
        """How many rows make a group: what is loaded from these stays in the second-level cache."""
        own = self._widths(loop, stages)[0]
        tuning, size = self.scalars.target.tuning, size_name(stages.waiting.axes[-1])
        most = tuning.rows_in_group
        return f"min({most}, {tuning.group_bytes // own} // {size})" if own else str(most)

    def _widths(self, loop: Loop, stages: Stages) -> tuple[int, int]:
        """Bytes loaded for each place along a row: of the row itself, and of what it has in common."""
        row, column = loop.axes[-1], stages.waiting.axes[-1]
        loads = [one for one in walk(loop.body) if isinstance(one, Load) and column in one.index]
        own = {load.array for load in loads if row in load.index}
        return self._bytes_along(own), self._bytes_along({load.array for load in loads} - own)

    def _bytes_along(self, arrays: Iterable[int]) -> int:
        """Bytes of one element of each array."""
        return sum(np.dtype(self.scalars.kernel.arrays[array].dtype).itemsize for array in arrays)

    # ---- what they share

    def _stores(self, loop: Loop) -> list[Store]:
        """The stores of an innermost loop that are streamed."""
        return [one for one in loop.body if isinstance(one, Store) and one.array in self._streamed]

    def _length(self, loop: Loop) -> int:
        """Elements of a part."""
        arrays = self.scalars.kernel.arrays
        return BUFFER // max(np.dtype(arrays[store.array].dtype).itemsize for store in self._stores(loop))

    def _past(self, loop: Loop, names: Names, length: int) -> str:
        """How far the first place of the row lies behind where a part of it would begin."""
        axis = loop.axes[-1]
        begin = names.bounds.get(axis, ("0", ""))[0]
        place = self._place(self._stores(loop)[0], names.with_position(axis, begin))
        return f"{self.source.use('past_boundary', streaming.past_boundary)}({place}, {length})"

    def _loads(self, loop: Loop) -> list[Load]:
        """What runs along memory and through all that is stored."""
        return loads_along(loop, [axis for axis in self._stores(loop)[0].index if axis is not None])

    def _uintp(self) -> str:
        return self.source.use("uintp", types.uintp)

    def _place(self, store: Store, names: Names) -> str:
        """An output and the places at which it is stored, as two arguments."""
        places = "".join(f"{place}, " for place in self.scalars.places(store.index, names))
        return f"{self.scalars.indexed_name(store.array)}, ({places})"
