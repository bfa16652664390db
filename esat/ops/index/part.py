"""Parts that index arrays choose: along which axes loops run, and along which ones values say the place.

``x[i, :, j]``, with two index arrays of one axis, has two axes: first that of the arrays, as NumPy has it
where a slice stands between them, then that of the slice. So of the three axes of ``x`` a loop runs along the
second, and values are the places along the other two.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from esat.base.records import record
from esat.graph import Apply, Constant
from esat.graph.op import Op
from esat.ops.index.advanced import AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.batches import layout_of
from esat.ops.index.entries import ARRAY, NEW_AXIS, OPERAND, Slice


@record(frozen=True, slots=True)
class Chosen:
    """A place along an axis of an array: a number, or that in an operand of the node, by its position."""

    operand: int | None
    number: int = 0


@record(frozen=True)
class Part:
    """How the part that a node reads or writes lies in its array.

    Attributes
    ----------
    rank
        How many axes the part has.
    place
        The first of its axes that belong to index arrays.
    axes
        For each axis of the array the axis of the part that runs along it, or the place that is chosen.
    arrays
        For each operand that holds places, by its position, the axis of the part along each of its own axes.
    """

    rank: int
    place: int
    axes: tuple[int | Chosen, ...]
    arrays: Mapping[int, tuple[int, ...]]


def has_kernel_form(node: Apply) -> bool:
    """Whether a node reads or writes a part as kernels can: by index arrays, numbers and whole slices.

    How many elements a mask chooses is not known before it has been read.
    """
    op, array = node.op, node.inputs[0]
    if not isinstance(op, AdvancedSubtensor | AdvancedSetSubtensor):
        return False
    if isinstance(op, AdvancedSetSubtensor):
        known = not op.inplace and node.inputs[1].tensor_type.dtype == array.tensor_type.dtype
    else:
        known = not (isinstance(array, Constant) and array.data.size == 1)
    return (
        known
        and all(entry.is_full if isinstance(entry, Slice) else True for entry in op.entries)
        and all(variable.tensor_type.dtype != "bool" for variable in node.inputs[_first_operand(op) :])
    )


def _first_operand(op: Op) -> int:
    """The position of the first operand of the index: behind the array, and the value that is written."""
    return 2 if isinstance(op, AdvancedSetSubtensor) else 1


def part_of(node: Apply) -> Part | None:
    """The part that a node reads or writes; None for nodes that do no such thing, or not as kernels can."""
    op = node.op
    if not isinstance(op, AdvancedSubtensor | AdvancedSetSubtensor) or not has_kernel_form(node):
        return None
    first = _first_operand(op)
    layout = layout_of(op.entries)
    rank = max(variable.tensor_type.ndim for variable in node.inputs[first:])
    others = iter((*range(layout.place), *range(layout.place + rank, layout.others + rank)))
    operands = iter(range(first, len(node.inputs)))
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
    return Part(layout.others + rank, layout.place, tuple(axes), arrays)


def may_misfit(node: Apply) -> bool:
    """Whether sizes may turn out to differ that a kernel takes to be equal: types do not tell all of them.

    An index array of one place is stretched to fit others; a value that is written must fit its part.
    """
    part = part_of(node)
    if part is None:
        return False
    sizes: dict[int, list[int | None]] = {}
    for position, axes in part.arrays.items():
        for axis, size in zip(axes, node.inputs[position].tensor_type.shape, strict=True):
            sizes.setdefault(axis, []).append(size)
    if isinstance(node.op, AdvancedSetSubtensor):
        for along, size in zip(part.axes, node.inputs[0].tensor_type.shape, strict=True):
            if isinstance(along, int):
                sizes.setdefault(along, []).append(size)
        for axis, size in enumerate(node.inputs[1].tensor_type.shape):
            sizes.setdefault(axis, []).append(size)
    return any(None in found and len([size for size in found if size != 1]) > 1 for found in sizes.values())


def range_of(index: Constant) -> tuple[int, int] | None:
    """The least and the greatest place in a constant; None where it holds none."""
    data = index.data.astype(np.int64)
    return (int(data.min()), int(data.max())) if data.size else None
