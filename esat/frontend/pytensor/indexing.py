"""Rules of parts of arrays, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytensor.tensor.subtensor import indices_from_subtensor

from esat.frontend.arrays.indexing import getitem, inc_subtensor, set_subtensor, take
from esat.frontend.arrays.places import ravel_multi_index
from esat.frontend.elements.elementwise import eq, fill, mul, ne, sub
from esat.frontend.elements.searching import nonzero, unravel_index, where
from esat.frontend.linear_algebra.matrices import diagonal
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.diagonal import diagonal as diagonal_of_axes
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.sorting import argsort
from esat.ops.arrays.view import expand_dims
from esat.ops.cast import cast
from esat.ops.index.advanced import advanced_subtensor
from esat.ops.index.along import take_along_axis
from esat.ops.index.basic import is_basic, subtensor
from esat.ops.inference.vectors import as_sizes


def index_of(op: Any, operands: Sequence[Any]) -> tuple[Any, ...]:
    """The index of an op that reads or writes a part, of the operands for it."""
    return tuple(map(_entry, indices_from_subtensor(operands, op.idx_list)))


def _entry(entry: Any) -> Any:
    if isinstance(entry, slice):
        return slice(*(_entry(bound) for bound in (entry.start, entry.stop, entry.step)))
    if isinstance(entry, Constant) and entry.tensor_type.ndim == 0:
        if entry.tensor_type.dtype == "bool":
            raise NoRuleError("a single bool as an index")
        return int(entry.data)
    return entry


def _part(step: PyTensorStep) -> Variable:
    return getitem(step.first, index_of(step.op, step.operands[1:]))


def _written(step: PyTensorStep) -> Variable:
    """The part is not read; an op of its own says which it is."""
    target, value, *numbers = step.operands
    index = index_of(step.op, numbers)
    part = subtensor(target, index) if is_basic(index) else advanced_subtensor(target, index)
    value = cast(value, target.tensor_type.dtype)
    if step.careful and (step.op.set_instead_of_inc or is_basic(index)):
        value = _stretched(value, part)
    if step.op.set_instead_of_inc:
        return set_subtensor(part, value)
    if getattr(step.op, "ignore_duplicates", False):
        return set_subtensor(part, part + value)
    return inc_subtensor(part, value)


def _stretched(value: Variable, part: Variable) -> Variable:
    """A value along axes of a part where it has one element and nobody knew."""
    offset = part.tensor_type.ndim - value.tensor_type.ndim
    for axis, size in enumerate(value.tensor_type.shape):
        if size is None:
            several = cast(ne(size_of(value, axis), 1), "int64")
            value = take(value, mul(arange(size_of(part, offset + axis)), several), axis)
    return value


def _diagonal(step: PyTensorStep) -> Variable:
    op = step.op
    if (op.axis1, op.axis2) == (0, 1) and step.first.tensor_type.ndim == 2:
        return diagonal(step.first, offset=op.offset)
    return diagonal_of_axes(step.first, op.offset, op.axis1, op.axis2)


def _filled_diagonal(step: PyTensorStep) -> Variable:
    """A number on a diagonal of a matrix, the columns of which begin so far right of the rows."""
    x, value, *offset = step.operands
    if x.tensor_type.ndim != 2:
        raise NoRuleError("diagonals of more than two axes")
    rows, columns = (arange(size_of(x, axis)) for axis in range(2))
    place = sub(expand_dims(columns, 0), expand_dims(rows, 1))
    filled: Variable = where(eq(place, cast(offset[0], "int64") if offset else 0), value, x)
    return filled


def _permuted(step: PyTensorStep) -> Variable:
    """Rows whose elements stand where an order says, or come from there."""
    x, order = step.operands
    x = fill(cast(order, x.tensor_type.dtype), x)
    order = fill(x, order)
    return take_along_axis(x, argsort(order, axis=-1) if step.op.inverse else order, -1)


def _unraveled(step: PyTensorStep) -> Any:
    places, shape = step.operands
    sizes = as_sizes("unravel_index", shape, len(step.node.outputs))
    return unravel_index(places, sizes) if step.op.order == "C" else unravel_index(places, sizes[::-1])[::-1]


def _raveled(step: PyTensorStep) -> Variable:
    *index, sizes = step.operands
    sizes = as_sizes("ravel_multi_index", sizes, len(index))
    return ravel_multi_index(tuple(index), sizes, mode=step.op.mode, order=step.op.order)


RULES: dict[str, Rule] = {
    "AdvancedIncSubtensor": _written,
    "AdvancedSubtensor": _part,
    "ExtractDiag": _diagonal,
    "FillDiagonal": _filled_diagonal,
    "FillDiagonalOffset": _filled_diagonal,
    "IncSubtensor": _written,
    "Nonzero": lambda step: nonzero(step.first),
    "PermuteRowElements": _permuted,
    "RavelMultiIndex": _raveled,
    "Subtensor": _part,
    "UnravelIndex": _unraveled,
}
