"""Parts of arrays on a device: read and written, by slices and by index arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from esat.errors import IndexingError, describe
from esat.gpu.device import Device, DeviceArray
from esat.gpu.forms.form import DeviceForm, Former, from_place
from esat.gpu.kernel_text.scatter import SCATTERED, DeviceScatter
from esat.graph import Apply
from esat.graph.op import Op
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.index.entries import ARRAY, NEW_AXIS, OPERAND, Slice, entries_text, numpy_index


def _subtensor(op: Subtensor, device: Device, node: Apply) -> DeviceForm:
    return DeviceForm(op.perform, from_place(1, node))


def _part_write(op: SetSubtensor, device: Device, node: Apply) -> DeviceForm:
    adds = isinstance(op, IncSubtensor)

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        target, value, *numbers = operands
        result = target if op.inplace else target.copy()
        index = numpy_index(op.entries, numbers)
        result[index] = result[index] + value if adds else value
        return (result,)

    return DeviceForm(compute, from_place(2, node))


ADDED = frozenset(["int32", "int64", "uint32", "uint64"])
"""Dtypes whose sums do not tell in which order a device adds."""


def _index_numbers(op: Any, first: int) -> frozenset[int]:
    """Positions of the operands of an index that are numbers, not arrays."""
    found, place = set(), first
    for entry in op.entries:
        parts = entry.parts() if isinstance(entry, Slice) else (entry,)
        for part in parts:
            if part is OPERAND:
                found.add(place)
            place += part is OPERAND or part is ARRAY
    return frozenset(found)


def _advanced_read(op: AdvancedSubtensor, device: Device, node: Apply) -> DeviceForm:
    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        array, *rest = operands
        index = numpy_index(op.entries, rest)
        _check_index(op, device, array, index)
        return (array[index],)

    return DeviceForm(compute, _index_numbers(op, 1), is_recordable=False)


def _advanced_write(op: AdvancedSetSubtensor, device: Device, node: Apply) -> DeviceForm | None:
    arrays = [variable for variable in node.inputs[2:] if variable.tensor_type.ndim]
    adds, dtype = isinstance(op, AdvancedIncSubtensor), node.outputs[0].tensor_type.dtype
    by_mask = all(variable.tensor_type.dtype == "bool" for variable in arrays)
    in_any_order = dtype in ADDED if adds else by_mask
    if not in_any_order and (dtype not in SCATTERED or (adds and dtype == "bool")):
        return None
    scatter = None if in_any_order else DeviceScatter(device, dtype, adds)
    listed = len(op.entries) - _whole_at_the_end(op.entries)

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        target, value, *rest = operands
        index = numpy_index(op.entries, rest)
        _check_index(op, device, target, index)
        if scatter is not None:
            result = target if op.inplace and target.flags.c_contiguous else target.copy(order="C")
            taken = sum(
                _axes_of(entry, item) for entry, item in zip(op.entries[:listed], index, strict=False)
            )
            scatter.write(result, index[:listed], value.astype(result.dtype, copy=False), target.ndim - taken)
            if op.inplace and result is not target:
                target[...] = result
            return (target if op.inplace else result,)
        result = target if op.inplace else target.copy()
        if adds:
            device.add_at(result, index, value)
        else:
            result[index] = value
        return (result,)

    return DeviceForm(compute, _index_numbers(op, 2), is_recordable=False)


def _whole_at_the_end(entries: Sequence[Any]) -> int:
    """How many of the last entries take whole axes."""
    whole = 0
    for entry in reversed(entries):
        if not (isinstance(entry, Slice) and entry.is_full):
            break
        whole += 1
    return whole


def _axes_of(entry: Any, item: Any) -> int:
    """How many axes of the array an entry takes."""
    if entry is NEW_AXIS:
        return 0
    return int(item.ndim) if entry is ARRAY and item.dtype.kind == "b" else 1


def _check_index(op: Any, device: Device, array: DeviceArray, index: tuple[Any, ...]) -> None:
    """Raise IndexingError for an element out of range, which the device would take from elsewhere."""
    shown = [f"shape {array.shape}", f"[{entries_text(op.entries)}]"]
    axis = 0
    for entry, item in zip(op.entries, index, strict=False):
        taken = _axes_of(entry, item)
        if isinstance(item, int) and not -array.shape[axis] <= item < array.shape[axis]:
            reason = f"index {item} is out of bounds for axis {axis} with size {array.shape[axis]}"
            raise IndexingError(describe(op.name, shown, reason))
        if entry is ARRAY:
            size = array.shape[axis]
            if item.dtype.kind == "b":
                if tuple(item.shape) != tuple(array.shape[axis : axis + taken]):
                    reason = f"a mask of shape {item.shape} does not fit"
                    raise IndexingError(describe(op.name, shown, reason))
            elif item.size:
                wrong = (item >= size) | (item < -size) if item.dtype.kind == "i" else item >= size
                if bool(device.arrays.any(wrong)):
                    first = int(device.download(item)[device.download(wrong)].reshape(-1)[0])
                    reason = f"index {first} is out of bounds for axis {axis} with size {size}"
                    raise IndexingError(describe(op.name, shown, reason))
        axis += taken


PARTS: Mapping[type[Op], Former] = {
    Subtensor: _subtensor,
    SetSubtensor: _part_write,
    AdvancedSubtensor: _advanced_read,
    AdvancedSetSubtensor: _advanced_write,
}
