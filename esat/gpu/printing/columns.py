"""Tiles: neighbouring threads take neighbouring columns, lines of threads share the rows.

Where there are few columns, blocks share the rows, too (:mod:`esat.gpu.printing.splitting`): each leaves
partial results, which a further launch combines line by line. How many do so depends on sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from esat.codegen.kernel.loop_ir import Accumulator, Definition, Kernel, Loop, Store
from esat.gpu.kernel_text.launches import Workspace
from esat.gpu.printing.body import Position, definitions_in
from esat.gpu.printing.flat import BLOCK
from esat.gpu.printing.gathering import Gathering
from esat.gpu.printing.nests import Nest, parts_of
from esat.gpu.printing.source import from_memory, stored, to_memory

SHARED_ROWS = 256
"""Rows from which blocks share them: another launch takes as long as reading some."""
LEAST_ROWS = 32
"""Rows that each of these blocks gets at least: one thread's loads wait for each other."""
MOST_SPLITS = 256
"""Blocks that share the rows of some columns, at most."""
ENOUGH_BLOCKS = 2048
"""Blocks that keep any device busy."""


class Columns(Gathering):
    """The body of a launch that gathers along outer axes.

    Parameters
    ----------
    width
        Neighbouring threads that take neighbouring columns: a power of two, a warp at most.
    """

    def __init__(self, kernel: Kernel, nest: Nest, lanes: int, strided: bool, width: int) -> None:
        super().__init__(kernel, nest.inner, lanes, strided)
        self.nest = nest
        self.width = width
        self.lines = BLOCK // width

    # ---- who does what

    @property
    def _chunks(self) -> str:
        columns = self.width * self.lanes
        return f"(n{self.nest.inner} + {columns - 1}) // {columns}"

    @property
    def _groups(self) -> str:
        return "".join(f"n{axis} * " for axis in self.nest.axes)

    @property
    def grid(self) -> str:
        """Blocks that together have all columns."""
        return f"{self._groups}({self._chunks})"

    @property
    def columns(self) -> str:
        """How many columns there are, those of all groups."""
        return f"{self._groups}n{self.nest.inner}"

    def rows(self, loop: Loop) -> str:
        """How many rows a loop has."""
        return " * ".join(f"n{axis}" for axis in loop.axes)

    def splits(self, loop: Loop) -> str:
        """How many blocks share the rows of a loop."""
        enough = f"{ENOUGH_BLOCKS} // max({self.grid}, 1) + 1"
        return f"max(min({enough}, ({self.rows(loop)}) // {LEAST_ROWS}, {MOST_SPLITS}), 1)"

    def begin(self, splits: str = "") -> Position:
        """The lines that say which columns a thread has, and of which part of the rows."""
        source, nest, axis = self.source, self.nest, self.nest.inner
        block = "int64(cuda.blockIdx.x)"
        source.line(f"chunks = {self._chunks}")
        if splits:
            source.line(f"splits = {splits}")
            source.line(f"part = {block} % splits")
            block = f"{block} // splits"
        position: Position = {}
        if nest.axes:
            source.line(f"group = {block} // chunks")
            block = f"({block} - group * chunks)"
            position = self.split(nest.axes, "group")
        step = f" * {self.lanes}" if self.lanes > 1 else ""
        first = f"({block} * {self.width} + cuda.threadIdx.x % {self.width})"
        source.line(f"i{axis} = {first}{step}")
        source.line(f"line = int64(cuda.threadIdx.x // {self.width})")
        source.line(f"inside = i{axis} < n{axis}")
        place = f"group * n{axis} + i{axis}" if nest.axes else f"i{axis}"
        source.line(f"column = {place}")
        assert axis is not None
        position[axis] = f"i{axis}"
        for one in nest.before:
            self.definition(one, position)
        return position

    # ---- a whole kernel in one launch

    def run(self) -> tuple[int, str]:
        """The lines of a launch without splits; threads of a block and the grid."""
        position = self.begin()
        self.keep_lanes(one.value for one in definitions_in(self.nest.body))
        for part in parts_of(self.nest.body):
            if isinstance(part, Loop):
                self.gather(part, position)
            else:
                self.direct(definitions_in(part), position)
                self.stores([one for one in part if isinstance(one, Store)], position)
        return BLOCK, self.grid

    def direct(self, definitions: Sequence[Definition], position: Position) -> None:
        """Definitions outside of the loops of a tile."""
        self.uniform(definitions, position)
        varying = [one for one in definitions if one.value in self.varying]
        if varying:
            with self.source.block("if inside"):
                self.elements(varying, position, self.lanes)

    def stores(self, stores: Sequence[Store], position: Position) -> None:
        """Stores outside of the loops of a tile, by the first line of threads."""
        if stores:
            with self.source.block("if inside and line == 0"):
                self.elements(stores, position, self.lanes)

    def gather(self, loop: Loop, position: Position, splits: bool = False) -> None:
        """A loop over rows, of a part of them where blocks share them."""
        source = self.source
        for accumulator in loop.accumulators:
            if self.lanes > 1:
                self.keep_state(accumulator)
            self.start(accumulator)
        single = len(loop.axes) == 1
        counter, end = f"i{loop.axes[0]}" if single else "place", self.rows(loop)
        first = "line"
        if splits:
            source.line(f"share = ({end} + splits - 1) // splits")
            source.line(f"last = min((part + 1) * share, {end})")
            first, end = "part * share + line", "last"
        source.line(f"{counter} = {first}")
        with source.block(f"while inside and {counter} < {end}"):
            here = {axis: f"i{axis}" for axis in loop.axes} if single else self.split(loop.axes, counter)
            self.elements(loop.body, {**position, **here}, self.lanes)
            source.line(f"{counter} += {self.lines}")
        self.reduce_lines(loop.accumulators)

    def reduce_lines(self, accumulators: Sequence[Accumulator]) -> None:
        """Give all lines of threads what they gathered together: halves of them, until one is left."""
        source, lanes = self.source, self.lanes
        if not accumulators or self.lines == 1:
            return
        several = f"for lane in range({lanes})"
        states = [(one, name, dtype) for one in accumulators for name, dtype in self.state(one)]

        def place(thread: str) -> str:
            return f"({thread}) * {lanes} + lane" if lanes > 1 else thread

        def put() -> None:
            for one, name, dtype in states:
                value = self.read_state(one, name, dtype)
                source.line(f"s_{name}[{place('cuda.threadIdx.x')}] = {to_memory(value, dtype)}")

        for _, name, dtype in states:
            source.shared(f"s_{name}", BLOCK * lanes, dtype)
        with source.block_if(lanes > 1, several):
            put()
        source.line("cuda.syncthreads()")
        source.line(f"half = {self.lines // 2}")
        with source.block("while half > 0"):
            with source.block("if line < half"), source.block_if(lanes > 1, several):
                other = place(f"cuda.threadIdx.x + half * {self.width}")
                for one in accumulators:
                    self.take_state(one, [f"s_{name}[{other}]" for name, _ in self.state(one)])
                put()
            source.line("cuda.syncthreads()")
            source.line("half = half // 2")
        with source.block_if(lanes > 1, several):
            for one, name, dtype in states:
                text = f"s_{name}[{place(f'cuda.threadIdx.x % {self.width}')}]"
                self.write_state(one, name, dtype, from_memory(text, dtype))

    # ---- rows shared by blocks

    def leave_partial(self, loop: Loop, splits: str) -> dict[str, Workspace]:
        """Leave what this block gathered; where it is."""
        found = {}
        lane = " + lane" if self.lanes > 1 else ""
        with (
            self.source.block("if inside and line == 0"),
            self.source.block_if(self.lanes > 1, f"for lane in range({self.lanes})"),
        ):
            for one in loop.accumulators:
                for name, dtype in self.state(one):
                    value = to_memory(self.read_state(one, name, dtype), dtype)
                    self.source.line(f"w_{name}[part * {self.columns} + column{lane}] = {value}")
                    found[f"w_{name}"] = Workspace(stored(dtype), f"{splits} * {self.columns}")
        return found

    def take_partial(self, loop: Loop, splits: str) -> None:
        """Combine what blocks left, line by line."""
        source = self.source
        for one in loop.accumulators:
            self.start(one)
        source.line(f"splits = {splits}")
        source.line("part = line")
        with source.block("while inside and part < splits"):
            place = f"part * {self.columns} + column"
            for one in loop.accumulators:
                self.take_state(one, [f"w_{name}[{place}]" for name, _ in self.state(one)])
            source.line(f"part += {self.lines}")
        self.reduce_lines(loop.accumulators)

    def leave_results(self, values: Mapping[int, str]) -> dict[str, Workspace]:
        """Leave values of these dtypes for launches that follow; where they are."""
        found = {f"r{value}": Workspace(stored(dtype), self.columns) for value, dtype in values.items()}
        if found:
            with self.source.block("if inside and line == 0"):
                for value, dtype in values.items():
                    self.source.line(f"r{value}[column] = {to_memory(f'v{value}', dtype)}")
        return found

    def load_results(self, values: Iterable[tuple[int, str]]) -> None:
        """Read what earlier launches left."""
        lane = " + lane" if self.lanes > 1 else ""
        for value, dtype in values:
            self.keep_lanes([value])
            with (
                self.source.block("if inside"),
                self.source.block_if(self.lanes > 1, f"for lane in range({self.lanes})"),
            ):
                self.define(value, from_memory(f"r{value}[column{lane}]", dtype))
