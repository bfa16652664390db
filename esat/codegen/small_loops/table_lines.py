"""Operations on tables in LLVM's text: parts are where the whole is, and are written to there."""

from __future__ import annotations

from math import prod

import numpy as np

from esat.codegen.small_loops.number_lines import KINDS, NoCodeError, computed
from esat.codegen.small_loops.step_lines import MOST_NUMBERS
from esat.codegen.small_loops.stored_tables import StoredTable
from esat.codegen.small_loops.value_lines import Affine, Patched, Value, ValueLines, one_number
from esat.graph import Apply, Constant
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor


def part(lines: ValueLines, node: Apply) -> list[Value] | None:
    """A part of an array, or an element; None of few numbers at places that are known."""
    array = lines.value(node.inputs[0])
    op = node.op
    assert isinstance(op, Subtensor)
    if isinstance(array, np.ndarray) and all(isinstance(one, Constant) for one in node.inputs[1:]):
        return None
    entries, told = lines.entries(node, 1, array.shape)
    if isinstance(array, Affine | np.ndarray):
        array = lines.own(array, node.inputs[0].tensor_type.dtype)
    if all(isinstance(one, str) for one in entries):
        dtype = node.outputs[0].tensor_type.dtype
        return [one_number(_read(lines, array, [str(one) for one in entries], dtype))]
    if isinstance(array, Patched):
        raise NoCodeError
    return [lines.chosen(array, entries, told)]


def _read(lines: ValueLines, array: Value, places: list[str], dtype: str) -> str:
    if isinstance(array, StoredTable):
        return lines.load(array, places)
    before, same = _read(lines, array.array, places, dtype), "true"
    for own, other in zip(array.places, places, strict=True):
        same = lines.code.value(f"and i1 {same}, {computed(lines.code, 'eq', 'int64', own, other)}")
    return lines.code.value(f"select i1 {same}, {KINDS[dtype]} {array.value}, {KINDS[dtype]} {before}")


def written(lines: ValueLines, node: Apply) -> list[Value] | None:
    """An array with a part written, where it is; None of few numbers at places that are known."""
    op, dtype = node.op, node.inputs[0].tensor_type.dtype
    if type(op) not in (SetSubtensor, IncSubtensor):
        raise NoCodeError
    array, value = lines.value(node.inputs[0]), lines.value(node.inputs[1])
    if isinstance(array, np.ndarray) and all(isinstance(one, Constant) for one in node.inputs[2:]):
        return None
    entries, told = lines.entries(node, 2, array.shape)
    adds = isinstance(op, IncSubtensor)
    is_element = all(isinstance(one, str) for one in entries)
    if node.outputs[0] not in lines.handed and is_element:
        if isinstance(array, Affine | np.ndarray):
            array = lines.own(array, dtype)
        places, number = [str(one) for one in entries], lines.numbers(node.inputs[1]).item()
        if adds:
            number = computed(lines.code, "add", dtype, _read(lines, array, places, dtype), number)
        return [Patched(array, places, number)]
    if (
        isinstance(value, StoredTable)
        and isinstance(array, StoredTable)
        and not adds
        and value.root is array.root
    ):
        part = lines.chosen(array, entries, told)
        is_same = (value.part, value.shape) == (part.part, part.shape)
        if not (is_same and array.has_kept(value)):
            raise NoCodeError
        return [array.now()]
    array = lines.own(array, dtype)
    if not array.is_current:
        raise NoCodeError
    part = lines.chosen(array, entries, told)
    if part.size:
        lines.put(part, value, (lambda a, b: computed(lines.code, "add", dtype, a, b)) if adds else None)
    part.written()
    return [array.now()]


def shuffled(lines: ValueLines, node: Apply) -> list[Value] | None:
    """A table with its axes in another order; None of few numbers."""
    array, op = lines.value(node.inputs[0]), node.op
    assert isinstance(op, DimShuffle)
    if not isinstance(array, StoredTable):
        return None
    shape = [1 if axis == "x" else array.shape[int(axis)] for axis in op.order]
    strides = [0 if axis == "x" else array.strides[int(axis)] for axis in op.order]
    return [array.chosen(("shuffled", op.order), array.pointer, shape, strides)]


def filled(lines: ValueLines, node: Apply) -> list[Value] | None:
    """A table of one number; None of few numbers."""
    shape = tuple(node.outputs[0].tensor_type.shape)
    if None in shape or not prod(size or 0 for size in shape):
        raise NoCodeError
    sizes = tuple(size for size in shape if size is not None)
    if prod(sizes) <= MOST_NUMBERS and node.outputs[0] not in lines.handed:
        return None
    table = lines.fresh(sizes, node.outputs[0].tensor_type.dtype)
    lines.put(table, lines.value(node.inputs[0]))
    return [table.written()]


def size(lines: ValueLines, node: Apply) -> list[Value]:
    """The size of an axis."""
    assert isinstance(node.op, ShapeI)
    return [one_number(str(lines.value(node.inputs[0]).shape[node.op.axis]))]


def asserted(lines: ValueLines, node: Apply) -> list[Value]:
    """The value, where its conditions hold."""
    for one in node.inputs[1:]:
        for bit in lines.numbers(one).flat:
            lines.require(bit)
    return [lines.value(node.inputs[0])]
