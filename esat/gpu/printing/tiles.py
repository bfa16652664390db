"""Loops that read an array across memory: squares of it go through shared memory.

Threads of a warp read 32 neighbours in memory and, once the square is there, take a column of 32 elements.
Shared rows are one element longer, so that these lie in different banks.
"""

from __future__ import annotations

from collections import Counter

from esat.codegen.kernel.loop_ir import Load
from esat.gpu.launches import WARP
from esat.gpu.printing.body import Body, Position
from esat.gpu.printing.nests import Nest

LINES = 8
"""Rows of threads in a block; each thread takes several rows of a square."""


def axis_across(nest: Nest) -> int | None:
    """The axis along which an array lies in memory that a flat nest reads across, if there is one."""
    ends = [
        one.index[-1]
        for one in nest.body
        if isinstance(one, Load) and nest.inner in one.index and one.index[-1] not in (nest.inner, None)
    ]
    return Counter(ends).most_common(1)[0][0] if ends else None


def print_tiles(body: Body, nest: Nest, across: int) -> tuple[int, str]:
    """The lines of a nest whose loads end in ``across``; threads of a block and the grid."""
    source, inner = body.source, nest.inner
    assert inner is not None
    outer = [axis for axis in nest.axes if axis not in (inner, across)]
    tiles = {axis: f"(n{axis} + {WARP - 1}) // {WARP}" for axis in (across, inner)}
    source.line(f"along, down = {tiles[inner]}, {tiles[across]}")
    source.line("group = int64(cuda.blockIdx.x) // along")
    source.line(f"first{inner} = (int64(cuda.blockIdx.x) - group * along) * {WARP}")
    source.line("place = group // down")
    source.line(f"first{across} = (group - place * down) * {WARP}")
    position = body.split(outer, "place")
    source.line(f"lane, line = cuda.threadIdx.x % {WARP}, cuda.threadIdx.x // {WARP}")
    here = {**position, across: f"i{across}", inner: f"i{inner}"}
    cached = _filled(body, nest, across, here)
    source.line("cuda.syncthreads()")
    with source.block(f"for step in range({WARP // LINES})"):
        source.line(f"i{across} = first{across} + line + step * {LINES}")
        source.line(f"i{inner} = first{inner} + lane")
        with source.block(f"if i{across} < n{across} and i{inner} < n{inner}"):
            body.elements((*nest.before, *nest.body), here, 1, cached)
    count = "".join(f"n{axis} * " for axis in outer)
    return WARP * LINES, f"{count}({tiles[across]}) * ({tiles[inner]})"


def _filled(body: Body, nest: Nest, across: int, here: Position) -> dict[int, str]:
    """Read the squares, neighbours in memory by neighbouring threads; the text of an element of each."""
    source, inner = body.source, nest.inner
    cached: dict[int, str] = {}
    with source.block(f"for step in range({WARP // LINES})"):
        source.line(f"i{across} = first{across} + lane")
        source.line(f"i{inner} = first{inner} + line + step * {LINES}")
        with source.block(f"if i{across} < n{across} and i{inner} < n{inner}"):
            for one in nest.body:
                if not isinstance(one, Load) or inner not in one.index or one.index[-1] != across:
                    continue
                name = source.shared(f"s{one.value}", WARP * (WARP + 1), body.kernel.arrays[one.array].dtype)
                element = body.element(one.array, one.index, here)
                source.line(f"{name}[(line + step * {LINES}) * {WARP + 1} + lane] = {element}")
                cached[one.value] = f"{name}[lane * {WARP + 1} + line + step * {LINES}]"
    return cached
