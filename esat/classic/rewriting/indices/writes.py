"""Writes to parts of arrays: read back, written twice, of nothing, or to the whole."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, items_of, part_of, used_once
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Op, Variable
from esat.graph.identity import same_variables
from esat.graph.registry import op_named
from esat.ops.arrays.creation import Alloc
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.join import join
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.index.entries import Slice

_MOST_PIECES = 64
"""Writes that are looked back on at most: each of a chain is asked."""
_ADDING = (IncSubtensor, AdvancedIncSubtensor)


@local_optimizer([Elementwise], name="local_IncSubtensor_serialize")
def local_inc_subtensor_serialize(node: Apply) -> Transformed:
    """inc_subtensor(0, b, i) + inc_subtensor(0, c, j) -> inc_subtensor(inc_subtensor(0, b, i), c, j).

    Each increment can then be made in place, and the sum of two whole arrays is saved. Index arrays may
    choose an element more than once: what is added is then added as often.
    """
    if node.op.name != "add":
        return False
    output = node.outputs[0]
    for part, rest in (node.inputs, node.inputs[::-1]):
        owner = part.owner
        if owner is None or not isinstance(owner.op, _ADDING):
            continue
        if not is_zero(owner.inputs[0]) or rest.type != part.type or part.type != output.type:
            continue
        return [owner.op(rest, *owner.inputs[1:])]
    return False


@local_optimizer([Subtensor])
def local_subtensor_inc_subtensor(node: Apply) -> Transformed:
    """The part just written is the value, the part just incremented the sum."""
    written = node.inputs[0].owner
    if written is None or not isinstance(written.op, SetSubtensor) or not _same_place(node, written):
        return False
    array, value = written.inputs[:2]
    before = part_of(array, items_of(written.op.entries, written.inputs[2:]))
    combine = op_named("add" if isinstance(written.op, IncSubtensor) else "fill")
    if value.tensor_type.broadcastable == before.tensor_type.broadcastable and combine.name == "fill":
        return fitting(node, value)
    return fitting(node, combine.make_node(before, value).outputs[0])


@local_optimizer([SetSubtensor])
def local_write_to_whole(node: Apply) -> Transformed:
    """x[:] = v makes x v, in the shape of x; x[:] += v makes it x + v."""
    assert isinstance(node.op, SetSubtensor)
    array, value = node.inputs[:2]
    if not all(item.is_full for item in items_of(node.op.entries, node.inputs[2:])):
        return False
    if isinstance(node.op, IncSubtensor):
        return fitting(node, op_named("add").make_node(array, value).outputs[0])
    same = array.tensor_type.broadcastable == value.tensor_type.broadcastable
    return fitting(node, value if same else op_named("fill").make_node(array, value).outputs[0])


@local_optimizer([SetSubtensor, AdvancedSetSubtensor])
def local_useless_inc_subtensor(node: Apply) -> Transformed:
    """Adding zero, or writing to a part what stands there, changes nothing."""
    array, value = node.inputs[:2]
    if isinstance(node.op, _ADDING):
        return fitting(node, array) if value_of(value) == 0 else False
    if _takes_slices(node.op) and _is_filled_with(array, value_of(value)):
        return fitting(node, array)
    read = value.owner
    if read is None or not isinstance(read.op, Subtensor) or read.inputs[0] is not array:
        return False
    return fitting(node, array) if _same_place(read, node) else False


@local_optimizer([SetSubtensor])
def local_set_to_inc_subtensor(node: Apply) -> Transformed:
    """x[i] = x[i] + v -> x[i] += v: the part is not read into an array of its own."""
    array, value, *numbers = node.inputs
    summed = value.owner
    if type(node.op) is not SetSubtensor or summed is None or summed.op.name != "add":
        return False
    for part, added in (summed.inputs, summed.inputs[::-1]):
        read = part.owner
        reads = read is not None and isinstance(read.op, Subtensor) and read.inputs[0] is array
        if read is not None and reads and _same_place(read, node):
            return fitting(node, IncSubtensor(node.op.entries)(array, added, *numbers))
    return False


@local_optimizer([SetSubtensor])
def local_setsubtensor_of_setsubtensor(node: Apply) -> Transformed:
    """Of writes to one place: the last one, or for increments one of the sum.

    Increments after which the array has other uses have to be made one by one. A chain of the others is one
    answer, given for the last: of answers for any two there would be as many as pairs.
    """
    below = _below(node)
    if below is None:
        return False
    value, numbers = node.inputs[1], node.inputs[2:]
    if not isinstance(node.op, IncSubtensor):
        while (next_below := _below(below)) is not None:
            below = next_below
        return fitting(node, node.op.make_node(below.inputs[0], value, *numbers).outputs[0])
    if not used_once(below.outputs[0]) or _is_part_of_chain(node):
        return False
    while True:
        value = op_named("add").make_node(below.inputs[1], value).outputs[0]
        next_below = _below(below) if isinstance(below.op, IncSubtensor) else None
        if next_below is None or not used_once(next_below.outputs[0]):
            return fitting(node, below.op.make_node(below.inputs[0], value, *numbers).outputs[0])
        below = next_below


def _is_part_of_chain(node: Apply) -> bool:
    """Whether nothing but an increment of the same place uses what a write gives."""
    users = [user for user, _ in node.outputs[0].clients or ()]
    return len(users) == 1 and isinstance(users[0], Apply) and _increments(users[0], node)


def _increments(user: Apply, node: Apply) -> bool:
    return isinstance(user.op, IncSubtensor) and _below(user) is node


def _below(node: Apply) -> Apply | None:
    """The write to the same place that a write comes directly after."""
    below = node.inputs[0].owner
    is_write = below is not None and isinstance(below.op, SetSubtensor)
    return below if is_write and below is not None and _same_place(node, below) else None


@local_optimizer([SetSubtensor])
def local_writes_to_join(node: Apply) -> Transformed:
    """x[:2] = a; x[2:] = b, which leave nothing of x, make join(a, b): x need not be filled first."""
    axis = _written_axis(node)
    if axis is None:
        return False
    left = node.outputs[0].tensor_type.shape[axis]
    pieces: list[tuple[int, int, Variable]] = []
    writing: Apply | None = node
    while left and len(pieces) < _MOST_PIECES:
        if writing is None or not isinstance(writing.op, SetSubtensor) or _written_axis(writing) != axis:
            return False
        start, stop, value = _piece(writing, axis)
        if any(start < end and begin < stop for begin, end, _ in pieces):
            return False
        pieces.append((start, stop, value))
        left -= max(stop - start, 0)
        writing = writing.inputs[0].owner
    if left or len(pieces) < 2:
        return False
    pieces.sort(key=lambda piece: piece[:2])
    return fitting(node, join([value for _, _, value in pieces], axis))


def _written_axis(node: Apply) -> int | None:
    """The only axis that a write takes a part of, where types tell which, and that the value fits it."""
    assert isinstance(node.op, SetSubtensor)
    array, value = node.inputs[:2]
    if type(node.op) is not SetSubtensor or len(node.inputs) > 2:
        return None
    some = [
        axis for axis, entry in enumerate(node.op.entries) if not (isinstance(entry, Slice) and entry.is_full)
    ]
    part = node.op.part_shape(array.tensor_type, ())
    if len(some) != 1 or array.tensor_type.shape[some[0]] is None:
        return None
    if value.tensor_type.broadcastable != tuple(size == 1 for size in part):
        return None
    entry = node.op.entries[some[0]]
    return some[0] if not isinstance(entry, Slice) or entry.step in (None, 1) else None


def _piece(node: Apply, axis: int) -> tuple[int, int, Variable]:
    """Where a write along an axis begins and ends, and what it writes, with all axes."""
    assert isinstance(node.op, SetSubtensor)
    array, value = node.inputs[:2]
    size, entry = array.tensor_type.shape[axis], node.op.entries[axis]
    assert size is not None
    if isinstance(entry, Slice):
        bounds = [bound if isinstance(bound, int) else None for bound in (entry.start, entry.stop)]
        start, stop, _ = slice(*bounds).indices(size)
        return start, stop, value
    assert isinstance(entry, int)
    order = list(range(array.tensor_type.ndim - 1))
    return entry % size, entry % size + 1, dimshuffle(value, (*order[:axis], "x", *order[axis:]))


def _same_place(node: Apply, written: Apply) -> bool:
    """Whether a read or write chooses the part that another one wrote."""
    operands = node.inputs[1:] if isinstance(node.op, Subtensor) else node.inputs[2:]
    return _entries(node.op) == _entries(written.op) and same_variables(operands, written.inputs[2:])


def _entries(op: Op) -> object:
    return op.entries if isinstance(op, (Subtensor, SetSubtensor)) else None


def is_zero(variable: Variable) -> bool:
    """Whether all elements are known to be zero."""
    return value_of(_element(variable)) == 0


def _takes_slices(op: Op) -> bool:
    """Whether a place is one of slices, which are never out of bounds."""
    return isinstance(op, SetSubtensor) and all(isinstance(entry, Slice) for entry in op.entries)


def _is_filled_with(array: Variable, value: complex | None) -> bool:
    """Whether all elements are known to be a number, its sign included."""
    held = value_of(_element(array))
    return value is not None and held == value and str(held) == str(value)


def _element(array: Variable) -> Variable:
    """What an array is filled with, or itself."""
    node = array.owner
    return node.inputs[0] if node is not None and isinstance(node.op, Alloc) else array
