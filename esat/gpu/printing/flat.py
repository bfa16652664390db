"""Loops without accumulators: one vector a thread, no loop.

Of a loop over a grid NVVM computes the trip count by a division of 64 bits.
"""

from __future__ import annotations

from esat.gpu.printing.body import Body
from esat.gpu.printing.nests import Nest

BLOCK = 256
"""Threads of a block where they do not work together."""


def print_flat(body: Body, nest: Nest) -> str:
    """The lines of a nest of loops; the grid."""
    source, lanes = body.source, body.lanes
    units = body.units(nest.axes, lanes)
    source.line(f"unit = int64(cuda.blockIdx.x) * {BLOCK} + cuda.threadIdx.x")
    with source.block(f"if unit < {units}"):
        position = body.split(nest.axes, "unit", lanes)
        body.elements((*nest.before, *nest.body), position, lanes)
    if lanes == 1 or len(nest.axes) > 1:
        return f"-(-({units}) // {BLOCK})"
    (axis,) = nest.axes
    with source.block("else"):
        source.line(f"i{axis} = unit + {units} * {lanes - 1}")
        with source.block(f"if i{axis} < n{axis}"):  # less than a vector is left
            body.elements((*nest.before, *nest.body), {axis: f"i{axis}"}, 1)
    return f"-(-({units} + n{axis} % {lanes}) // {BLOCK})"
