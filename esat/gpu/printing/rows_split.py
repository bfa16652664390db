"""Few rows that are long: blocks share each, as they share the rows of few columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from esat.codegen.kernel.loop_ir import Definition, Kernel, Loop, Store
from esat.gpu.kernel_text.launches import Workspace
from esat.gpu.printing.body import Position
from esat.gpu.printing.flat import BLOCK
from esat.gpu.printing.gathering import Gathering
from esat.gpu.printing.nests import Nest
from esat.gpu.printing.source import from_memory, stored, to_memory

ENOUGH_BLOCKS = 2048
"""Blocks that keep any device busy."""
LEAST_ELEMENTS = 4096
"""Elements that each block gets at least."""
MOST_SPLITS = 256
"""Blocks that share a row, at most."""
FEW_ROWS = 256
"""Rows below which blocks share those that no block can hold."""


class SharedRows(Gathering):
    """The body of a launch over parts of rows, or over what blocks left of each."""

    def __init__(self, kernel: Kernel, nest: Nest, lanes: int, strided: bool) -> None:
        super().__init__(kernel, nest.inner, lanes, strided)
        self.nest = nest

    @property
    def grid(self) -> str:
        """A block a row."""
        return " * ".join(f"n{axis}" for axis in self.nest.axes) or "1"

    def splits(self, loop: Loop) -> str:
        """How many blocks share a row."""
        enough = f"{ENOUGH_BLOCKS} // max({self.grid}, 1) + 1"
        elements = " * ".join(f"n{axis}" for axis in loop.axes)
        return f"max(min({enough}, ({elements}) // {LEAST_ELEMENTS}, {MOST_SPLITS}), 1)"

    def begin(self, splits: str = "") -> Position:
        """The lines that say which row a block has, and which part of it."""
        source = self.source
        source.line("row = int64(cuda.blockIdx.x)")
        if splits:
            source.line(f"splits = {splits}")
            source.line("part = row % splits")
            source.line("row = row // splits")
        position = self.split(self.nest.axes, "row")
        for one in self.nest.before:
            self.definition(one, position)
        return position

    def direct(self, definitions: Sequence[Definition], position: Position) -> None:
        """Definitions outside of loops, by all threads."""
        self.sequence(definitions, position)

    def stores(self, stores: Sequence[Store], position: Position) -> None:
        """Stores outside of loops, by one thread."""
        with self.source.block("if cuda.threadIdx.x == 0"):
            self.sequence(stores, position)

    def gather(self, loop: Loop, position: Position, splits: bool = True) -> None:
        """A loop along this block's part of the row."""
        source, lanes = self.source, self.lanes
        for one in loop.accumulators:
            self.start(one)
        vectors = self.units(loop.axes, lanes)
        source.line(f"share = ({vectors} + splits - 1) // splits")
        source.line(f"last = min((part + 1) * share, {vectors})")
        source.line("unit = part * share + cuda.threadIdx.x")
        with source.block("while unit < last"):
            self.elements(loop.body, {**position, **self.split(loop.axes, "unit", lanes)}, lanes)
            source.line(f"unit += {BLOCK}")
        self.reduce(loop.accumulators, BLOCK, "cuda.threadIdx.x")

    def leave_partial(self, loop: Loop, splits: str) -> dict[str, Workspace]:
        """Leave what this block gathered; where it is."""
        found = {}
        with self.source.block("if cuda.threadIdx.x == 0"):
            for one in loop.accumulators:
                for name, dtype in self.state(one):
                    self.source.line(f"w_{name}[row * splits + part] = {to_memory(name, dtype)}")
                    found[f"w_{name}"] = Workspace(stored(dtype), f"{splits} * {self.grid}")
        return found

    def take_partial(self, loop: Loop, splits: str) -> None:
        """Combine what blocks left of a row."""
        source = self.source
        source.line(f"splits = {splits}")
        for one in loop.accumulators:
            self.start(one)
        source.line("part = int64(cuda.threadIdx.x)")
        with source.block("while part < splits"):
            for one in loop.accumulators:
                self.take_state(one, [f"w_{name}[row * splits + part]" for name, _ in self.state(one)])
            source.line(f"part += {BLOCK}")
        self.reduce(loop.accumulators, BLOCK, "cuda.threadIdx.x")

    def leave_results(self, values: Mapping[int, str]) -> dict[str, Workspace]:
        """Leave values of these dtypes for launches that follow; where they are."""
        with self.source.block_if(bool(values), "if cuda.threadIdx.x == 0"):
            for value, dtype in values.items():
                self.source.line(f"r{value}[row] = {to_memory(f'v{value}', dtype)}")
        return {f"r{value}": Workspace(stored(dtype), self.grid) for value, dtype in values.items()}

    def load_results(self, values: Iterable[tuple[int, str]]) -> None:
        """Read what earlier launches left."""
        for value, dtype in values:
            self.define(value, from_memory(f"r{value}[row]", dtype))
