"""Views, new arrays, and arrays put together, on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esat.gpu.device import Device
from esat.gpu.forms.form import DeviceForm, Former, from_place
from esat.graph import Apply
from esat.graph.op import Op
from esat.ops.arrays.creation import Alloc, DiagonalMatrix
from esat.ops.arrays.diagonal import Diagonal, DiagonalOf
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.join import Join, Split
from esat.ops.arrays.view import Reshape
from esat.ops.control import Assert
from esat.ops.inference.vectors import MakeVector


def _reshape(op: Reshape, device: Device, node: Apply) -> DeviceForm:
    return DeviceForm(op.perform, frozenset((1,)))


def _dimshuffle(op: DimShuffle, device: Device, node: Apply) -> DeviceForm:
    kept = [int(axis) for axis in op.order if axis != "x"]
    order = (*op.dropped, *kept)
    index = (*([0] * len(op.dropped)), *(None if axis == "x" else slice(None) for axis in op.order))

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        (array,) = operands
        if any(array.shape[axis] != 1 for axis in op.dropped):
            return op.perform(operands)  # which says what is wrong
        return (array.transpose(order)[index],)

    return DeviceForm(compute)


def _alloc(op: Alloc, device: Device, node: Apply) -> DeviceForm:
    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        value, *sizes = operands
        result = device.empty(tuple(int(size) for size in sizes), value.dtype)
        result[...] = value
        return (result,)

    return DeviceForm(compute, from_place(1, node))


def _diagonal_matrix(op: DiagonalMatrix, device: Device, node: Apply) -> DeviceForm:
    function = device.arrays.eye if op.name == "eye" else device.arrays.tri

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        rows, columns, diagonal = (int(number) for number in operands)
        return (function(rows, columns, diagonal, dtype=op.dtype),)

    return DeviceForm(compute, from_place(0, node), is_recordable=False)


def _diagonal(op: Diagonal, device: Device, node: Apply) -> DeviceForm:
    return DeviceForm(lambda operands: (device.arrays.diagonal(operands[0], op.offset, -2, -1),))


def _diagonal_of(op: DiagonalOf, device: Device, node: Apply) -> DeviceForm:
    return DeviceForm(lambda operands: (device.arrays.diag(operands[0], op.offset),))


def _make_vector(op: MakeVector, device: Device, node: Apply) -> DeviceForm:
    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        result = device.empty((len(operands),), np.dtype(op.dtype))
        for place, scalar in enumerate(operands):
            result[place] = scalar
        return (result,)

    return DeviceForm(compute)


def _join(op: Join, device: Device, node: Apply) -> DeviceForm:
    return DeviceForm(lambda operands: (device.arrays.concatenate(list(operands), axis=op.axis),))


def _split(op: Split, device: Device, node: Apply) -> DeviceForm:
    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        (array,) = operands
        size, rest = divmod(array.shape[op.axis], op.parts)
        if rest:
            return op.perform(operands)  # which says what is wrong
        before = (slice(None),) * op.axis
        return [array[(*before, slice(part * size, (part + 1) * size))] for part in range(op.parts)]

    return DeviceForm(compute)


def _assert(op: Assert, device: Device, node: Apply) -> DeviceForm:
    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        value, *conditions = operands
        if not all(bool(device.arrays.all(condition)) for condition in conditions):
            op.perform([value, *map(device.download, conditions)])
        return (value,)

    return DeviceForm(compute, is_recordable=False)


SHAPES: Mapping[type[Op], Former] = {
    Reshape: _reshape,
    DimShuffle: _dimshuffle,
    Assert: _assert,
    Alloc: _alloc,
    DiagonalMatrix: _diagonal_matrix,
    Diagonal: _diagonal,
    DiagonalOf: _diagonal_of,
    MakeVector: _make_vector,
    Join: _join,
    Split: _split,
}
