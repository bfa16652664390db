"""Sorting, running sums and products, and searching as steps of native functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from esat.codegen.ground.lines import RunningLine, SortedSearch, StableSort
from esat.codegen.native_functions.native_plan import RoutineStep, Step
from esat.graph import Apply
from esat.ops.arrays.cumulative import Cumulative
from esat.ops.arrays.searching import SearchSorted
from esat.ops.arrays.sorting import Sort
from esat.runtime.native.native_lapack import each
from esat.runtime.native.native_memory import NativeMemory, NoNativeFormError
from esat.runtime.native.native_views import NativeView


def sorted_lines(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.sort`` and ``numpy.argsort``, by the functions that they call."""
    op = node.op
    assert isinstance(op, Sort)
    source = _axis_last(memory.view(node.inputs[0]), op.axis)
    dtype = node.inputs[0].tensor_type.numpy_dtype
    result = _axis_last(memory.target(node.outputs[0]), op.axis)
    is_sort = op.name == "sort"
    function = StableSort("sort" if is_sort else "argsort", dtype.name)
    if not source.size:
        return []
    if dtype.hasobject or not function.is_available:
        raise NoNativeFormError
    memory.refuses()
    count = source.shape[-1]
    kind = node.outputs[0].tensor_type.numpy_dtype
    lines = result if result.is_contiguous else memory.scratch(source.shape, kind)
    if is_sort:
        sorting, steps = [lines], memory.move(lines, source, kind)
    else:
        numbers = NativeView(memory.fixed(np.arange(count)), (count,), (1,), kind.itemsize)
        shape = (1,) * (len(source.shape) - 1) + (count,)
        steps = memory.move(lines, numbers.reshaped(shape).stretched(source.shape), kind)
        if not source.is_contiguous:
            copy = memory.scratch(source.shape, dtype)
            steps += memory.move(copy, source, dtype)
            source = copy
        sorting = [source, lines]

    def line(*views: NativeView) -> list[Step]:
        places = tuple(view.place for view in views)
        return [RoutineStep(function.address(), places, integers=(count, 0), returns_status=True)]

    steps += each(memory, sorting, [1] * len(sorting), source.shape[:-1], line)
    return steps if lines is result else [*steps, *memory.move(result, lines, kind)]


def running_lines(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.cumsum`` and ``numpy.cumprod``."""
    op = node.op
    assert isinstance(op, Cumulative)
    function = RunningLine("cumsum" if op.name == "cumsum" else "cumprod", node.inputs[0].tensor_type.dtype)
    source = _axis_last(memory.view(node.inputs[0]), op.axis)
    target = _axis_last(memory.target(node.outputs[0]), op.axis)
    if not source.size:
        return []
    if not function.is_available or target.may_overlap(source):
        raise NoNativeFormError

    def line(one: NativeView, other: NativeView) -> list[Step]:
        integers = (one.shape[0], other.byte_strides[0], one.byte_strides[0])
        return [RoutineStep(function.address(), (other.place, one.place), integers=integers)]

    return each(memory, [source, target], [1, 1], source.shape[:-1], line)


def searched(memory: NativeMemory, node: Apply) -> list[Step]:
    """As ``numpy.searchsorted``."""
    assert isinstance(node.op, SearchSorted)
    function = SortedSearch(node.op.side, node.inputs[0].tensor_type.dtype)
    if not function.is_available:
        raise NoNativeFormError
    (elements, copies), (keys, more) = map(memory.in_order, node.inputs)
    places = memory.target(node.outputs[0])
    integers = (elements.size, keys.size)
    pointers = (elements.place, keys.place, places.place)
    return [*copies, *more, RoutineStep(function.address(), pointers, integers=integers)]


def _axis_last(view: NativeView, axis: int) -> NativeView:
    order = [*(other for other in range(len(view.shape)) if other != axis), axis]
    shape, strides = (tuple(one[place] for place in order) for one in (view.shape, view.strides))
    return replace(view, shape=shape, strides=strides)
