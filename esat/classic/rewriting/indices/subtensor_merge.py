"""Parts of parts of arrays, and parts that are the whole."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import Item, chosen, fitting, part_of
from esat.graph import Apply, Variable
from esat.ops.arrays.shape import ShapeI
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import OPERAND, Slice


@local_optimizer([Subtensor])
def local_useless_subtensor(node: Apply) -> Transformed:
    """x[:], and x[0:n] for x of n elements, are x."""
    source = node.inputs[0]
    whole = [item.is_full or _ends_at_size(item, source, axis) for axis, item in enumerate(chosen(node))]
    return fitting(node, source) if all(whole) else False


def _ends_at_size(item: Item, source: Variable, axis: int) -> bool:
    entry = item.entry
    if not isinstance(entry, Slice) or entry.start not in (0, None) or entry.step not in (1, None):
        return False
    if entry.stop is not OPERAND or (owner := item.numbers[0].owner) is None:
        return False
    return isinstance(owner.op, ShapeI) and owner.op.axis == axis and owner.inputs[0] is source


@local_optimizer([Subtensor])
def local_subtensor_merge(node: Apply) -> Transformed:
    """x[2:][3] -> x[5], x[1:-1][1:-1] -> x[2:-2], x[i][j] -> x[i, j], x[::-1][2] -> x[-3]."""
    inner = node.inputs[0].owner
    if inner is None or not isinstance(inner.op, Subtensor):
        return False
    source = inner.inputs[0]
    later = iter(chosen(node))
    merged: list[Item] = []
    for item, size in zip(chosen(inner), source.tensor_type.shape, strict=True):
        both = item if item.drops_axis else merge(item, next(later), size)
        if both is None:
            return False
        merged.append(both)
    return fitting(node, part_of(source, merged))


def merge(first: Item, second: Item, size: int | None) -> Item | None:
    """One item for a slice of an axis of ``size`` and what is chosen of it then; None where unknown."""
    if second.is_full:
        return first
    if first.is_full:
        return second
    if first.numbers or second.numbers or not isinstance(first.entry, Slice):
        return None
    if size is not None:
        return _of_known_size(first.entry, second, size)
    return _of_any_size(first.entry, second)


def _numbers(entry: Slice) -> tuple[int | None, int | None, int]:
    start, stop, step = (part if isinstance(part, int) else None for part in entry.parts())
    return start, stop, 1 if step is None else step


def _of_known_size(first: Slice, second: Item, size: int) -> Item | None:
    places = range(size)[slice(*_numbers(first))]
    if isinstance(second.entry, int):
        inside = -len(places) <= second.entry < len(places)
        return Item(places[second.entry]) if inside else None
    assert isinstance(second.entry, Slice)
    left = places[slice(*_numbers(second.entry))]
    if not left:
        return Item(Slice(0, 0, 1))
    return Item(Slice(left.start, left.stop if left.stop >= 0 else None, left.step))


def _of_any_size(first: Slice, second: Item) -> Item | None:
    """Bounds count from the side they are given for, so that they add where both count from one side."""
    start, stop, step = _numbers(first)
    if (start, stop, step) == _REVERSED:
        return _of_reversed(second)
    start = start or 0
    if start < 0 or step < 0:
        return None
    if isinstance(second.entry, int):
        # Counted from the front, an element beyond the stop would be an error.
        return Item(start + step * second.entry) if second.entry >= 0 and stop is None else None
    assert isinstance(second.entry, Slice)
    begin, end, stride = _numbers(second.entry)
    begin = begin or 0
    if begin < 0 or stride < 0:
        return None
    last = _last(start, stop, step, end)
    return None if last is _UNKNOWN else Item(Slice(start + step * begin, last, step * stride))


def _of_reversed(second: Item) -> Item | None:
    """Of all elements the other way round: the other side is counted from, whatever the size."""
    if isinstance(second.entry, int):
        return Item(-1 - second.entry)
    assert isinstance(second.entry, Slice)
    return Item(Slice(None, None, None)) if _numbers(second.entry) == _REVERSED else None


_REVERSED = (None, None, -1)
_UNKNOWN = -(1 << 62)


def _last(start: int, stop: int | None, step: int, end: int | None) -> int | None:
    if end is None:
        return stop
    if end >= 0:
        reached = start + step * end
        if stop is None:
            return reached
        return min(stop, reached) if stop >= 0 else _UNKNOWN
    if step != 1 or (stop is not None and stop >= 0):
        return _UNKNOWN
    return end if stop is None else stop + end
