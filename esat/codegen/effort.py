"""How long the loops of a kernel take that several threads could share, coarsely, and whether what they write
is to go past the caches."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from esat.codegen.compile import Shape, axis_sizes
from esat.codegen.ground.target import Target
from esat.codegen.kernel.access import LEAST_ROW, rereads_rows, stores_along, streamed_outputs
from esat.codegen.kernel.loop_ir import Compute, Convert, Kernel, Loop, Statement, Store, Tile, Update, walk
from esat.codegen.kernel.partition import Gather, LoopPartition, partition
from esat.extract.prices.machine import MachineProfile
from esat.ops.elementwise.records.code import SCIPY_FUNCTIONS, VECTOR_MATH

_FUNCTION = re.compile(r"[A-Za-z_]\w*")
_FUNCTION_FLOPS = 12.0
"""Additions that one of the vector functions takes as long as, before the machine's own factor."""
_SCIPY_FLOPS = 80.0
"""The same of a function of SciPy's, which is called for each element: digamma and log_ndtr take 12 to 20 ns
on a Xeon of 2.8 GHz, the incomplete functions ten times that."""
_LEAST_SHARE = 16
"""Work for each partial result, in iterations, below which taking it in costs what threads save."""
_SHARE_BY_ROWS = 0.6
"""Of what a kernel reads and writes that goes past the caches, where rows are read several times: a loop that
streams also prefetches the next row."""
_IDLE_SHARE = 0.5
"""Of the time that memory takes: more arithmetic is slowed down by the short loops of streams."""


def seconds_in_threads(kernel: Kernel, shapes: Sequence[Shape], machine: MachineProfile) -> float:
    """Seconds that one thread takes for what several could share; 0 where sharing it does not pay.

    Parameters
    ----------
    kernel
        The kernel, collapsed if its arrays are contiguous.
    shapes
        Of its arrays.
    machine
        Rates.
    """
    sizes = axis_sizes(kernel, shapes)
    parts = partition(kernel)
    if not all(_pays(part, sizes) for part in parts if isinstance(part, Gather)):
        return 0.0
    shared = [
        part.statement for part in parts if isinstance(part, LoopPartition | Gather) and part.units(sizes) > 1
    ]
    if not shared:
        return 0.0
    moved = _bytes(kernel, shapes)
    return _arithmetic(kernel, shared, sizes, machine) + moved / machine.bandwidth(moved)


def is_streamed(kernel: Kernel, shapes: Sequence[Shape], machine: MachineProfile, target: Target) -> bool:
    """Whether a kernel is to write results past the caches.

    That is so where the caches do not hold what it reads and writes, memory sets its pace, and rows are long
    enough that few lines are stored in part.

    Parameters
    ----------
    kernel, shapes, machine
        As for :func:`seconds_in_threads`.
    target
        Tells how much the caches hold.
    """
    moved = _bytes(kernel, shapes)
    outputs = streamed_outputs(kernel)
    share = _SHARE_BY_ROWS if rereads_rows(kernel, outputs) else 1.0
    if not outputs or moved < share * target.tuning.non_temporal_from:
        return False
    sizes = axis_sizes(kernel, shapes)
    rows = [
        sizes[loop.axes[-1]] * np.dtype(kernel.arrays[array].dtype).itemsize
        for loop in walk(kernel.body)
        if isinstance(loop, Loop)
        for array in stores_along(loop)
        if array in outputs
    ]
    work = _arithmetic(kernel, kernel.body, sizes, machine)
    # What goes past the caches goes at the rate of memory, also where they would have held it.
    return min(rows) >= LEAST_ROW and work <= _IDLE_SHARE * moved / machine.bandwidths[2]


def _bytes(kernel: Kernel, shapes: Sequence[Shape]) -> int:
    """Bytes of all arrays."""
    widths = [np.dtype(array.dtype).itemsize for array in kernel.arrays]
    return sum(prod(shape) * width for shape, width in zip(shapes, widths, strict=True))


def _arithmetic(
    kernel: Kernel, statements: Sequence[Statement], sizes: Sequence[int], machine: MachineProfile
) -> float:
    """Seconds of the statements' arithmetic."""
    narrow = all(np.dtype(array.dtype).itemsize <= 4 for array in kernel.arrays)
    rate = machine.element_rate * (machine.single_speedup if narrow else 1.0)
    return sum(_flops(statement, sizes, machine) for statement in statements) / rate


def _pays(part: Gather, sizes: tuple[int, ...]) -> bool:
    return part.partial_results(sizes) * _LEAST_SHARE <= _iterations(part.statement, sizes)


def _iterations(statement: Statement, sizes: Sequence[int]) -> int:
    """Iterations of the innermost loops of a statement, those of each counted."""
    if not isinstance(statement, Loop | Tile):
        return 0
    inner = sum(_iterations(part, sizes) for part in statement.body)
    return _places(statement, sizes) * max(inner, 1)


def _places(statement: Loop | Tile, sizes: Sequence[int]) -> int:
    axes = (statement.axis,) if isinstance(statement, Tile) else statement.axes
    return prod(sizes[axis] for axis in axes)


def _flops(statement: Statement, sizes: Sequence[int], machine: MachineProfile) -> float:
    if isinstance(statement, Loop | Tile):
        return _places(statement, sizes) * sum(_flops(part, sizes, machine) for part in statement.body)
    if isinstance(statement, Compute):
        flops = sum(map(_flops_of_function, _FUNCTION.findall(statement.template)))
        return flops * machine.transcendental if flops else 1.0
    return 1.0 if isinstance(statement, Convert | Update | Store) else 0.0


def _flops_of_function(name: str) -> float:
    if name in SCIPY_FUNCTIONS:
        return _SCIPY_FLOPS
    return _FUNCTION_FLOPS if name in VECTOR_MATH else 0.0
