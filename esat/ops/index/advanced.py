"""Advanced indexing: index arrays and boolean masks, read and written with NumPy's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import IndexingError, describe
from esat.graph.op import Array, Family, Op
from esat.graph.registry import function_named, op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.shape import element_count, sizes_of
from esat.ops.arrays.view import reshape
from esat.ops.index.basic import zeros_like
from esat.ops.index.entries import (
    ARRAY,
    NEW_AXIS,
    OPERAND,
    Entry,
    Slice,
    constant_numbers,
    entries_text,
    make_entry,
    numpy_index,
    select,
    split_index,
    with_numbers,
)
from esat.ops.index.write import Adding, Replacing
from esat.ops.inference.promotion import wrap


@record(frozen=True, eq=False, repr=False)
class AdvancedSubtensor(Op):
    """The elements of an array that index arrays choose: ``(array, *numbers and index arrays)``.

    Index arrays, and integers among them, are broadcast against each other; their axes stand where the
    first of them stood if they are neighbours, else in front. A mask counts as its ``nonzero``.

    Attributes
    ----------
    entries
        One entry an axis of the array (a mask stands for as many axes as it has) or new axis; the further
        operands are what the slots take, in order.
    """

    entries: tuple[Entry, ...]
    name, constructor, family = "advanced_subtensor", "AdvancedSubtensor", Family.INDEX

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        return (source.with_shape(chosen_shape(self.name, self.entries, source, inputs[1:])),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.array(select(self.name, self.entries, inputs[0], inputs[1:])),)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        results: tuple[Variable, ...] = function_named("batched_read")(
            self, self.entries, node, inputs, batched
        )
        return results

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        rest: list[Variable | None] = [None] * (len(node.inputs) - 1)
        if cotangent is None:
            return [None, *rest]
        source, *indices = node.inputs
        added: Variable = AdvancedIncSubtensor(self.entries)(zeros_like(source), cotangent, *indices)
        return [added, *rest]

    def __str__(self) -> str:
        return f"{self.name}{{{entries_text(self.entries)}}}"


@record(frozen=True, eq=False, repr=False)
class AdvancedSetSubtensor(Replacing):
    """A copy of an array with chosen elements replaced: ``(array, value, *numbers and index arrays)``.

    Where an element is chosen more than once the last value stays, as in NumPy.
    """

    name, constructor = "advanced_set_subtensor", "AdvancedSetSubtensor"
    traffic = 3

    def part_shape(self, target: TensorType, indices: Sequence[Variable]) -> tuple[int | None, ...]:
        return chosen_shape(self.name, self.entries, target, indices)

    def part_of(self, array: Variable, indices: Sequence[Variable]) -> Variable:
        part: Variable = AdvancedSubtensor(self.entries)(array, *indices)
        return part

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        target, value, *indices = inputs
        result = target if self.inplace else target.copy()
        try:
            with np.errstate(all="ignore"):
                self.store(result, numpy_index(self.entries, indices), value)
        except (IndexError, ValueError) as error:
            shown = [f"shape {array.shape}" for array in inputs]
            raise IndexingError(describe(self.name, shown, str(error))) from error
        return (result,)

    def store(self, result: Array, index: Any, value: Array) -> None:
        """Write ``value`` to ``result[index]``."""
        result[index] = value

    def gradient(
        self, target: Variable, cotangent: Variable, part: Variable, indices: Sequence[Variable]
    ) -> tuple[Variable, Variable]:
        outside, kept = super().gradient(target, cotangent, part, indices)
        dtypes = [variable.tensor_type.dtype for variable in _array_operands(self.entries, indices)]
        if dtypes != ["bool"]:
            zero = wrap(self.name, 0, cotangent.tensor_type.dtype)
            kept = op_named("switch")(self._stays(target, part, indices), part, zero)
        return outside, kept

    def _stays(self, target: Variable, part: Variable, indices: Sequence[Variable]) -> Variable:
        """Which elements of the value are not overwritten by a later one.

        Each element writes its number; what is read back is the number of the last writer.
        """
        numbers = reshape(arange(element_count(part)), sizes_of(part))
        blank = op_named("fill")(target, wrap(self.name, 0, "int64"))
        written = AdvancedSetSubtensor(self.entries)(blank, numbers, *indices)
        read = AdvancedSubtensor(self.entries)(written, *indices)
        stays: Variable = op_named("eq")(read, numbers)
        return stays


@record(frozen=True, eq=False, repr=False)
class AdvancedIncSubtensor(Adding, AdvancedSetSubtensor):
    """A copy of an array with a value added to chosen elements: ``(array, value, *index operands)``.

    An element chosen several times gets all the values, as by ``numpy.add.at``.
    """

    name, constructor = "advanced_inc_subtensor", "AdvancedIncSubtensor"

    def store(self, result: Array, index: Any, value: Array) -> None:
        np.add.at(result, index, value)


def chosen_shape(
    name: str, entries: Sequence[Entry], source: TensorType, operands: Sequence[Variable]
) -> tuple[int | None, ...]:
    """The static shape of ``source[...]``, by NumPy's rules of advanced indexing.

    Raises
    ------
    IndexingError
        When index arrays do not broadcast, or a mask does not have the sizes of its axes.
    """
    axis = 0
    arrays = iter(_array_operands(entries, operands))
    shape: list[int | None] = []
    index_shapes: list[tuple[int | None, ...]] = []
    places: list[tuple[int, int]] = []
    for position, entry in enumerate(with_numbers(entries, constant_numbers(operands))):
        if entry is NEW_AXIS:
            shape.append(1)
            continue
        if isinstance(entry, Slice):
            shape.append(entry.length(source.shape[axis]))
            axis += 1
            continue
        places.append((position, len(shape)))
        taken = 1
        if entry is ARRAY:
            type = next(arrays).tensor_type
            taken = type.ndim if type.dtype == "bool" else 1
            index_shapes.append(_index_shape(name, type, source.shape[axis : axis + taken]))
        axis += taken
    if axis != source.ndim:
        raise IndexingError(describe(name, [source], f"{axis} indices for {source.ndim} axes"))
    positions = [position for position, _ in places]
    together = positions == list(range(positions[0], positions[0] + len(positions)))
    place = places[0][1] if together else 0
    return (*shape[:place], *_broadcast(name, index_shapes), *shape[place:])


def _array_operands(entries: Sequence[Entry], operands: Sequence[Variable]) -> list[Variable]:
    remaining = iter(operands)
    arrays = []
    for entry in entries:
        if entry is ARRAY:
            arrays.append(next(remaining))
        elif entry is OPERAND:
            next(remaining)
        elif isinstance(entry, Slice):
            for part in entry.parts():
                if part is OPERAND:
                    next(remaining)
    return arrays


def _index_shape(name: str, type: TensorType, sizes: Sequence[int | None]) -> tuple[int | None, ...]:
    if type.dtype != "bool":
        return type.shape
    for mask_size, size in zip(type.shape, sizes, strict=True):
        if None not in (mask_size, size) and mask_size != size:
            reason = f"a mask of shape {type.shape} does not fit axes of sizes {tuple(sizes)}"
            raise IndexingError(describe(name, [type], reason))
    return (None,)


def _broadcast(name: str, shapes: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    rank = max(map(len, shapes))
    result: list[int | None] = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        known = set(sizes) - {1, None}
        if len(known) > 1:
            reason = f"index arrays of shapes {', '.join(map(str, shapes))} do not broadcast"
            raise IndexingError(describe(name, [], reason))
        result.append(known.pop() if known else None if None in sizes else 1)
    return tuple(result)


def advanced_subtensor(operand: Variable, index: Any) -> Variable:
    """``operand[index]`` for an index with arrays or masks.

    Raises
    ------
    IndexingError
        For too many indices, or arrays that do not broadcast; at run time for elements out of range.
    """
    name = "advanced_subtensor"
    type = operand.tensor_type
    operands: list[Variable] = []
    entries: list[Entry] = []
    axis = 0
    for item in split_index(name, index, type):
        size = type.shape[axis] if axis < type.ndim else None
        entries.append(make_entry(name, item, size, operands))
        if entries[-1] is ARRAY:
            chosen = operands[-1].tensor_type
            _check_range(name, operands[-1], size)
            axis += chosen.ndim if chosen.dtype == "bool" else 1
        elif item is not None:
            axis += 1
    result: Variable = AdvancedSubtensor(tuple(entries))(operand, *operands)
    return result


def _check_range(name: str, index: Variable, size: int | None) -> None:
    if not isinstance(index, Constant) or index.tensor_type.dtype == "bool" or size is None:
        return
    if index.data.size and not -size <= int(index.data.min()) <= int(index.data.max()) < size:
        raise IndexingError(describe(name, [index.type], f"an index is out of range for size {size}"))
