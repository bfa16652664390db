"""Loops over rows that gather along each: a few threads, a warp or a block a row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field

import numpy as np

from esat.base.records import record
from esat.codegen.kernel.loop_ir import Index, Kernel, Load, Loop, Store
from esat.gpu.kernel_text.launches import WARP
from esat.gpu.printing.body import Position
from esat.gpu.printing.flat import BLOCK, MOST_ROWS
from esat.gpu.printing.gathering import Gathering
from esat.gpu.printing.nests import Nest

ROW_CLASSES = (8, 32, 128, 512, 1024, 2048, 4096, 8192, 10240, 16384)
"""Elements up to which a kernel is printed for rows that it holds; each loop reads longer ones again."""
ROW_THREADS = ((1, 16), (8, 16), (32, 16), (128, 32), (256, 32), (512, 40))
"""Threads that share a row, and how many words of 4 bytes each may hold in registers."""
UNHELD_ROW_THREADS = ((1, 16), (8, 32), (32, 128), (128, 128))
"""The same where nothing is held: how many words each may read. Fewer threads wait less for each other."""
LONG_ROW_THREADS = 1024
"""Threads that share a row too long to be held: few rows at a time, which the last-level cache still has when
they are read again."""


@record(frozen=True)
class RowPlan:
    """Who holds what of a row.

    Attributes
    ----------
    threads
        How many share it: neighbours within a warp, or all of a block.
    parts
        Vectors that each holds; 0 where the row is read again by each loop.
    held
        Arrays and indices of what loops that follow need again -> the name of what holds it.
    """

    threads: int
    parts: int
    held: dict[tuple[int, Index], str] = field(default_factory=dict)


def plan_rows(kernel: Kernel, nest: Nest, lanes: int, longest: int) -> RowPlan:
    """How rows of up to ``longest`` elements are shared, 0 for any number."""
    plain = all(one.axes == (nest.inner,) for one in nest.body if isinstance(one, Loop))
    again = _read_again(nest) if plain else {}
    words = _words_held(kernel, nest, again)
    table = ROW_THREADS if words else UNHELD_ROW_THREADS
    for threads, held in table if longest else ():
        parts = -(-longest // (threads * lanes))
        if parts * lanes * max(words, 1) <= held:
            return RowPlan(threads, parts, again)
    return RowPlan(LONG_ROW_THREADS, 0)


def _words_held(kernel: Kernel, nest: Nest, again: Collection[tuple[int, Index]]) -> int:
    """Words of 4 bytes that are held for each element from one loop to the next, at most."""
    uses: dict[tuple[int, Index], list[int]] = {place: [] for place in again}
    loops = [one for one in nest.body if isinstance(one, Loop)]
    for number, loop in enumerate(loops):
        for one in loop.body:
            if isinstance(one, Load | Store) and (one.array, one.index) in uses:
                uses[one.array, one.index].append(number)
    words = {place: -(-np.dtype(kernel.arrays[place[0]].dtype).itemsize // 4) for place in again}
    return max(
        sum(words[place] for place, used in uses.items() if min(used) < number <= max(used))
        for number in range(len(loops) + 1)
    )


def _read_again(nest: Nest) -> dict[tuple[int, Index], str]:
    """What several loops read along the row, or one leaves in an output for those that follow."""
    seen: set[tuple[int, Index]] = set()
    again: dict[tuple[int, Index], str] = {}
    for loop in nest.body:
        for one in loop.body if isinstance(loop, Loop) else ():
            if not isinstance(one, Load | Store) or nest.inner not in one.index:
                continue
            place = one.array, one.index
            if isinstance(one, Store):
                if one.kept:
                    again[place] = f"kept{one.array}"
                seen.discard(place)
            elif place in seen and place not in again:
                again[place] = f"row{one.array}_{len(again)}"
            seen.add(place)
    return again


class Rows(Gathering):
    """The body of a kernel over rows.

    Parameters
    ----------
    across
        Rows of a block that are neighbours along the last of several axes, at most: a power of two.
    """

    def __init__(
        self, kernel: Kernel, nest: Nest, lanes: int, strided: bool, plan: RowPlan, across: int
    ) -> None:
        super().__init__(kernel, nest.inner, lanes, strided)
        self.across = across
        self.nest = nest
        self.plan = plan
        self.filled: set[tuple[int, Index]] = set()

    def run(self) -> tuple[int, str]:
        """The lines; threads of a block and the grid."""
        source, nest, threads = self.source, self.nest, self.plan.threads
        if threads <= WARP:
            source.line(f"tid = cuda.threadIdx.x % {threads}")
            several = len(nest.axes) > 1
            grid = self._small_rows_of_several_axes() if several else self._small_rows()
            position = {axis: f"i{axis}" for axis in nest.axes}
        else:
            source.line("tid = int64(cuda.threadIdx.x)")
            position = self.split(nest.axes, "int64(cuda.blockIdx.x)")
            grid = self._count(nest.axes)
        for one in nest.before:
            self.definition(one, position)
        for statement in nest.body:
            if isinstance(statement, Loop):
                self._shared_loop(statement, position)
            elif isinstance(statement, Store):
                with source.block("if tid == 0 and active" if threads <= WARP else "if tid == 0"):
                    self.store(statement, position)
            else:
                self.sequence((statement,), position)
        return BLOCK if threads <= WARP else threads, grid

    @staticmethod
    def _count(axes: Sequence[int]) -> str:
        return " * ".join(f"n{axis}" for axis in axes) or "1"

    def _small_rows(self) -> str:
        """The lines that say which row a thread has, of those of its block; the grid."""
        source, threads, rows = self.source, self.plan.threads, self._count(self.nest.axes)
        source.line(f"row = int64(cuda.blockIdx.x) * {BLOCK // threads} + cuda.threadIdx.x // {threads}")
        # Threads past the last row take part in the exchanges of their warp, and in nothing else.
        source.line(f"active = row < {rows}")
        self.split(self.nest.axes, f"min(row, {rows} - 1)")
        return f"-(-{rows} // {BLOCK // threads})"

    def _small_rows_of_several_axes(self) -> str:
        """The same for rows along several axes, told without a division where there are two."""
        source, threads, (*outer, last) = self.source, self.plan.threads, self.nest.axes
        across = min(self.across, BLOCK // threads)
        down = BLOCK // threads // across
        source.line(f"place = cuda.threadIdx.x // {threads}")
        source.line(f"column = int64(cuda.blockIdx.x) * {across} + place % {across}")
        line = f"(int64(cuda.blockIdx.z) * {MOST_ROWS} + cuda.blockIdx.y)"
        source.line(f"row = {line} * {down} + place // {across}")
        rows = self._count(outer)
        source.line(f"active = column < n{last} and row < {rows}")
        source.line(f"i{last} = min(column, n{last} - 1)")
        self.split(outer, f"min(row, {rows} - 1)")
        blocks = f"-(-({rows}) // {down})"
        return f"(-(-n{last} // {across}), min({blocks}, {MOST_ROWS}), -(-({blocks}) // {MOST_ROWS}))"

    def _shared_loop(self, loop: Loop, position: Position) -> None:
        for accumulator in loop.accumulators:
            self.start(accumulator)
        if len(loop.axes) > 1:
            self._along_several(loop, position)
        else:
            self._along(loop, position)
        self.reduce(loop.accumulators, self.plan.threads, "tid")

    def _along_several(self, loop: Loop, position: Position) -> None:
        """A loop along several axes: threads share their places as if these were one row."""
        source, lanes, threads = self.source, self.lanes, self.plan.threads
        inside = f"unit < {self.units(loop.axes, lanes)}" + (" and active" if threads <= WARP else "")
        source.line("unit = int64(tid)")
        with source.block(f"while {inside}"):
            self.elements(loop.body, {**position, **self.split(loop.axes, "unit", lanes)}, lanes)
            source.line(f"unit += {threads}")

    def _along(self, loop: Loop, position: Position) -> None:
        """A loop along rows, which are held or read again."""
        source, lanes, threads, parts = self.source, self.lanes, self.plan.threads, self.plan.parts
        (inner,) = loop.axes
        here = {**position, inner: "j"}
        step = f" * {lanes}" if lanes > 1 else ""
        inside = f"j < n{inner}" + (" and active" if threads <= WARP else "")
        if not parts or inner != self.nest.inner:
            source.line(f"j = int64(tid){step}")
            with source.block(f"while {inside}"):
                self.elements(loop.body, here, lanes)
                source.line(f"j += {threads * lanes}")
            return
        with source.block(f"for part in range({parts})"):
            source.line(f"j = (tid + int64(part) * {threads}){step}")
            with source.block(f"if {inside}"):
                cached, kept = self._held(loop, here)
                self.elements(loop.body, here, lanes, cached, kept)

    def _held(self, loop: Loop, here: Position) -> tuple[dict[int, str], dict[int, str]]:
        """Read what is not held yet; the text of held elements by values, and by arrays stored to."""
        lanes, size = self.lanes, self.plan.parts * self.lanes
        first, lane = (f"part * {lanes} + ", "lane") if lanes > 1 else ("part", "")
        cached: dict[int, str] = {}
        kept: dict[int, str] = {}
        for one in loop.body:
            if not isinstance(one, Load | Store):
                continue
            name = self.plan.held.get((one.array, one.index))
            if name is None:
                continue
            if isinstance(one, Store):
                if one.kept:
                    kept[one.array] = f"{name}[{first}{lane}]"
                    self.filled.add((one.array, one.index))
                    self.source.local(name, size, self.kernel.arrays[one.array].dtype)
                continue
            cached[one.value] = f"{name}[{first}{lane}]"
            if (one.array, one.index) not in self.filled:
                self.filled.add((one.array, one.index))
                self._fill(name, first, lane, size, one, here)
        return cached, kept

    def _fill(self, name: str, first: str, lane: str, size: int, one: Load, here: Position) -> None:
        source, lanes, dtype = self.source, self.lanes, self.kernel.arrays[one.array].dtype
        source.local(name, size, dtype)
        if lanes > 1 and self.is_vector(one):
            self.load_vector(name, first, one, here, lanes)
            return
        assert self.nest.inner is not None
        place = {**here, self.nest.inner: "(j + lane)"} if lanes > 1 else here
        with source.block_if(lanes > 1, f"for lane in range({lanes})"):
            source.line(f"{name}[{first}{lane}] = {self.element(one.array, one.index, place)}")
