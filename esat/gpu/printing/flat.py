"""Loops without accumulators: one vector a thread, no loop.

Of a loop over a grid NVVM computes the trip count by a division of 64 bits.
"""

from __future__ import annotations

from esat.gpu.printing.body import Body
from esat.gpu.printing.nests import Nest

BLOCK = 256
"""Threads of a block where they do not work together."""


MOST_ROWS = 65_535
"""Blocks that a grid may have along y."""


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
