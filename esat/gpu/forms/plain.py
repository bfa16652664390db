"""Elementwise functions, reductions, sorting and scans by cupy, where no kernel is printed for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esat.gpu.device import Device, DeviceArray
from esat.gpu.forms.form import DeviceForm, Former
from esat.graph import Apply
from esat.graph.op import Op
from esat.ops.annotations.assume import Assume
from esat.ops.annotations.checkpoint import Checkpoint
from esat.ops.annotations.gradients import StopGradient, WithGradient
from esat.ops.arrays.cumulative import Cumulative
from esat.ops.arrays.searching import SearchSorted
from esat.ops.arrays.sorting import Sort
from esat.ops.cast import Cast
from esat.ops.control import After, SpecifyShape
from esat.ops.convolution import Convolution
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.fourier import Fourier
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction


def _same(op: Op, device: Device, node: Apply) -> DeviceForm:
    """Ops whose ``perform`` hands its operands on, or looks at their shapes only."""
    return DeviceForm(op.perform)


def _elementwise(op: Elementwise, device: Device, node: Apply) -> DeviceForm | None:
    name = getattr(op.numpy, "__name__", "")
    function = getattr(device.arrays, name, None) if getattr(np, name, None) is op.numpy else None
    complex_ = any(variable.tensor_type.kind == "c" for variable in node.inputs)
    if function is None or (complex_ and not _takes_complex(function, op.numpy)):
        return None
    return DeviceForm(lambda operands: (function(*operands),))


def _takes_complex(function: Any, known: Any) -> bool:
    """Whether a function has loops for complex numbers; what says nothing of its loops is like NumPy's."""
    teller = function if hasattr(function, "types") else known
    return any("D" in loop for loop in getattr(teller, "types", ()))


def _cast(op: Cast, device: Device, node: Apply) -> DeviceForm:
    dtype = np.dtype(op.dtype)

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        (array,) = operands
        if array.dtype.kind == "c" and dtype.kind not in "cb":
            array = array.real
        if array.dtype.kind == "f" and dtype == np.uint32:
            array = array.astype(np.int64)  # as on the host: modulo 2**32
        return (array.astype(dtype),)

    return DeviceForm(compute)


def _reduction(op: Reduction, device: Device, node: Apply) -> DeviceForm | None:
    xp, name, keepdims = device.arrays, op.name, op.keepdims
    axes: Any = op.axes
    if op.typing == "argreduce":
        if len(axes) > 1 or keepdims:
            return None
        axes = axes[0] if axes else None
    if name == "logsumexp":
        return DeviceForm(lambda operands: (_logsumexp(xp, operands[0], axes, keepdims),))
    function = getattr(xp, name)
    return DeviceForm(lambda operands: (function(operands[0], axis=axes, keepdims=keepdims),))


def _logsumexp(xp: Any, array: DeviceArray, axes: Any, keepdims: bool) -> DeviceArray:
    if 0 in array.shape:
        total = xp.log(xp.sum(array.real, axis=axes, keepdims=True))
    else:
        highest = xp.max(array.real, axis=axes, keepdims=True)
        shift = xp.where(xp.isfinite(highest), highest, xp.zeros_like(highest))
        total = xp.log(xp.sum(xp.exp(array - shift), axis=axes, keepdims=True)) + shift
    return total if keepdims else xp.squeeze(total, axes)


def _normalization(op: Normalization, device: Device, node: Apply) -> DeviceForm:
    xp, axes = device.arrays, op.axes

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        (array,) = operands
        if array.size == 0:
            return (array.copy(),)
        shifted = array - xp.max(array, axis=axes, keepdims=True)
        exponentials = xp.exp(shifted)
        total = xp.sum(exponentials, axis=axes, keepdims=True)
        return (exponentials / total if op.name == "softmax" else shifted - xp.log(total),)

    return DeviceForm(compute)


def _cumulative(op: Cumulative, device: Device, node: Apply) -> DeviceForm:
    function = getattr(device.arrays, op.name)
    return DeviceForm(lambda operands: (function(operands[0], axis=op.axis),))


def _sort(op: Sort, device: Device, node: Apply) -> DeviceForm:
    function = getattr(device.arrays, op.name)
    return DeviceForm(lambda operands: (function(operands[0], axis=op.axis, kind="stable"),))


def _searchsorted(op: SearchSorted, device: Device, node: Apply) -> DeviceForm:
    function = device.arrays.searchsorted
    return DeviceForm(lambda operands: (function(*operands, side=op.side),))


def _convolution(op: Convolution, device: Device, node: Apply) -> DeviceForm:
    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        if 0 in (operands[0].size, operands[1].size):
            return op.perform(operands)  # which says what is wrong
        return (device.arrays.convolve(*operands),)

    return DeviceForm(compute, is_recordable=False)


def _fourier(op: Fourier, device: Device, node: Apply) -> DeviceForm:
    function = getattr(device.arrays.fft, op.name)

    def compute(operands: Sequence[Any]) -> Sequence[Any]:
        if operands[0].shape[-1] == 0:
            return op.perform(operands)  # which says what is wrong
        return (function(operands[0], op.size),)

    return DeviceForm(compute, is_recordable=False)


PLAIN: Mapping[type[Op], Former] = {
    Elementwise: _elementwise,
    Cast: _cast,
    Reduction: _reduction,
    Normalization: _normalization,
    Cumulative: _cumulative,
    Sort: _sort,
    SearchSorted: _searchsorted,
    Convolution: _convolution,
    Fourier: _fourier,
    SpecifyShape: _same,
    Assume: _same,
    After: _same,
    Checkpoint: _same,
    StopGradient: _same,
    WithGradient: _same,
}
