"""Index arrays: those that are slices, reads of reads, of writes and of products."""

from __future__ import annotations

import numpy as np

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import WHOLE, Item, chosen, fitting, part_of, used_once
from esat.classic.rules.graph_terms import same
from esat.classic.rules.matrix_facts import facts_of_matrix
from esat.classic.simplify import axes_agree
from esat.graph import Apply, Constant, Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.ops.arrays.creation import alloc, arange
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.join import Join
from esat.ops.arrays.shape import size_of
from esat.ops.contraction import MatMul, swap_last_axes
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import ARRAY, Entry, Slice, Slot
from esat.ops.reduction import SUM, Reduction


@local_optimizer([AdvancedSubtensor])
def local_adv_idx_to_slice(node: Apply) -> Transformed:
    """x[[2, 4, 6]] -> x[2:7:2] for constant numbers in even steps; a slice copies nothing.

    Only where the size of the axis is known to hold them all: an index array that does not fit is an error.
    """
    rows = _rows(node)
    size = node.inputs[0].tensor_type.shape[0] if node.inputs[0].tensor_type.ndim else None
    if not isinstance(rows, Constant) or size is None or rows.data.size < 2:
        return False
    numbers = np.where(rows.data < 0, rows.data + size, rows.data)
    step = int(numbers[1]) - int(numbers[0])
    if not step or numbers.min() < 0 or numbers.max() >= size or np.any(np.diff(numbers) != step):
        return False
    start, stop = int(numbers[0]), int(numbers[-1]) + (1 if step > 0 else -1)
    rest = [WHOLE] * (node.inputs[0].tensor_type.ndim - 1)
    part = Item(Slice(start, stop if stop >= 0 else None, step))
    return fitting(node, part_of(node.inputs[0], [part, *rest]))


@local_optimizer([Subtensor])
def local_subtensor_of_adv_subtensor(node: Apply) -> Transformed:
    """x[rows][i:j] -> x[rows[i:j]]: only the rows wanted are read; x[rows][:, i:j] -> x[:, i:j][rows]."""
    read = node.inputs[0].owner
    rows = None if read is None else _rows(read)
    if read is None or rows is None or not used_once(node.inputs[0]):
        return False
    first, *rest = chosen(node)
    if first.drops_axis:
        return False
    source = part_of(read.inputs[0], [WHOLE, *rest])
    entries: tuple[Entry, ...] = (ARRAY, *(Slice(),) * (source.tensor_type.ndim - 1))
    return fitting(node, AdvancedSubtensor(entries)(source, part_of(rows, [first])))


@local_optimizer([AdvancedSubtensor])
def local_advanced_subtensor_of_dot(node: Apply) -> Transformed:
    """(a @ b)[rows] -> a[rows] @ b, and (a @ b)[rows, columns] -> sums of a[rows] * b.T[columns].

    Where lengths are known, only if fewer rows, or elements, are wanted than the product has.
    """
    product = node.inputs[0].owner
    assert isinstance(node.op, AdvancedSubtensor)
    if product is None or not isinstance(product.op, MatMul) or not used_once(node.inputs[0]):
        return False
    left, right = product.inputs
    flags = (*left.tensor_type.broadcastable, *right.tensor_type.broadcastable)
    if len(flags) != 4 or any(flags):
        return False
    rows = _rows(node)
    if rows is not None:
        if not _fewer(rows, left.tensor_type.shape[0]):
            return False
        return fitting(node, product.op(_read(left, rows), right))
    if node.op.entries != (ARRAY, ARRAY) or left.tensor_type.kind not in "fc":
        return False
    rows, columns = node.inputs[1:]
    if not (_is_vector(rows) and _is_vector(columns)) or rows.tensor_type.shape != columns.tensor_type.shape:
        return False
    height, width = left.tensor_type.shape[0], right.tensor_type.shape[1]
    if not _fewer(rows, None if height is None or width is None else height * width):
        return False
    factors = op_named("mul")(_read(left, rows), _read(swap_last_axes(right), columns))
    return fitting(node, Reduction(SUM, (1,), keepdims=False)(factors))


@local_optimizer([MatMul])
def local_selection_dot(node: Apply) -> Transformed:
    """eye(n)[rows] @ x -> x[rows], x @ eye(n)[rows].T -> x[:, rows], eye(n)[rows].T @ x -> sums of rows."""
    left, right = node.inputs
    if left.tensor_type.ndim != 2:
        return False
    rows, columns, summed = (
        _selection(left),
        _selection(right, transposed=True),
        _selection(left, transposed=True),
    )
    # Sizes are read off through all that a matrix is computed from: few products get here.
    if (rows is None and columns is None and summed is None) or not axes_agree(left, 1, right, 0):
        return False
    if rows is not None:
        return fitting(node, _read(right, rows))
    if columns is not None:
        return fitting(node, swap_last_axes(_read(swap_last_axes(left), columns)))
    if summed is not None:
        zeros = alloc(constant(0, right.tensor_type.dtype), size_of(left, 0), size_of(right, 1))
        return fitting(node, AdvancedIncSubtensor((ARRAY, Slice()))(zeros, right, summed))
    return False


