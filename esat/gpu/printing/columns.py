"""Tiles: threads of a warp take neighbouring columns, eight warps share the rows."""

from __future__ import annotations

from collections.abc import Sequence

from esat.codegen.kernel.loop_ir import Kernel, Loop, Statement, Store
from esat.gpu.launches import WARP
from esat.gpu.printing.body import Position, definitions_in
from esat.gpu.printing.gathering import Gathering
from esat.gpu.printing.nests import Nest
from esat.gpu.printing.source import from_memory, to_memory

LINES = 8
"""Rows of threads in a block."""


class Columns(Gathering):
    """The body of a kernel that gathers along outer axes."""

    def __init__(self, kernel: Kernel, nest: Nest, lanes: int, strided: bool) -> None:
        super().__init__(kernel, nest.inner, lanes, strided)
        self.nest = nest

    def run(self) -> tuple[int, str]:
        """The lines; threads of a block and the grid."""
        source, nest, lanes, axis = self.source, self.nest, self.lanes, self.nest.inner
        width = WARP * lanes
        chunks = f"-(-n{axis} // {width})"
        block = "int64(cuda.blockIdx.x)"
        position: Position = {}
        if nest.axes:
            source.line(f"chunks = (n{axis} + {width - 1}) // {width}")
            source.line(f"group = {block} // chunks")
            block = f"({block} - group * chunks)"
            position = self.split(nest.axes, "group")
        source.line(
            f"i{axis} = {block} * {width} + cuda.threadIdx.x % {WARP}" + (f" * {lanes}" if lanes > 1 else "")
        )
        source.line(f"line = cuda.threadIdx.x // {WARP}")
        source.line(f"inside = i{axis} < n{axis}")
        assert axis is not None
        position[axis] = f"i{axis}"
        for one in nest.before:
            self.definition(one, position)
        self._keep()
        for part in _parts(nest.body):
            if isinstance(part, Loop):
                self._shared_loop(part, position)
            else:
                self._direct(part, position)
        groups = "".join(f"n{outer} * " for outer in nest.axes)
        return WARP * LINES, f"{groups}({chunks})"

    def _keep(self) -> None:
        """Whatever differs between columns and is read by a loop or after it is held for each lane."""
        if self.lanes == 1:
            return
        for one in self.nest.body:
            if isinstance(one, Loop):
                for accumulator in one.accumulators:
                    self.keep_state(accumulator)
        self.keep_lanes(one.value for one in definitions_in(self.nest.body))

    def _direct(self, part: Sequence[Statement], position: Position) -> None:
        """Definitions and stores between loops, the latter by the first line of threads."""
        definitions = definitions_in(part)
        stores = [one for one in part if isinstance(one, Store)]
        uniform = [one for one in definitions if one.value not in self.varying]
        self.uniform(uniform, position)
        varying = [one for one in definitions if one.value in self.varying]
        if varying:
            with self.source.block("if inside"):
                self.elements(varying, position, self.lanes)
        if stores:
            with self.source.block("if inside and line == 0"):
                self.elements(stores, position, self.lanes)

    def _shared_loop(self, loop: Loop, position: Position) -> None:
        source = self.source
        for accumulator in loop.accumulators:
            self.start(accumulator)
        places = " * ".join(f"n{axis}" for axis in loop.axes)
        single = len(loop.axes) == 1
        counter = f"i{loop.axes[0]}" if single else "place"
        source.line(f"{counter} = int64(line)")
        with source.block(f"while inside and {counter} < {places}"):
            here = {axis: f"i{axis}" for axis in loop.axes} if single else self.split(loop.axes, counter)
            self.elements(loop.body, {**position, **here}, self.lanes)
            source.line(f"{counter} += {LINES}")
        if loop.accumulators:
            self._reduce(loop)

    def _reduce(self, loop: Loop) -> None:
        """Give all lines of threads what they gathered together, the first line's part first."""
        source, lanes = self.source, self.lanes
        several = lanes > 1
        place = f"cuda.threadIdx.x * {lanes} + lane" if several else "cuda.threadIdx.x"
        other = f"(cuda.threadIdx.x % {WARP} + line_of * {WARP})" + (f" * {lanes} + lane" if several else "")
        with source.block_if(several, f"for lane in range({lanes})"):
            for accumulator in loop.accumulators:
                for name, dtype in self.state(accumulator):
                    source.shared(f"s_{name}", WARP * LINES * lanes, dtype)
                    source.line(
                        f"s_{name}[{place}] = {to_memory(self._read(accumulator, name, dtype), dtype)}"
                    )
        source.line("cuda.syncthreads()")
        with source.block_if(several, f"for lane in range({lanes})"):
            for accumulator in loop.accumulators:
                for name, dtype in self.state(accumulator):
                    first = other.replace("line_of", "0")
                    self._write(accumulator, name, dtype, from_memory(f"s_{name}[{first}]", dtype))
                with source.block(f"for line_of in range(1, {LINES})"):
                    self.take_state(
                        accumulator, [f"s_{name}[{other}]" for name, _ in self.state(accumulator)]
                    )


def _parts(body: Sequence[Statement]) -> list[Loop | list[Statement]]:
    """Loops, and what is between them."""
    parts: list[Loop | list[Statement]] = []
    for one in body:
        if isinstance(one, Loop):
            parts.append(one)
        elif parts and isinstance(parts[-1], list):
            parts[-1].append(one)
        else:
            parts.append([one])
    return parts
