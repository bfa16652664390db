"""Diagonals: read as a view, or put into a matrix of zeros."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import ParameterError, ShapeError, describe
from esat.graph.op import Array, Family, Op, as_variable
from esat.graph.registry import op_named
from esat.graph.types import TensorType, Type
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.creation import alloc, arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor
from esat.ops.index.basic import zeros_like
from esat.ops.index.entries import ARRAY, Entry, Slice
from esat.ops.inference.axes import ordered_axes
from esat.ops.inference.promotion import wrap


@record(frozen=True, eq=False, repr=False)
class Diagonal(Op):
    """View diagonal ``offset`` of the matrices in the last two axes; it becomes the last axis."""

    offset: int = 0
    name, constructor, family = "diagonal", "Diagonal", Family.INDEX
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        if source.ndim < 2:
            raise ShapeError(describe(self.name, [source], "takes an array of at least two axes"))
        rows, columns = source.shape[-2:]
        length = None if rows is None or columns is None else self._length(rows, columns)
        return (source.with_shape((*source.shape[:-2], length)),)

    def _length(self, rows: int, columns: int) -> int:
        return max(0, min(rows + min(self.offset, 0), columns - max(self.offset, 0)))

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.diagonal(inputs[0], self.offset, -2, -1),)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        return tuple(self.make_node(*inputs).outputs)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None]
        source = node.inputs[0]
        rank = source.tensor_type.ndim
        steps = arange(size_of(node.outputs[0], rank - 2))
        rows = op_named("add")(steps, -self.offset) if self.offset < 0 else steps
        columns = op_named("add")(steps, self.offset) if self.offset > 0 else steps
        entries: tuple[Entry, ...] = (*[Slice()] * (rank - 2), ARRAY, ARRAY)
        return [AdvancedIncSubtensor(entries)(zeros_like(source), cotangent, rows, columns)]

    def __str__(self) -> str:
        return f"{self.name}{{{self.offset}}}"


@record(frozen=True, eq=False, repr=False)
class DiagonalOf(Op):
    """A square matrix with a vector on diagonal ``offset`` and zeros elsewhere."""

    offset: int = 0
    name, constructor, family = "diag", "Diag", Family.CREATION

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        source = inputs[0].tensor_type
        if source.ndim != 1:
            raise ShapeError(describe(self.name, [source], "takes a vector"))
        size = source.shape[0]
        side = None if size is None else size + abs(self.offset)
        return (TensorType(source.dtype, shape=(side, side)),)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (np.diag(inputs[0], self.offset),)

    def linear_in(self, count: int) -> range:
        return range(1)

    def batch(self, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]) -> tuple[Variable, ...]:
        (vector,) = inputs
        size = size_of(vector, 1)
        side = op_named("add")(size, abs(self.offset))
        zeros = alloc(wrap(self.name, 0, vector.tensor_type.dtype), size_of(vector, 0), side, side)
        places = arange(size)
        rows, columns = places + max(-self.offset, 0), places + max(self.offset, 0)
        written: Variable = AdvancedSetSubtensor((Slice(), ARRAY, ARRAY))(zeros, vector, rows, columns)
        return (written,)

    def vjp(self, node: Apply, cotangents: Sequence[Variable | None]) -> list[Variable | None]:
        (cotangent,) = cotangents
        return [None if cotangent is None else Diagonal(self.offset)(cotangent)]

    def __str__(self) -> str:
        return f"{self.name}{{{self.offset}}}"


LARGEST_OFFSET = 2**31 - 1


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """Diagonal ``offset`` of the matrices in two axes, as the last axis of the result.

    Raises
    ------
    AxisError
        When the axes are equal or out of range.
    ShapeError
        For an operand of fewer than two axes.
    """
    variable = as_variable(a)
    rank = variable.tensor_type.ndim
    if rank < 2:
        raise ShapeError(describe("diagonal", [variable.type], "takes an array of at least two axes"))
    pair = ordered_axes("diagonal", (axis1, axis2), rank)
    moved = dimshuffle(variable, (*(axis for axis in range(rank) if axis not in pair), *pair))
    result: Variable = Diagonal(_offset("diagonal", offset, variable))(moved)
    return result


def diag(v: Any, k: int = 0) -> Variable:
    """Diagonal ``k`` of a matrix, or the matrix with a vector on it, as ``numpy.diag``.

    Raises
    ------
    ShapeError
        For an operand that is neither vector nor matrix.
    """
    variable = as_variable(v)
    if variable.tensor_type.ndim == 2:
        return diagonal(variable, k)
    result: Variable = DiagonalOf(_offset("diag", k, variable))(variable)
    return result


def _offset(name: str, offset: Any, variable: Variable) -> int:
    """The number of a diagonal; NumPy counts them in 32 bits. Raises ParameterError for anything else."""
    try:
        number = operator.index(offset)
    except TypeError:
        number = LARGEST_OFFSET + 1
    if abs(number) > LARGEST_OFFSET:
        reason = f"a diagonal has an integer of 32 bits, not {reprlib.repr(offset)}"
        raise ParameterError(describe(name, [variable.type], reason))
    return number
