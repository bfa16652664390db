"""Loops that write their results past the caches, as source text."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from numba.core import types

from esat.codegen import streaming
from esat.codegen.loop_ir import Loop, Store, walk
from esat.codegen.prefetching import loads_along, read_before
from esat.codegen.printing.prefetches import print_next_row, print_pages
from esat.codegen.printing.scalars import Names, size_name
from esat.codegen.printing.staggered import RowsPrinter, Stages
from esat.codegen.streaming import BUFFER, stores_along


class StreamPrinter(RowsPrinter):
    """Prints loops; those that store streamed outputs fill a buffer and write that."""

    _streamed: tuple[int, ...] = ()
    _around: Loop | None = None

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
        if not set(stores_along(loop)).intersection(self._streamed):
            around, self._around = self._around, loop
            super().loop(loop, names)
            self._around = around
            return
        with ExitStack() as stack:
            for axis in loop.axes[:-1]:
                stack.enter_context(self.source.block(f"for i{axis} in {self.places(axis, names)}"))
            self._row(loop, names)

    def stages(self, loop: Loop) -> Stages | None:
        """The stages of a loop that is to be printed in turns: rows that are streamed are long."""
        return None if self._streamed else super().stages(loop)

    def _row(self, loop: Loop, names: Names) -> None:
        """The innermost loop, in parts as long as a buffer, the second of which starts with a line."""
        axis = loop.axes[-1]
        streamed = [
            statement
            for statement in loop.body
            if isinstance(statement, Store) and statement.array in self._streamed
        ]
        sizes = [np.dtype(self.scalars.kernel.arrays[store.array].dtype).itemsize for store in streamed]
        length = BUFFER // max(sizes)
        begin, end = names.bounds.get(axis, ("0", size_name(axis)))
        past = self.source.use("past_boundary", streaming.past_boundary)
        uintp = self.source.use("uintp", types.uintp)
        row = self._place(streamed[0], names.with_position(axis, begin))
        self.source.line(f"first{axis} = {begin} - {past}({row}, {length})")
        with self.source.block(f"for part{axis} in range(({end} - first{axis} + {length - 1}) // {length})"):
            self.source.line(f"next{axis} = first{axis} + {length}")
            self.source.line(f"start = {uintp}(max(first{axis}, {begin}))")
            self.source.line(f"width = {uintp}(min(next{axis}, {end}) - max(first{axis}, {begin}))")
            self._announce(loop, streamed[0], names.with_position(axis, "start"))
            with self.source.block("for place in range(width)"):
                inside = names.with_position(axis, "start + place")
                for statement in loop.body:
                    if statement in streamed:
                        self.source.line(
                            f"lines{statement.array}[place] = {inside.value(statement.operand)}",
                            statement.comment,
                        )
                    else:
                        self.block([statement], inside, loop, flat=True)
            write = self.source.use("stream", streaming.stream)
            for store in streamed:
                place = self._place(store, names.with_position(axis, "start"))
                self.source.line(f"{write}({place}, lines{store.array}, width)")
            self.source.line(f"first{axis} = next{axis}")

    def _announce(self, loop: Loop, store: Store, names: Names) -> None:
        """Fetch what the loop has yet to read from memory; of a row that was read before, the one below."""
        loads = loads_along(loop, [axis for axis in store.index if axis is not None])
        again = [load for load in loads if self._around and read_before(load, loop, self._around)]
        for load in again:
            print_next_row(load, self.scalars, names, "width")
        print_pages([load for load in loads if load not in again], self.scalars, names, "width")

    def _place(self, store: Store, names: Names) -> str:
        """An output and the places at which it is stored, as two arguments."""
        places = "".join(f"{place}, " for place in self.scalars.places(store.index, names))
        return f"{self.scalars.indexed_name(store.array)}, ({places})"
