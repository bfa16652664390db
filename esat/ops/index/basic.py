"""Basic indexing: integers and slices, as a view; and writing to the part so chosen."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Family, Op
from esat.graph.registry import function_named, op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.index.entries import (
    NEW_AXIS,
    Entry,
    Slice,
    constant_numbers,
    entries_text,
    is_array_item,
    make_entry,
    select,
    split_index,
    with_numbers,
)
from esat.ops.index.write import Adding, Replacing, mismatch
from esat.ops.inference.promotion import wrap


@record(frozen=True, eq=False, repr=False)
class Subtensor(Op):
    """View the part of an array that integers and slices choose: ``(array, *numbers)``.

    Attributes
    ----------
    entries
        One entry an axis of the array; the further operands are the int64 scalars its slots take.
    """

    entries: tuple[Entry, ...]
    name, constructor, family = "subtensor", "Subtensor", Family.INDEX
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        return (source.with_shape(region_shape(self.name, self.entries, source, inputs[1:])),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (select(self.name, self.entries, inputs[0], inputs[1:]),)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        if any(batched[1:]):
            results: tuple[Variable, ...] = function_named("batched_read")(
                self, self.entries, node, inputs, batched
            )
            return results
        return tuple(Subtensor((Slice(), *self.entries)).make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        rest: list[Variable | None] = [None] * (len(node.inputs) - 1)
        if cotangent is None:
            return [None, *rest]
        source, *numbers = node.inputs
        zeros = zeros_like(source)
        return [IncSubtensor(self.entries)(zeros, cotangent, *numbers), *rest]

    def __str__(self) -> str:
        return f"{self.name}{{{entries_text(self.entries)}}}"


@record(frozen=True, eq=False, repr=False)
class SetSubtensor(Replacing):
    """A copy of an array with one part replaced: ``(array, value, *numbers)``."""

    name, constructor = "set_subtensor", "SetSubtensor"
    traffic = 2

    def part_shape(self, target: TensorType, indices: Sequence[Variable]) -> tuple[int | None, ...]:
        return region_shape(self.name, self.entries, target, indices)

    def part_of(self, array: Variable, indices: Sequence[Variable]) -> Variable:
        part: Variable = Subtensor(self.entries)(array, *indices)
        return part

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        target, value, *numbers = inputs
        result = target if self.inplace else target.copy()
        part = select(self.name, self.entries, result, numbers)
        try:
            with np.errstate(all="ignore"):
                self.write(part, value)
        except ValueError as error:
            raise ShapeError(mismatch(self.name, part.shape, value)) from error
        return (result,)

    def write(self, part: Array, value: Array) -> None:
        """Store ``value`` in the part of the result that the entries choose."""
        part[...] = value


@record(frozen=True, eq=False, repr=False)
class IncSubtensor(Adding, SetSubtensor):
    """A copy of an array with a value added to one part: ``(array, value, *numbers)``."""

    name, constructor = "inc_subtensor", "IncSubtensor"

    def write(self, part: Array, value: Array) -> None:
        np.add(part, value, out=part)


def region_shape(
    name: str, entries: Sequence[Entry], source: TensorType, numbers: Sequence[Variable] = ()
) -> tuple[int | None, ...]:
    """The static shape of the part that integers and slices choose.

    ``numbers`` are the operands of the entries; those that are constants say how long slices are.
    """
    if len(entries) != source.ndim:
        raise ShapeError(describe(name, [source], f"{len(entries)} indices for {source.ndim} axes"))
    known = with_numbers(entries, constant_numbers(numbers)) if numbers else entries
    return tuple(
        entry.length(size)
        for entry, size in zip(known, source.shape, strict=True)
        if isinstance(entry, Slice)
    )


def zeros_like(variable: Variable) -> Variable:
    """Zeros of the variable's shape and dtype."""
    zero = wrap("zeros_like", 0, variable.tensor_type.dtype)
    result: Variable = op_named("fill")(variable, zero)
    return result


def subtensor(operand: Variable, index: Any) -> Variable:
    """``operand[index]`` for integers, slices, new axes and an ellipsis.

    The result is always a node of its own, so that :func:`esat.set_subtensor` finds the array and
    the index behind it.

    Raises
    ------
    IndexingError
        For too many indices, or an integer out of range.
    """
    name = "subtensor"
    type = operand.tensor_type
    numbers: list[Variable] = []
    items = split_index(name, index, type)
    if any(map(is_array_item, items)):
        raise DtypeError(describe(name, items, "takes integers and slices only"))
    entries: list[Entry] = []
    order: list[int | str] = []
    for item in items:
        size = type.shape[len(entries)] if item is not None else None
        entry = make_entry(name, item, size, numbers)
        if isinstance(entry, Slice):
            order.append(sum(kept != "x" for kept in order))
        if entry is NEW_AXIS:
            order.append("x")
        else:
            entries.append(entry)
    part: Variable = Subtensor(tuple(entries))(operand, *numbers)
    return dimshuffle(part, order)


def is_basic(index: Any) -> bool:
    """Whether an index has integers, slices, new axes and an ellipsis only."""
    items = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(item, (list, range)) or is_array_item(item) for item in items)
