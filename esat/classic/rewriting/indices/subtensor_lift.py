"""Parts of results, computed from parts of operands.

``exp(x)[i] = exp(x[i])``, ``(x @ y)[i] = x[i] @ y``, ``sum(x, axis=1)[i] = sum(x[i], axis=0)``, ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import (
    WHOLE,
    Item,
    chosen,
    fitting,
    part_keeping_axes,
    part_of,
    used_once,
    within,
    without_axes,
)
from esat.classic.rewriting.logarithms import is_stabilized
from esat.graph import Apply, Family, Variable
from esat.graph.constants import constant
from esat.ops.arrays.creation import ALLOC, Alloc
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.join import Join, join
from esat.ops.arrays.shape import size_of
from esat.ops.contraction import MATMUL, MatMul
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.ops.inference.vectors import MakeVector, make_vector
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction

Items = Sequence[Item]
Lift = Callable[[Apply, Items], Variable | None]


@local_optimizer([Subtensor])
def local_subtensor_lift(node: Apply) -> Transformed:
    """The part of an elementwise result, reduction, softmax or permuted array from parts of operands."""
    source = node.inputs[0].owner
    if source is None or not used_once(node.inputs[0]) or is_stabilized(source):
        return False
    if source.op.family is Family.ELEMENTWISE:
        return fitting(node, _of_elementwise(source, chosen(node)))
    return _lifted(node, source, {DimShuffle: _of_dimshuffle, Normalization: _of_normalization})


@local_optimizer([Subtensor])
def local_subtensor_of_reduction(node: Apply) -> Transformed:
    """sum(x, axis=1)[i] -> sum(x[i], axis=0), and likewise for the other reductions."""
    return _lifted(node, node.inputs[0].owner, {Reduction: _of_reduction})


@local_optimizer([Subtensor])
def local_subtensor_of_dot(node: Apply) -> Transformed:
    """(x @ y)[i, j] -> x[i] @ y[:, j]."""
    return _lifted(node, node.inputs[0].owner, {MatMul: _of_matmul})


@local_optimizer([Subtensor])
def local_subtensor_of_alloc(node: Apply) -> Transformed:
    """A part of a filled array is a smaller one."""
    return _lifted(node, node.inputs[0].owner, {Alloc: _of_alloc}, shared=True)


@local_optimizer([Subtensor])
def local_subtensor_of_join(node: Apply) -> Transformed:
    """A part of joined arrays is a part of one of them, or parts of them joined."""
    return _lifted(node, node.inputs[0].owner, {Join: _of_join}, shared=True)


@local_optimizer([Subtensor])
def local_subtensor_make_vector(node: Apply) -> Transformed:
    """An element of a vector of given scalars is the scalar."""
    return _lifted(node, node.inputs[0].owner, {MakeVector: _of_vector}, shared=True)


def _lifted(node: Apply, source: Apply | None, lifts: dict[type, Lift], shared: bool = False) -> Transformed:
    """What a lift makes of a part of ``source``; unless ``shared``, only if nothing else uses it."""
    if source is None or not (shared or used_once(node.inputs[0])):
        return False
    lift = lifts.get(type(source.op))
    return False if lift is None else fitting(node, lift(source, chosen(node)))


def _of_elementwise(source: Apply, items: Items) -> Variable | None:
    whole = source.outputs[0].tensor_type.broadcastable
    parts = [part_of(operand, within(items, operand, whole)) for operand in source.inputs]
    return source.op.make_node(*parts).outputs[0]


def _of_dimshuffle(source: Apply, items: Items) -> Variable | None:
    assert isinstance(source.op, DimShuffle)
    before = [WHOLE] * source.op.input_rank
    for axis, item in zip(source.op.order, items, strict=True):
        if axis != "x":
            before[int(axis)] = item
        elif not item.is_full and item.entry != 0:
            return None
    places = {axis: place for place, axis in enumerate(_kept(before))}
    order = [
        axis if axis == "x" else places[int(axis)]
        for axis, item in zip(source.op.order, items, strict=True)
        if not item.drops_axis
    ]
    return dimshuffle(part_of(source.inputs[0], before), order)


def _kept(items: Items) -> list[int]:
    return [axis for axis, item in enumerate(items) if not item.drops_axis]


def _of_reduction(source: Apply, items: Items) -> Variable | None:
    op = source.op
    assert isinstance(op, Reduction)
    rank = source.inputs[0].tensor_type.ndim
    if op.typing == "argreduce" and len(op.axes) > 1:
        return None
    shown = iter(items)
    every = [next(shown) if op.keepdims or axis not in op.axes else WHOLE for axis in range(rank)]
    if any(not every[axis].is_full and every[axis].entry != 0 for axis in op.axes):
        return None
    before = [WHOLE if axis in op.axes else item for axis, item in enumerate(every)]
    axes = tuple(place for place, axis in enumerate(_kept(before)) if axis in op.axes)
    reduced: Variable = Reduction(op.reducer, axes)(part_of(source.inputs[0], before))
    if not op.keepdims:
        return reduced
    kept = iter(range(rank))
    order = ["x" if axis in op.axes else next(kept) for axis in _kept(every)]
    return dimshuffle(reduced, order)


def _of_normalization(source: Apply, items: Items) -> Variable | None:
    op = source.op
    assert isinstance(op, Normalization)
    if not all(items[axis].is_full for axis in op.axes):
        return None
    axes = tuple(place for place, axis in enumerate(_kept(items)) if axis in op.axes)
    result: Variable = Normalization(op.name, op.constructor, axes)(part_of(source.inputs[0], items))
    return result


def _of_matmul(source: Apply, items: Items) -> Variable | None:
    left, right = source.inputs
    whole = source.outputs[0].tensor_type.broadcastable[:-2]
    batch, row, column = items[:-2], items[-2], items[-1]

    def lines(operand: Variable, last: Items) -> Variable:
        flags = operand.tensor_type.broadcastable
        stretched = [
            item if flag == out else Item(0) if item.drops_axis else WHOLE
            for item, flag, out in zip(batch, flags, whole, strict=False)
        ]
        return part_keeping_axes(operand, [*stretched, *last])

    product: Variable = MATMUL(lines(left, (row, WHOLE)), lines(right, (WHOLE, column)))
    return without_axes(product, items)


def _of_alloc(source: Apply, items: Items) -> Variable | None:
    value, *sizes = source.inputs
    flags = value.tensor_type.broadcastable
    whole = source.outputs[0].tensor_type.shape
    part = part_of(value, within(items, value, [False] * len(flags)))
    left: list[Variable] = []
    for item, size, known, stretched in zip(items, sizes, whole, flags, strict=True):
        if item.drops_axis:
            continue
        length = item.entry.length(known) if isinstance(item.entry, Slice) else None
        if item.is_full:
            left.append(size)
        elif length is not None:
            left.append(constant(length, "int64"))
        elif not stretched:
            left.append(size_of(part, len(left)))
        else:
            return None
    return ALLOC(part, *left) if left else part


def _of_join(source: Apply, items: Items) -> Variable | None:
    assert isinstance(source.op, Join)
    axis = source.op.axis
    item = items[axis]
    place = sum(not other.drops_axis for other in items[:axis])
    if item.is_full:
        return join([part_of(operand, items) for operand in source.inputs], place)
    sizes = [operand.tensor_type.shape[axis] for operand in source.inputs]
    if isinstance(item.entry, int):
        found = _element(item.entry, sizes)
        if found is None:
            return None
        number, position = found
        return part_of(source.inputs[number], [*items[:axis], Item(position), *items[axis + 1 :]])
    pieces = _pieces(item, sizes)
    if not pieces:
        return None
    parts = [
        part_of(source.inputs[number], [*items[:axis], Item(piece), *items[axis + 1 :]])
        for number, piece in pieces
    ]
    return parts[0] if len(parts) == 1 else join(parts, place)


def _element(index: int, sizes: Sequence[int | None]) -> tuple[int, int] | None:
    """The operand and the place in it of an element of joined arrays, where sizes before it are known."""
    step = 1 if index >= 0 else -1
    left = index if index >= 0 else -index - 1
    order = range(len(sizes)) if step == 1 else range(len(sizes) - 1, -1, -1)
    for number in order:
        size = sizes[number]
        if size is None:
            return None
        if left < size:
            return number, left if step == 1 else size - 1 - left
        left -= size
    return None


def _pieces(item: Item, sizes: Sequence[int | None]) -> list[tuple[int, Slice]]:
    """The operands of a join that a slice of known bounds meets, with what it takes of each."""
    entry = item.entry
    if not isinstance(entry, Slice) or not entry.is_static or entry.step not in (None, 1) or None in sizes:
        return []
    known = [size for size in sizes if size is not None]
    bounds = [bound if isinstance(bound, int) else None for bound in (entry.start, entry.stop)]
    start, stop, _ = slice(*bounds).indices(sum(known))
    pieces: list[tuple[int, Slice]] = []
    begin = 0
    for number, size in enumerate(known):
        first, last = max(start - begin, 0), min(stop - begin, size)
        if first < last:
            pieces.append((number, Slice(first, last)))
        begin += size
    return pieces


def _of_vector(source: Apply, items: Items) -> Variable | None:
    assert isinstance(source.op, MakeVector)
    entry = items[0].entry
    if isinstance(entry, int):
        in_range = -len(source.inputs) <= entry < len(source.inputs)
        return source.inputs[entry] if in_range else None
    if not isinstance(entry, Slice) or not entry.is_static:
        return None
    bounds = [part if isinstance(part, int) else None for part in entry.parts()]
    return make_vector(source.inputs[slice(*bounds)], source.op.dtype)


@local_optimizer([Reduction])
def local_reduction_of_reversed(node: Apply) -> Transformed:
    """sum(x[::-1]) -> sum(x), and so for every reduction over the axis that does not ask for places."""
    source = node.inputs[0].owner
    assert isinstance(node.op, Reduction)
    if source is None or not isinstance(source.op, Subtensor) or node.op.typing == "argreduce":
        return False
    for place, entry in enumerate(source.op.entries):
        if entry != Slice() and not (entry == Slice(step=-1) and place in node.op.axes):
            return False
    return list(node.op.make_node(source.inputs[0]).outputs)
