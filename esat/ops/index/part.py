"""What index arrays choose: along which axes loops run, and along which ones values say the place.

``x[i, :, j]``, with two index arrays of one axis, has two axes: first that of the arrays, as NumPy has it
where a slice stands between them, then that of the slice. So of the three axes of ``x`` a loop runs along the
second, and values are the places along the other two.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from esat.graph import Apply, Constant
from esat.ops.index.advanced import AdvancedSubtensor
from esat.ops.index.batches import layout_of
from esat.ops.index.entries import ARRAY, NEW_AXIS, OPERAND, Slice
from esat.records import record


@record(frozen=True, slots=True)
class Chosen:
    """A place along an axis of an array: a number, or that in an operand of the node, by its position."""

    operand: int | None
    number: int = 0


@record(frozen=True)
class Part:
    """How the part that a node reads lies in its array.

    Attributes
    ----------
    axes
        For each axis of the array the axis of the part that runs along it, or the place that is chosen.
    arrays
        For each operand that holds places, by its position, the axis of the part along each of its own axes.
    """

    axes: tuple[int | Chosen, ...]
    arrays: Mapping[int, tuple[int, ...]]


def can_gather(node: Apply) -> bool:
    """Whether a node reads a part that kernels can read: by index arrays, numbers and whole slices.

    How many elements a mask chooses is not known before it has been read.
    """
    op = node.op
    if not isinstance(op, AdvancedSubtensor):
        return False
    source, *operands = node.inputs
    return (
        all(entry.is_full if isinstance(entry, Slice) else True for entry in op.entries)
        and all(variable.tensor_type.dtype != "bool" for variable in operands)
        and not (isinstance(source, Constant) and source.data.size == 1)
    )


def part_of(node: Apply) -> Part | None:
    """The part that a node reads; None for nodes that read whole operands."""
    op = node.op
    if not isinstance(op, AdvancedSubtensor):
        return None
    layout = layout_of(op.entries)
    rank = max(variable.tensor_type.ndim for variable in node.inputs[1:])
    others = iter((*range(layout.place), *range(layout.place + rank, layout.others + rank)))
    operands = iter(range(1, len(node.inputs)))
    axes: list[int | Chosen] = []
    arrays: dict[int, tuple[int, ...]] = {}
    for entry in op.entries:
        if entry is NEW_AXIS:
            next(others)
        elif isinstance(entry, Slice):
            axes.append(next(others))
        elif entry in (ARRAY, OPERAND):
            position = next(operands)
            end = layout.place + rank
            arrays[position] = tuple(range(end - node.inputs[position].tensor_type.ndim, end))
            axes.append(Chosen(position))
        else:
            assert isinstance(entry, int)
            axes.append(Chosen(None, entry))
    return Part(tuple(axes), arrays)


def may_broadcast(node: Apply) -> bool:
    """Whether an index array may turn out to be stretched along an axis: types do not tell all sizes."""
    part = part_of(node)
    if part is None:
        return False
    sizes: dict[int, list[int | None]] = {}
    for position, axes in part.arrays.items():
        for axis, size in zip(axes, node.inputs[position].tensor_type.shape, strict=True):
            sizes.setdefault(axis, []).append(size)
    return any(None in found and len([size for size in found if size != 1]) > 1 for found in sizes.values())


def range_of(index: Constant) -> tuple[int, int] | None:
    """The least and the greatest place in a constant; None where it holds none."""
    data = index.data.astype(np.int64)
    return (int(data.min()), int(data.max())) if data.size else None
