"""Elements that masks choose: written, added up or counted where they stand, without being gathered first.

How many elements a mask chooses is known only when it has been read, so that no kernel can gather them.
``where`` over the whole array has no such limit, and fuses with what is around it.
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting, used_once
from esat.classic.rules.graph_terms import same
from esat.graph import Apply, Constant, Family, Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.entries import ARRAY, Slice
from esat.ops.inference.promotion import wrap
from esat.ops.reduction import ALL, ANY, PROD, SUM, Reduction, reduce

_DEEPEST = 16
"""Elementwise ops, one on the other, that what a mask chooses goes through."""
_MOST_OPS = 64
"""Ops among which a mask is looked for."""
_NEUTRAL = {SUM: 0, PROD: 1, ANY: False, ALL: True}
"""What the elements that are not chosen add to a reduction."""


@record(frozen=True, slots=True, eq=False)
class _Mask:
    """The mask of an index that has whole slices besides.

    Attributes
    ----------
    condition
        The mask.
    place
        The first axis of an array that it stands for, and the axis of what it chooses.
    """

    condition: Variable
    place: int

    @property
    def rank(self) -> int:
        """Axes that it stands for."""
        return self.condition.tensor_type.ndim

    def whole(self, chosen: Variable, place: int, depth: int = _DEEPEST) -> Variable | None:
        """An array of which the mask chooses these elements along an axis; None where none is at hand."""
        kind = chosen.tensor_type
        if kind.broadcastable[place]:
            return dimshuffle(
                chosen, self._spread(["x" if axis == place else axis for axis in range(kind.ndim)], place)
            )
        node = chosen.owner
        if node is None or not depth:
            return None
        if isinstance(node.op, AdvancedSubtensor):
            mask = _mask_of(node, node.inputs[1:])
            known = mask is not None and mask.place == place and same(mask.condition, self.condition)
            return node.inputs[0] if known else None
        if not used_once(chosen):
            return None
        if isinstance(node.op, DimShuffle):
            before = node.op.order[place]
            whole = self.whole(node.inputs[0], int(before), depth - 1)
            return None if whole is None else dimshuffle(whole, self._spread(node.op.order, place))
        if node.op.family is not Family.ELEMENTWISE or _may_fail(node):
            return None
        operands = []
        for operand in node.inputs:
            whole = self.whole(operand, place, depth - 1)
            if whole is None:
                return None
            operands.append(whole)
        return node.op.make_node(*operands).outputs[0]

    def _spread(self, order: Sequence[int | str], place: int) -> list[int | str]:
        """An order of axes in which those of the mask stand for the one at a place."""
        more, axis = self.rank - 1, order[place]

        def moved(one: int | str) -> int | str:
            return one if one == "x" or axis == "x" or int(one) < int(axis) else int(one) + more

        spread = ["x"] * self.rank if axis == "x" else range(int(axis), int(axis) + self.rank)
        return [*map(moved, order[:place]), *spread, *map(moved, order[place + 1 :])]

    def fits(self, array: Variable) -> bool:
        """Whether an array has the mask's axes: nothing is stretched where sizes must be equal."""
        flags = array.tensor_type.broadcastable[self.place : self.place + self.rank]
        return flags == self.condition.tensor_type.broadcastable

    def over(self, array: Variable) -> Variable:
        """The mask, with the axes of an array."""
        behind = array.tensor_type.ndim - self.place - self.rank
        return dimshuffle(self.condition, (*("x",) * self.place, *range(self.rank), *("x",) * behind))

    def choose(self, array: Variable, other: Variable) -> Variable:
        """The array where the mask holds, and something else elsewhere."""
        chosen: Variable = op_named("switch")(self.over(array), array, other)
        return chosen


def _may_fail(node: Apply) -> bool:
    """Whether a node raises an error for some elements, which may be those that are not chosen."""
    exponent = node.inputs[-1]
    return node.op.name == "pow" and exponent.tensor_type.kind == "i" and not isinstance(exponent, Constant)


