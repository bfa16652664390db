"""How long the loops of a kernel take that several threads could share, coarsely."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np

from esat.codegen.loop_ir import Compute, Convert, Kernel, Loop, Statement, Store, Tile, Update
from esat.codegen.parallel import Shape, axis_sizes
from esat.codegen.partition import Gather, Split, partition
from esat.extract.machine import MachineProfile
from esat.ops.elementwise.code import VECTOR_MATH

_FUNCTION = re.compile(r"[A-Za-z_]\w*")
_FUNCTION_FLOPS = 12.0
"""Additions that one of the vector functions takes as long as, before the machine's own factor."""
_LEAST_SHARE = 16
"""Work for each partial result, in iterations, below which taking it in costs what threads save."""


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
    shared = [part.statement for part in parts if isinstance(part, Split | Gather) and part.units(sizes) > 1]
    if not shared:
        return 0.0
    widths = [np.dtype(array.dtype).itemsize for array in kernel.arrays]
    moved = sum(prod(shape) * width for shape, width in zip(shapes, widths, strict=True))
    narrow = max(widths) <= 4
    rate = machine.element_rate * (machine.single_speedup if narrow else 1.0)
    flops = sum(_flops(statement, sizes, machine) for statement in shared)
    return flops / rate + moved / machine.bandwidth(moved)


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
        functions = sum(name in VECTOR_MATH for name in _FUNCTION.findall(statement.template))
        return functions * _FUNCTION_FLOPS * machine.transcendental if functions else 1.0
    return 1.0 if isinstance(statement, Convert | Update | Store) else 0.0
