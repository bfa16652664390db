"""Basic indices taken apart: one item an axis, with the operands its slots take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from esat.base.records import record
from esat.classic.optimizers.local import Transformed
from esat.graph import Apply, Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import OPERAND, Bound, Entry, Slice, make_entry

FULL = Slice()


@record(frozen=True, slots=True)
class Item:
    """What an index does with one axis.

    Attributes
    ----------
    entry
        An integer or slice, as ops keep it.
    numbers
        The operands its slots take.
    """

    entry: Entry
    numbers: tuple[Variable, ...] = ()

    @property
    def drops_axis(self) -> bool:
        """Whether it chooses one element, so that the axis goes."""
        return not isinstance(self.entry, Slice)

    @property
    def is_full(self) -> bool:
        """Whether the whole axis stays."""
        return isinstance(self.entry, Slice) and self.entry.is_full

    def index(self) -> slice | Bound | Variable:
        """As it would stand between brackets."""
        numbers = iter(self.numbers)
        if isinstance(self.entry, Slice):
            return slice(*(next(numbers) if part is OPERAND else part for part in self.entry.parts()))
        return next(numbers) if self.entry is OPERAND else self.entry


WHOLE = Item(FULL)


def items_of(entries: Sequence[Entry], numbers: Sequence[Variable]) -> tuple[Item, ...]:
    """The items of an op's entries, one an axis."""
    return tuple(_items(entries, iter(numbers)))


def _items(entries: Sequence[Entry], numbers: Iterator[Variable]) -> Iterator[Item]:
    for entry in entries:
        slots = entry.parts() if isinstance(entry, Slice) else (entry,)
        yield Item(entry, tuple(next(numbers) for slot in slots if slot is OPERAND))


def chosen(node: Apply) -> tuple[Item, ...]:
    """The items of a Subtensor node."""
    assert isinstance(node.op, Subtensor)
    return items_of(node.op.entries, node.inputs[1:])


def part_of(variable: Variable, items: Sequence[Item]) -> Variable:
    """``variable[items]``; the variable itself where that is all of it."""
    if all(item.is_full for item in items):
        return variable
    numbers: list[Variable] = []
    sizes = variable.tensor_type.shape
    entries = [
        make_entry("subtensor", item.index(), size, numbers) for item, size in zip(items, sizes, strict=True)
    ]
    result: Variable = Subtensor(tuple(entries))(variable, *numbers)
    return result


def part_keeping_axes(variable: Variable, items: Sequence[Item]) -> Variable:
    """``variable[items]`` with size-1 axes where single elements were chosen."""
    part = part_of(variable, items)
    kept = iter(range(part.tensor_type.ndim))
    return dimshuffle(part, tuple("x" if item.drops_axis else next(kept) for item in items))


def without_axes(variable: Variable, items: Sequence[Item]) -> Variable:
    """``variable`` without the axes of which single elements were chosen; they have size 1 there."""
    order = [axis for axis, item in enumerate(items) if not item.drops_axis]
    return variable if len(order) == len(items) else dimshuffle(variable, order)


def within(items: Sequence[Item], operand: Variable, whole: Sequence[bool]) -> list[Item]:
    """What the items of a broadcast result choose of an operand: all of an axis that was stretched."""
    flags = operand.tensor_type.broadcastable
    return [
        item if flag == stretched else Item(0) if item.drops_axis else WHOLE
        for item, flag, stretched in zip(items, flags, whole, strict=True)
    ]


def used_once(variable: Variable) -> bool:
    """Whether nothing but one node uses a Variable, so that computing it otherwise saves its node."""
    return variable.clients is None or len(variable.clients) <= 1


def fitting(node: Apply, *replacements: Variable | None) -> Transformed:
    """The replacements of a node's outputs, where their types have the same dtypes and broadcasting."""
    found = [one for one in replacements if one is not None]
    same = len(found) == len(node.outputs) and all(map(_may_stand_for, found, node.outputs))
    return found if same else False


def _may_stand_for(replacement: Variable, output: Variable) -> bool:
    wanted, given = output.tensor_type, replacement.tensor_type
    same = (wanted.dtype, wanted.broadcastable) == (given.dtype, given.broadcastable)
    return same and replacement is not output


def is_square(matrix: Variable) -> bool:
    """Whether a matrix is square by its type."""
    rows, columns = matrix.tensor_type.shape
    return rows is not None and rows == columns


def is_oblong(matrix: Variable) -> bool:
    """Whether a matrix is known not to be square."""
    return None not in matrix.tensor_type.shape and not is_square(matrix)