def _mask_of(node: Apply, operands: Sequence[Variable]) -> _Mask | None:
    op = node.op
    assert isinstance(op, AdvancedSubtensor | AdvancedSetSubtensor)
    if len(operands) != 1 or operands[0].tensor_type.dtype != "bool" or op.entries.count(ARRAY) != 1:
        return None
    if not all(entry is ARRAY or (isinstance(entry, Slice) and entry.is_full) for entry in op.entries):
        return None
    mask = _Mask(operands[0], op.entries.index(ARRAY))
    return mask if mask.rank and mask.fits(node.inputs[0]) else None


@local_optimizer([AdvancedSetSubtensor])
def local_write_by_mask(node: Apply) -> Transformed:
    """x[mask] = f(x[mask], y[mask], s) -> where(mask, f(x, y, s), x), and x[mask] += v likewise."""
    array, value, *indices = node.inputs
    mask = _mask_of(node, indices)
    whole = None if mask is None else mask.whole(value, mask.place)
    if mask is None or whole is None:
        return False
    if isinstance(node.op, AdvancedIncSubtensor):
        whole = op_named("add")(array, whole)
    return fitting(node, mask.choose(whole, array))


@local_optimizer([Reduction])
def local_reduce_by_mask(node: Apply) -> Transformed:
    """sum(f(x[mask])) -> sum(where(mask, f(x), 0)), and likewise products, ``any`` and ``all``."""
    op, source = node.op, _first_read(node.inputs[0])
    assert isinstance(op, Reduction)
    if op.reducer not in _NEUTRAL or source is None:
        return False
    read = _mask_of(source, source.inputs[1:])
    if read is None:
        return False
    for axis in op.axes:
        mask = _Mask(read.condition, axis)
        whole = mask.whole(node.inputs[0], axis)
        if whole is not None:
            return fitting(node, _reduced(op, mask, whole))
    return False


def _reduced(op: Reduction, mask: _Mask, whole: Variable) -> Variable:
    """A reduction, along the axis that a mask chooses from and others, of what it chooses of an array."""
    neutral = wrap(op.reducer.name, _NEUTRAL[op.reducer], whole.tensor_type.dtype)
    more = mask.rank - 1
    axes = {axis + more if axis > mask.place else axis for axis in op.axes}
    axes.update(range(mask.place, mask.place + mask.rank))
    reduced = reduce(op.reducer, mask.choose(whole, neutral), sorted(axes), keepdims=op.keepdims)
    if not op.keepdims:
        return reduced
    dropped = range(mask.place + 1, mask.place + mask.rank)
    return dimshuffle(reduced, [axis for axis in range(reduced.tensor_type.ndim) if axis not in dropped])


def _first_read(chosen: Variable) -> Apply | None:
    """The first read by index arrays that is found among the nearest ops that elements are computed by."""
    waiting, seen = [chosen], set[Apply]()
    while waiting and len(seen) < _MOST_OPS:
        node = waiting.pop(0).owner
        if node is None or node in seen:
            continue
        if isinstance(node.op, AdvancedSubtensor):
            return node
        seen.add(node)
        if node.op.family is Family.ELEMENTWISE or isinstance(node.op, DimShuffle):
            waiting.extend(node.inputs)
    return None


@local_optimizer([ShapeI])
def local_count_by_mask(node: Apply) -> Transformed:
    """The number of elements that a mask chooses is the number of places where it holds."""
    assert isinstance(node.op, ShapeI)
    read = node.inputs[0].owner
    if read is None or not isinstance(read.op, AdvancedSubtensor):
        return False
    mask = _mask_of(read, read.inputs[1:])
    if mask is None or node.op.axis != mask.place:
        return False
    ones = op_named("switch")(mask.condition, constant(1, "int64"), constant(0, "int64"))
    return fitting(node, reduce(SUM, ones))
