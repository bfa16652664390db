"""Sizes as values: the size of an axis, as a scalar that a graph can compute with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import AxisError, DtypeError, ShapeError, describe
from esat.graph.algorithms.folding import fold
from esat.graph.constants import constant
from esat.graph.op import Array, Family, Op, as_variable
from esat.graph.registry import op_named
from esat.graph.sparse_type import SparseType
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axis

_MOST_FOLDED = 64
"""Leaves of a computation of sizes up to which its value is found at once."""


@record(frozen=True, eq=False, repr=False)
class ShapeI(Op):
    """The size of one axis, as an int64 scalar; axis 2 of a sparse matrix has its stored values."""

    axis: int
    name, constructor, family = "shape_i", "ShapeI", Family.LIBRARY
    host_only = "a size, which the host knows"
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].type
        axes = 3 if isinstance(source, SparseType) else inputs[0].tensor_type.ndim
        if not 0 <= self.axis < axes:
            raise AxisError(describe(str(self), [source], f"the operand has {axes} axes"))
        return (TensorType("int64"),)

    def perform(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        (value,) = inputs
        size = value.nnz if self.axis == len(value.shape) else value.shape[self.axis]
        return (np.asarray(size, dtype=np.int64),)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        return [None]

    def __str__(self) -> str:
        return f"shape_i{{{self.axis}}}"


def size_of(variable: Variable, axis: int) -> Variable:
    """The size of an axis as an int64 scalar; a Constant where the type knows it."""
    type = variable.tensor_type
    index = normalize_axis("shape", axis, type.ndim)
    known = type.shape[index]
    if known is not None:
        return constant(known, "int64")
    result: Variable = ShapeI(index)(variable)
    return result


def sizes_of(variable: Variable) -> tuple[Variable, ...]:
    """The sizes of all axes, as by :func:`size_of`."""
    return tuple(size_of(variable, axis) for axis in range(variable.tensor_type.ndim))


def as_size(name: str, value: Any) -> Variable:
    """A size or bound as an int64 scalar.

    Raises
    ------
    DtypeError
        When it is not an integer.
    ShapeError
        When it is not a scalar.
    """
    variable = as_variable(value)
    type = variable.tensor_type
    if type.kind not in "iu":
        raise DtypeError(describe(name, [type], f"a size is an integer, not {variable}"))
    if type.ndim != 0:
        raise ShapeError(describe(name, [type], "a size is a scalar"))
    return folded(cast(variable, "int64"))


def folded(variable: Variable, most: int = _MOST_FOLDED) -> Variable:
    """A scalar as a Constant where it is computed from Constants by few steps; else itself."""
    node = variable.owner
    if node is None or len(node.outputs) != 1 or most < len(node.inputs):
        return variable
    if node.op.name == "subtensor":
        element = _indexed(node)
        return variable if element is None else folded(element, most - 1)
    if any(operand.type != variable.type for operand in node.inputs):
        return variable
    known = fold(node, [folded(operand, most // len(node.inputs)) for operand in node.inputs])
    return variable if known is None else known[0]


def _indexed(node: Apply) -> Variable | None:
    """What a fixed index picks of a vector whose elements are known, such as the sizes of an array."""
    entry = _only_entry(node)
    return _element(node.inputs[0], entry) if isinstance(entry, int) else None


def _only_entry(node: Apply) -> Any:
    """The index of a vector that is the same at each call; None for any other."""
    entries: tuple[Any, ...] = getattr(node.op, "entries", ())
    fixed = len(entries) == len(node.inputs) == node.inputs[0].tensor_type.ndim == 1
    return entries[0] if fixed else None


def _element(vector: Variable, place: int) -> Variable | None:
    """An element of a vector, not negative, where the graph shows it."""
    type, owner = vector.tensor_type, vector.owner
    if type.ndim != 1 or type.shape[0] is None or not 0 <= place < type.shape[0]:
        return None
    if isinstance(vector, Constant):
        return constant(vector.data[place], type.dtype)
    if owner is None:
        return None
    match owner.op.name:
        case "make_vector":
            return owner.inputs[place]
        case "subtensor":
            source, entry = owner.inputs[0], _only_entry(owner)
            length = None if entry is None else source.tensor_type.shape[0]
            if length is None:
                return None
            return _element(source, range(length)[entry.start : entry.stop : entry.step][place])
        case "join":
            return _joined_element(owner.inputs, place)
    return None


def _joined_element(parts: Sequence[Variable], place: int) -> Variable | None:
    for part in parts:
        length = part.tensor_type.shape[0]
        if length is None or place < length:
            return None if length is None else _element(part, place)
        place -= length
    return None


def known_size(size: Variable) -> int | None:
    """The value of a size that is fixed at compile time, else None."""
    return int(size.data) if isinstance(size, Constant) else None


def element_count(variable: Variable, axes: Sequence[int] | None = None) -> Variable:
    """The number of elements along ``axes``, or of all, as an int64 scalar; a Constant where known."""
    known, unknown = 1, []
    for axis in range(variable.tensor_type.ndim) if axes is None else axes:
        size = size_of(variable, axis)
        if isinstance(size, Constant):
            known *= int(size.data)
        else:
            unknown.append(size)
    if not unknown:
        return constant(known, "int64")
    total = unknown[0]
    for size in unknown[1:]:
        total = op_named("mul")(total, size)
    return total if known == 1 else op_named("mul")(total, constant(known, "int64"))
