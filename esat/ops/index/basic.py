"""Basic indexing: integers and slices, as a view; and writing to the part so chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.errors import DtypeError, IndexingError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Work, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.broadcasting import pad_rank
from esat.ops.cast import cast
from esat.ops.dimshuffle import dimshuffle
from esat.ops.index.entries import (
    NEW_AXIS,
    Entry,
    Slice,
    entries_text,
    is_array_item,
    make_entry,
    numpy_index,
    split_index,
)
from esat.ops.promotion import wrap
from esat.ops.reduction import sum_to


@dataclass(frozen=True, eq=False, repr=False)
class Subtensor(Op):
    """View the part of an array that integers and slices choose: ``(array, *numbers)``.

    Attributes
    ----------
    entries
        One entry an axis of the array; the further operands are the int64 scalars its slots take.
    """

    entries: tuple[Entry, ...]
    name: str = field(default="subtensor", init=False)
    constructor: str = field(default="Subtensor", init=False)
    family: Family = field(default=Family.INDEX, init=False)
    view_map = MappingProxyType({0: (0,)})

    def properties(self) -> tuple[object, ...]:
        return (self.entries,)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        return (source.with_shape(region_shape(self.name, self.entries, source)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (select(self.name, self.entries, inputs[0], inputs[1:]),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        rest: list[Variable | None] = [None] * (len(node.inputs) - 1)
        if cotangent is None:
            return [None, *rest]
        source, *numbers = node.inputs
        zeros = zeros_like(source)
        return [IncSubtensor(self.entries)(zeros, cotangent, *numbers), *rest]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        return Work(flops=0.0, bytes=0.0, calls=0)

    def __str__(self) -> str:
        return f"{self.name}{{{entries_text(self.entries)}}}"


@dataclass(frozen=True, eq=False, repr=False)
class SetSubtensor(Op):
    """A copy of an array with one part replaced: ``(array, value, *numbers)``.

    The value is broadcast to the part. NumPy's assignment rules hold: the value is cast to the
    array's dtype.

    Attributes
    ----------
    entries
        As those of :class:`Subtensor`.
    inplace
        Whether to overwrite the array instead of a copy.
    """

    entries: tuple[Entry, ...]
    inplace: bool = False
    name: str = field(default="set_subtensor", init=False)
    constructor: str = field(default="SetSubtensor", init=False)
    family: Family = field(default=Family.INDEX, init=False)

    def __post_init__(self) -> None:
        if self.inplace:
            object.__setattr__(self, "destroy_map", MappingProxyType({0: (0,)}))

    def properties(self) -> tuple[object, ...]:
        return (self.entries, self.inplace)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        target = as_variable(inputs[0])
        value = written_value(self.name, target, inputs[1])
        shape = region_shape(self.name, self.entries, target.tensor_type)
        return (target, fit_rank(self.name, value, len(shape)), *map(as_variable, inputs[2:]))

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        target, value = inputs[0].tensor_type, inputs[1].tensor_type
        check_fits(self.name, target, value, region_shape(self.name, self.entries, target))
        return (target,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        target, value, *numbers = inputs
        result = target if self.inplace else target.copy()
        part = select(self.name, self.entries, result, numbers)
        with np.errstate(all="ignore"):
            self.write(part, value)
        return (result,)

    def write(self, part: Array, value: Array) -> None:
        """Store ``value`` in the part of the result that the entries choose."""
        try:
            part[...] = value
        except ValueError as error:
            raise ShapeError(_mismatch(self.name, part, value)) from error

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        target, value, *numbers = operands
        part = select(self.name, self.entries, target, numbers)
        flags = node.inputs[1].tensor_type.broadcastable
        for wanted, given, stretched in zip(part.shape, value.shape, flags, strict=True):
            if wanted != given and not stretched:
                raise ShapeError(_mismatch(self.name, part, value, node))

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        _, value, *numbers = node.inputs
        rest: list[Variable | None] = [None] * len(numbers)
        if cotangent is None:
            return [None, None, *rest]
        part: Variable = Subtensor(self.entries)(cotangent, *numbers)
        zero = wrap(self.name, 0, cotangent.tensor_type.dtype)
        outside: Variable = SetSubtensor(self.entries)(cotangent, zero, *numbers)
        return [outside, sum_to(part, value.tensor_type.broadcastable), *rest]

    def work(
        self, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], itemsizes: Sequence[int]
    ) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        if not self.inplace:
            return general
        part = float(np.prod(inputs[1], dtype=np.float64))
        return Work(flops=part, bytes=2 * part * itemsizes[0], calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{{entries_text(self.entries)}{', inplace' if self.inplace else ''}}}"


@dataclass(frozen=True, eq=False, repr=False)
class IncSubtensor(SetSubtensor):
    """A copy of an array with a value added to one part: ``(array, value, *numbers)``."""

    name: str = field(default="inc_subtensor", init=False)
    constructor: str = field(default="IncSubtensor", init=False)

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = SetSubtensor.prepare(self, inputs)
        check_same_kind(self.name, operands[0], inputs[1])
        return operands

    def write(self, part: Array, value: Array) -> None:
        try:
            np.add(part, value, out=part)
        except ValueError as error:
            raise ShapeError(_mismatch(self.name, part, value)) from error

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        _, value, *numbers = node.inputs
        rest: list[Variable | None] = [None] * len(numbers)
        if cotangent is None:
            return [None, None, *rest]
        part: Variable = Subtensor(self.entries)(cotangent, *numbers)
        return [cotangent, sum_to(part, value.tensor_type.broadcastable), *rest]


# ---- shared by all writes and reads


def region_shape(name: str, entries: Sequence[Entry], source: TensorType) -> tuple[int | None, ...]:
    """The static shape of the part that integers and slices choose."""
    if len(entries) != source.ndim:
        raise ShapeError(describe(name, [source], f"{len(entries)} indices for {source.ndim} axes"))
    return tuple(
        entry.length(size)
        for entry, size in zip(entries, source.shape, strict=True)
        if isinstance(entry, Slice)
    )


def select(name: str, entries: Sequence[Entry], array: Array, operands: Sequence[Array]) -> Array:
    """``array[...]`` with the operands' values; raises IndexingError where NumPy raises IndexError."""
    try:
        result: Array = array[numpy_index(entries, operands)]
    except (IndexError, ValueError) as error:
        shown = [f"shape {array.shape}", f"[{entries_text(entries)}]"]
        raise IndexingError(describe(name, shown, str(error))) from error
    return result