@local_optimizer([Reduction])
def local_sum_of_selection(node: Apply) -> Transformed:
    """sum(eye(n)[labels] * x, axis=1) -> x[arange(m), labels]: one element a row is read.

    Numbers of rows that do not fit are an error of either form.
    """
    op, product = node.op, node.inputs[0].owner
    assert isinstance(op, Reduction)
    if op.reducer is not SUM or op.axes != (1,) or product is None or product.op.name != "mul":
        return False
    for part, other in (product.inputs, product.inputs[::-1]):
        rows = _selection(part)
        if rows is None or any(other.tensor_type.broadcastable) or not axes_agree(part, 1, other, 1):
            continue
        chosen = AdvancedSubtensor((ARRAY, ARRAY))(other, arange(size_of(other, 0)), rows)
        return fitting(node, dimshuffle(chosen, (0, "x")) if op.keepdims else chosen)
    return False


def _selection(matrix: Variable, transposed: bool = False) -> Variable | None:
    """Which rows of an identity matrix a matrix, or its transpose, is made of."""
    made = matrix.owner
    if transposed and made is not None:
        turned = isinstance(made.op, DimShuffle) and made.op.is_transpose
        made = made.inputs[0].owner if turned else None
    rows = None if made is None or any(matrix.tensor_type.broadcastable) else _rows(made)
    if made is None or rows is None:
        return None
    return rows if {"diagonal", "permutation"} <= facts_of_matrix(made.inputs[0]) else None


@local_optimizer([AdvancedSubtensor])
def local_advanced_read_of_write_constant_indices(node: Apply) -> Transformed:
    """What was written to constant rows, none twice, and is read there again is the value."""
    written, rows = node.inputs[0].owner, _rows(node)
    if written is None or type(written.op) is not AdvancedSetSubtensor:
        return False
    array, value, *indices = written.inputs
    same_entries = written.op.properties()[0] == node.op.properties()[0]
    if not isinstance(rows, Constant) or not same_entries or not same(rows, indices[0]):
        return False
    size = array.tensor_type.shape[0]
    if size is None or np.any(rows.data < -size) or np.any(rows.data >= size):
        return False  # what does not fit is an error at run time
    if np.unique(rows.data % size).size != rows.data.size:
        return False
    if value.tensor_type.shape != node.outputs[0].tensor_type.shape:
        return False
    return fitting(node, value)


@local_optimizer([Join])
def local_join_subtensors(node: Apply) -> Transformed:
    """join(x[:2], x[2:5], x[5:]) -> x: slices that follow each other from the first element to the last."""
    assert isinstance(node.op, Join)
    whole: Variable | None = None
    starts: list[int | None] = []
    stops: list[int | None] = []
    for operand in node.inputs:
        part = _slice_alone(operand, node.op.axis)
        source = None if operand.owner is None else operand.owner.inputs[0]
        if part is None or (whole is not None and source is not whole):
            return False
        whole = source
        starts.append(part[0])
        stops.append(part[1])
    between = [number for number in stops[:-1] if number is not None]
    if starts[0] not in (0, None) or stops[-1] is not None or starts[1:] != between or not between:
        return False
    one_sided = between[0] >= 0 or between[-1] < 0
    return fitting(node, whole) if between == sorted(between) and one_sided else False


def _slice_alone(variable: Variable, axis: int) -> tuple[int | None, int | None] | None:
    """Start and stop of a read that takes a slice of one axis, in known numbers, and all of the others."""
    if variable.owner is None or not isinstance(variable.owner.op, Subtensor):
        return None
    items = chosen(variable.owner)
    if len(items) != variable.tensor_type.ndim or not all(
        item.is_full for place, item in enumerate(items) if place != axis
    ):
        return None
    part = items[axis].entry
    if not isinstance(part, Slice) or part.step not in (1, None):
        return None
    start, stop = part.start, part.stop
    if isinstance(start, Slot) or isinstance(stop, Slot):
        return None
    size = variable.owner.inputs[0].tensor_type.shape[axis]
    return start, None if stop == size else stop


def _rows(node: Apply) -> Variable | None:
    """The vector of row numbers of a read of whole rows."""
    if not isinstance(node.op, AdvancedSubtensor) or len(node.inputs) != 2:
        return None
    first, *rest = node.op.entries
    whole = all(isinstance(entry, Slice) and entry.is_full for entry in rest)
    return node.inputs[1] if first is ARRAY and whole and _is_vector(node.inputs[1]) else None


def _is_vector(index: Variable) -> bool:
    return index.tensor_type.ndim == 1 and index.tensor_type.dtype != "bool"


def _read(matrix: Variable, rows: Variable) -> Variable:
    part: Variable = AdvancedSubtensor((ARRAY, Slice()))(matrix, rows)
    return part


def _fewer(numbers: Variable, size: int | None) -> bool:
    length = numbers.tensor_type.shape[0]
    return length is None or size is None or length < size
