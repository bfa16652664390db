"""Writes to a part of an array: what those by slices and those by index arrays have in common."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError, ShapeError, describe
from esat.graph.op import Array, Family, Op, Shapes, Work, as_variable
from esat.graph.registry import function_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.cast import cast
from esat.ops.index.entries import Entry, entries_text, selected_shape
from esat.ops.inference.broadcasting import pad_rank
from esat.ops.inference.promotion import common_dtype, wrap
from esat.ops.reduction import sum_to


@record(frozen=True, eq=False, repr=False)
class PartWrite(Op):
    """A copy of an array with a part written: ``(array, value, *operands of the index)``.

    The value is broadcast to the part. NumPy's assignment rules hold: the value is cast to the
    array's dtype.

    Attributes
    ----------
    entries
        Those of the op that reads the part.
    inplace
        Whether to overwrite the array instead of a copy.
    """

    entries: tuple[Entry, ...]
    inplace: bool = False
    family = Family.INDEX

    traffic: ClassVar[int]
    """How often a write in place reads or writes as many bytes as its part has."""

    def part_shape(self, target: TensorType, indices: Sequence[Variable]) -> tuple[int | None, ...]:
        """The static shape of the part."""
        raise NotImplementedError

    def part_of(self, array: Variable, indices: Sequence[Variable]) -> Variable:
        """The part, read from an array of the same shape."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        if self.inplace:
            object.__setattr__(self, "destroy_map", MappingProxyType({0: (0,)}))

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        target = as_variable(inputs[0])
        indices = tuple(map(as_variable, inputs[2:]))
        value = _written_value(self.name, target, inputs[1])
        rank = len(self.part_shape(target.tensor_type, indices))
        if value.tensor_type.ndim > rank:
            raise ShapeError(describe(self.name, [value.type], f"the part has only {rank} axes"))
        return (target, pad_rank(value, rank), *indices)

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        target, value = inputs[0].tensor_type, inputs[1].tensor_type
        part = self.part_shape(target, inputs[2:])
        for axis, (given, wanted) in enumerate(zip(value.shape, part, strict=True)):
            if given not in (1, None) and wanted is not None and given != wanted:
                reason = f"sizes {given} and {wanted} of axis {axis} of the part do not match"
                raise ShapeError(describe(self.name, [target, value], reason))
        return (target,)

    def check_operands(self, node: Apply, operands: Sequence[Array]) -> None:
        target, value, *indices = operands
        part = selected_shape(self.name, self.entries, target, indices)
        flags = node.inputs[1].tensor_type.broadcastable
        for wanted, given, stretched in zip(part, value.shape, flags, strict=True):
            if wanted != given and not stretched:
                raise ShapeError(mismatch(self.name, part, value, node))

    def linear_in(self, count: int) -> range:
        return range(2)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        results: tuple[Variable, ...] = function_named("batched_write")(self, node, inputs, batched)
        return results

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        target, value, *indices = node.inputs
        rest: list[Variable | None] = [None] * len(indices)
        if cotangent is None:
            return [None, None, *rest]
        part = self.part_of(cotangent, indices)
        of_array, of_part = self.gradient(target, cotangent, part, indices)
        return [of_array, sum_to(of_part, value.tensor_type.broadcastable), *rest]

    def gradient(
        self, target: Variable, cotangent: Variable, part: Variable, indices: Sequence[Variable]
    ) -> tuple[Variable, Variable]:
        """What of the result's cotangent, and of the part of it, goes to the array and to the value."""
        raise NotImplementedError

    def work(self, inputs: Shapes, outputs: Shapes, itemsizes: Sequence[int]) -> Work:
        general = Op.work(self, inputs, outputs, itemsizes)
        if not self.inplace:
            return general
        part = float(np.prod(inputs[1], dtype=np.float64))
        return Work(flops=part, bytes=self.traffic * part * itemsizes[0], calls=1)

    def __str__(self) -> str:
        return f"{self.name}{{{entries_text(self.entries)}{', inplace' if self.inplace else ''}}}"


class Replacing(PartWrite):
    """Writes after which the array's part no longer matters."""

    def gradient(
        self, target: Variable, cotangent: Variable, part: Variable, indices: Sequence[Variable]
    ) -> tuple[Variable, Variable]:
        zero = wrap(self.name, 0, cotangent.tensor_type.dtype)
        outside: Variable = type(self)(self.entries)(cotangent, zero, *indices)
        return outside, part


class Adding(PartWrite):
    """Writes that add to what is there."""

    def prepare(self, inputs: Sequence[Any]) -> tuple[Variable, ...]:
        operands = super().prepare(inputs)
        _check_same_kind(self.name, operands[0], inputs[1])
        return operands

    def gradient(
        self, target: Variable, cotangent: Variable, part: Variable, indices: Sequence[Variable]
    ) -> tuple[Variable, Variable]:
        return cotangent, part


def mismatch(name: str, part: tuple[int, ...], value: Array, node: Apply | None = None) -> str:
    """The message for a value that does not fit a part of this shape."""
    reason = f"a value of shape {value.shape} does not fit the part of shape {part}"
    return describe(name, [], reason, node.where if node is not None else None)


def _written_value(name: str, target: Variable, value: Any) -> Variable:
    """``value`` in the dtype of the array it is written to, as NumPy's assignment casts it."""
    dtype = target.tensor_type.dtype
    given = as_variable(value).tensor_type.kind
    if given == "c" and target.tensor_type.kind != "c":
        raise DtypeError(describe(name, [target.type, value], "a complex value does not fit real elements"))
    return cast(wrap(name, value, dtype), dtype)


def _check_same_kind(name: str, target: Variable, value: Any) -> None:
    """Raise DtypeError where NumPy's ``+=`` would: for a sum that is not of the target's kind."""
    total = common_dtype(name, [target, value])
    if not np.can_cast(total, target.tensor_type.numpy_dtype, "same_kind"):
        given = value.tensor_type.dtype if isinstance(value, Variable) else np.asarray(value).dtype
        reason = f"adding {given} to {target.tensor_type.dtype} would lose its kind; cast it first"
        raise DtypeError(describe(name, [target.type, given], reason))