def written_value(name: str, target: Variable, value: Any) -> Variable:
    """``value`` in the dtype of the array it is written to, as NumPy's assignment casts it."""
    dtype = target.tensor_type.dtype
    given = value.tensor_type.kind if isinstance(value, Variable) else np.asarray(value).dtype.kind
    if given == "c" and target.tensor_type.kind != "c":
        raise DtypeError(describe(name, [target.type, value], "a complex value does not fit real elements"))
    return cast(wrap(name, value, dtype), dtype)


def check_same_kind(name: str, target: Variable, value: Any) -> None:
    """Raise DtypeError where NumPy's ``+=`` would: for a value that is not of the target's kind."""
    given = value.tensor_type.numpy_dtype if isinstance(value, Variable) else np.asarray(value).dtype
    if not np.can_cast(given, target.tensor_type.numpy_dtype, "same_kind"):
        reason = f"adding {given} to {target.tensor_type.dtype} would lose its kind; cast it first"
        raise DtypeError(describe(name, [target.type, given], reason))


def fit_rank(name: str, value: Variable, rank: int) -> Variable:
    """``value`` with new axes in front up to ``rank``."""
    if value.tensor_type.ndim > rank:
        raise ShapeError(describe(name, [value.type], f"the part has only {rank} axes"))
    return pad_rank(value, rank)


def check_fits(name: str, target: TensorType, value: TensorType, part: Sequence[int | None]) -> None:
    """Raise ShapeError when sizes known of the value and of the part do not go together."""
    for axis, (given, wanted) in enumerate(zip(value.shape, part, strict=True)):
        if given not in (1, None) and wanted is not None and given != wanted:
            reason = f"sizes {given} and {wanted} of axis {axis} of the part do not match"
            raise ShapeError(describe(name, [target, value], reason))


def zeros_like(variable: Variable) -> Variable:
    """Zeros of the variable's shape and dtype."""
    zero = wrap("zeros_like", 0, variable.tensor_type.dtype)
    result: Variable = op_named("fill")(variable, zero)
    return result


def _mismatch(name: str, part: Array, value: Array, node: Apply | None = None) -> str:
    reason = f"a value of shape {value.shape} does not fit the part of shape {part.shape}"
    return describe(name, [], reason, node.where if node is not None else None)


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
    return not any(isinstance(item, list) or is_array_item(item) for item in items)
