"""Loops that read an array across memory: squares of it go through shared memory.

Threads of a warp read 32 neighbours in memory and, once the square is there, take a column of 32 elements.
Shared rows are one element longer, so that these lie in different banks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from esat.codegen.kernel.loop_ir import Load
from esat.gpu.kernel_text.launches import WARP
from esat.gpu.printing.body import Body, Position
from esat.gpu.printing.nests import Nest

LINES = 4
"""Rows of threads in a block; with more of them, each has too few loads on the way."""
STEPS = WARP // LINES
"""Rows of a square that each thread takes."""


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
    along = {across: "line", inner: "lane"}
    cached = _loaded(body, nest, across, here)
    source.line("cuda.syncthreads()")
    with source.block(f"for step in range({STEPS})"), _inside(body, here, along):
        body.elements((*nest.before, *nest.body), here, 1, cached)
    count = "".join(f"n{axis} * " for axis in outer)
    return WARP * LINES, f"{count}({tiles[across]}) * ({tiles[inner]})"


@contextmanager
def _inside(body: Body, here: Position, by: Mapping[int, str]) -> Iterator[None]:
    """The body of a step for threads whose element is inside of the arrays.

    Parameters
    ----------
    by
        The axes of a square -> what counts along them: ``lane``, or ``line`` and the step.
    """
    for axis, counter in by.items():
        text = f"line + step * {LINES}" if counter == "line" else counter
        body.source.line(f"{here[axis]} = first{axis} + {text}")
    with body.source.block("if " + " and ".join(f"{here[axis]} < n{axis}" for axis in by)):
        yield


def _loaded(body: Body, nest: Nest, across: int, here: Position) -> dict[int, str]:
    """Read squares, neighbours in memory by neighbouring threads; the text of an element of each.

    All loads come before all else, so that none waits for another.
    """
    source, inner = body.source, nest.inner
    assert inner is not None
    loads = [one for one in nest.body if isinstance(one, Load) and inner in one.index]
    turned = [one for one in loads if one.index[-1] == across]
    straight = [one for one in loads if one.index[-1] != across]
    cached: dict[int, str] = {}
    for group, by in ((turned, {across: "lane", inner: "line"}), (straight, {across: "line", inner: "lane"})):
        with source.block_if(bool(group), f"for step in range({STEPS})"), ExitStack() as stack:
            if group:
                stack.enter_context(_inside(body, here, by))
            for one in group:
                name = source.local(f"b{one.value}", STEPS, body.kernel.arrays[one.array].dtype)
                source.line(f"{name}[step] = {body.element(one.array, one.index, here)}")
                cached[one.value] = f"{name}[step]"
    with source.block(f"for step in range({STEPS})"):
        for one in turned:
            name = source.shared(f"s{one.value}", WARP * (WARP + 1), body.kernel.arrays[one.array].dtype)
            source.line(f"{name}[(line + step * {LINES}) * {WARP + 1} + lane] = b{one.value}[step]")
            cached[one.value] = f"{name}[lane * {WARP + 1} + line + step * {LINES}]"
    return cached
