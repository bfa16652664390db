"""Seconds of reading and writing parts that index arrays and masks choose."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.value import Value
from esat.graph import Op
from esat.graph.types import DTYPES
from esat.ops.index.advanced import AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.entries import NEW_AXIS, Slice

_LINE = 64.0
"""Bytes that memory is read by: an element alone moves a whole line."""


def indexed_seconds(
    machine: MachineProfile, op: Op, operands: Sequence[Value], result: Value
) -> float | None:
    """Seconds of a read or a write in a kernel that runs; None for other ops, and what kernels leave alone.

    Each place that is chosen takes its time, by the machine's rates for arrays in its own cache; how much
    longer it takes for larger ones follows from the bytes that are moved.

    Parameters
    ----------
    machine
        The machine's rates.
    op
        The op.
    operands, result
        Shapes, with all axes, and dtypes.
    """
    if not isinstance(op, AdvancedSubtensor | AdvancedSetSubtensor) or machine.gather_rate == 0.0:
        return None
    writes = isinstance(op, AdvancedSetSubtensor)
    array, indices = operands[0], operands[2 if writes else 1 :]
    sliced = [entry for entry in op.entries if isinstance(entry, Slice)]
    if (
        not all(entry.is_full for entry in sliced)
        or any(DTYPES[index.dtype] == "bool" for index in indices)
        or DTYPES[array.dtype] == "float16"
        or (writes and DTYPES[array.dtype].startswith("complex"))
        or (isinstance(op, AdvancedSetSubtensor) and op.inplace)
    ):
        return None
    places = max((index.size for index in indices), default=1.0)
    axes = [entry for entry in op.entries if entry is not NEW_AXIS]
    sizes = [size for entry, size in zip(axes, array.shape, strict=True) if isinstance(entry, Slice)]
    trailing = axes[::-1]
    ends = next((n for n, entry in enumerate(trailing) if not isinstance(entry, Slice)), 0)
    run = prod(array.shape[len(axes) - ends :]) if ends else 1.0
    part = places * prod(sizes)
    picks = part / max(run, 1.0)
    rate = machine.scatter_rate if writes else machine.gather_rate
    moved = picks * max(_LINE, run * array.itemsize)
    whole = array.size * array.itemsize
    farther = moved / machine.bandwidth(whole) - moved / machine.bandwidths[0]
    seconds = machine.fused_op + picks / rate + (part - picks) / machine.element_rate + max(farther, 0.0)
    return seconds + 2.0 * whole / machine.bandwidth(whole) if writes else seconds


def masked_seconds(machine: MachineProfile, op: Op, operands: Sequence[Value]) -> float:
    """Seconds that NumPy takes to look through the masks of a read or a write, beside what it moves.

    Parameters
    ----------
    machine
        The machine's rates.
    op
        The op; any other takes none.
    operands
        Shapes and dtypes.
    """
    if not isinstance(op, AdvancedSubtensor | AdvancedSetSubtensor):
        return 0.0
    indices = operands[2 if isinstance(op, AdvancedSetSubtensor) else 1 :]
    return sum(index.size for index in indices if DTYPES[index.dtype] == "bool") / machine.library_rate
