"""Loops without accumulators: one vector a thread, no loop; where rows have none, an element of several rows.

Of a loop over a grid NVVM computes the trip count by a division of 64 bits.
"""

from __future__ import annotations

from esat.codegen.kernel.loop_ir import Load, Store
from esat.gpu.printing.body import Body, Position
from esat.gpu.printing.nests import Nest

BLOCK = 256
"""Threads of a block where they do not work together."""


MOST_ROWS = 65_535
"""Blocks that a grid may have along y."""
STEPS = 4
"""Rows of which a thread takes an element each: of one alone, too few bytes would be on the way."""
MOST_LOADS = 6
"""Loads of an element up to which a thread takes several."""


def print_flat(body: Body, nest: Nest, across: int) -> str:
    """The lines of a nest of loops; the grid.

    Parameters
    ----------
    across
        Neighbouring threads that take neighbours along the innermost axis, where there are others: a power of
        two up to :data:`BLOCK`.
    """
    if len(nest.axes) == 1:
        return _print_line(body, nest)
    if body.lanes == 1 and _takes_several(body, nest):
        return _print_several(body, nest, across)
    source, lanes, (*rows, inner) = body.source, body.lanes, nest.axes
    count, together = " * ".join(f"n{axis}" for axis in rows), BLOCK // across
    # No division tells which row a thread has: loads would wait for it.
    first = f"(int64(cuda.blockIdx.x) * {across} + cuda.threadIdx.x % {across})"
    source.line(f"i{inner} = {first}" + (f" * {lanes}" if lanes > 1 else ""))
    line = f"int64(cuda.blockIdx.z) * {MOST_ROWS} + cuda.blockIdx.y"
    source.line(f"row = ({line}) * {together} + cuda.threadIdx.x // {across}")
    with source.block(f"if i{inner} < n{inner} and row < {count}"):
        position = {**body.split(rows, "row"), inner: f"i{inner}"}
        body.elements((*nest.before, *nest.body), position, lanes)
    blocks = f"-(-({count}) // {together})"
    width = across * lanes
    return f"(-(-n{inner} // {width}), min({blocks}, {MOST_ROWS}), -(-({blocks}) // {MOST_ROWS}))"


def _print_line(body: Body, nest: Nest) -> str:
    source, lanes, (axis,) = body.source, body.lanes, nest.axes
    units = body.units(nest.axes, lanes)
    source.line(f"unit = int64(cuda.blockIdx.x) * {BLOCK} + cuda.threadIdx.x")
    with source.block(f"if unit < {units}"):
        body.elements((*nest.before, *nest.body), body.split(nest.axes, "unit", lanes), lanes)
    if lanes == 1:
        return f"-(-{units} // {BLOCK})"
    with source.block("else"):
        source.line(f"i{axis} = unit + {units} * {lanes - 1}")
        with source.block(f"if i{axis} < n{axis}"):  # less than a vector is left
            body.elements((*nest.before, *nest.body), {axis: f"i{axis}"}, 1)
    return f"-(-({units} + n{axis} % {lanes}) // {BLOCK})"


def _takes_several(body: Body, nest: Nest) -> bool:
    """Whether elements of several rows can be computed before one is stored."""
    loads = [one for one in (*nest.before, *nest.body) if isinstance(one, Load)]
    stored = [one.array for one in nest.body if isinstance(one, Store)]
    reads_results = any(one.array < len(body.kernel.outputs) for one in loads)
    return len(loads) <= MOST_LOADS and len(set(stored)) == len(stored) and not reads_results


def _print_several(body: Body, nest: Nest, across: int) -> str:
    """A nest whose threads take an element of each of some rows: all are stored after all are computed."""
    source, (*rows, inner) = body.source, nest.axes
    count, together = " * ".join(f"n{axis}" for axis in rows), BLOCK // across
    stores = [one for one in nest.body if isinstance(one, Store)]
    kept = {
        one.array: f"{source.local(f'c{one.array}', STEPS, body.kernel.arrays[one.array].dtype)}[step]"
        for one in stores
    }
    source.line(f"i{inner} = int64(cuda.blockIdx.x) * {across} + cuda.threadIdx.x % {across}")
    line = f"int64(cuda.blockIdx.z) * {MOST_ROWS} + cuda.blockIdx.y"
    source.line(f"first = ({line}) * {together * STEPS} + cuda.threadIdx.x // {across}")

    def position(row: str) -> Position:
        source.line(f"row = {row}")
        return {**body.split(rows, "row"), inner: f"i{inner}"}

    row = f"first + step * {together}"
    with source.block(f"if i{inner} < n{inner}"):
        # Without a branch, so that no load waits for another.
        with source.block(f"for step in range({STEPS})"):
            here = position(f"min({row}, {count} - 1)")
            body.elements((*nest.before, *nest.body), here, 1, kept=kept)
        with source.block(f"for step in range({STEPS})"), source.block(f"if {row} < {count}"):
            here = position(row)
            for one in stores:
                source.line(f"{body.element(one.array, one.index, here)} = {kept[one.array]}")
    blocks = f"-(-({count}) // {together * STEPS})"
    return f"(-(-n{inner} // {across}), min({blocks}, {MOST_ROWS}), -(-({blocks}) // {MOST_ROWS}))"
