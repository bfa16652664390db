"""Reading and writing by an index on batches: of arrays, of values, and of the index itself."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.records import record
from esat.graph.op import Op
from esat.graph.registry import register_functions
from esat.graph.variables import Apply, Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.index.advanced import AdvancedIncSubtensor, AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.entries import ARRAY, NEW_AXIS, OPERAND, Entry, Slice
from esat.ops.index.write import Adding, PartWrite
from esat.ops.inference.batching import batch_size, by_element, repeated


@record(frozen=True)
class IndexLayout:
    """Where the axes of what an index chooses stand: those of index arrays, among those of slices.

    Attributes
    ----------
    place
        How many axes of slices, and new ones, come before those of index arrays.
    others
        How many of them there are in all.
    """

    place: int
    others: int


def layout_of(entries: Sequence[Entry]) -> IndexLayout:
    """The layout of a part, by NumPy's rules."""
    others, places = 0, []
    for position, entry in enumerate(entries):
        if entry is NEW_AXIS or isinstance(entry, Slice):
            others += 1
        else:
            places.append((position, others))
    if ARRAY not in entries or not places:
        return IndexLayout(0, others)
    together = places[-1][0] - places[0][0] == len(places) - 1
    return IndexLayout(places[0][1] if together else 0, others)


@record(frozen=True)
class Batched:
    """An index for a whole batch.

    Attributes
    ----------
    entries, operands
        Of the index; its first entry stands for the batch's axis where the array has that.
    order
        The axes of what it chooses, in the order they have with the batch's axis in front.
    """

    entries: tuple[Entry, ...]
    operands: tuple[Variable, ...]
    order: tuple[int, ...]

    def moved(self, part: Variable) -> Variable:
        """What the index chooses, with the batch's axis in front."""
        return dimshuffle(part, self.order)

    def moved_back(self, value: Variable) -> Variable:
        """A value for the part, which has the batch's axis in front, in the order of the index."""
        return dimshuffle(value, [self.order.index(axis) for axis in range(len(self.order))])


def batched_index(
    entries: Sequence[Entry],
    operands: Sequence[Variable],
    flags: Sequence[bool],
    size: Variable,
    of_batch: bool,
) -> Batched | None:
    """The index of a batch, or None where what elements choose need not have one shape.

    Parameters
    ----------
    entries, operands, flags
        Of the index of one element, with operands that may have the batch's axis.
    size
        Of the batch.
    of_batch
        Whether the array that is indexed has the batch's axis.
    """
    before = layout_of(entries)
    ranks = [v.tensor_type.ndim - flag for v, flag in zip(operands, flags, strict=True)]
    is_mask = [v.tensor_type.dtype == "bool" for v in operands]
    if not any(flags):
        rank = _rank_of_arrays(operands, is_mask) if ARRAY in entries else 0
        after = layout_of((Slice(), *entries))
        order = [*range(1, before.others + 1)]
        order[before.place : before.place] = range(before.others + 1, before.others + 1 + rank)
        stands = _stands(1 + before.others, rank, after.place)
        moved = tuple(stands.index(axis) for axis in (0, *order))
        return Batched((Slice(), *entries), tuple(operands), moved)
    if any(is_mask):
        return None
    rank = max(ranks, default=0)
    found, given = _with_arrays(entries, operands, flags, rank)
    if found is None:
        return None
    if of_batch:
        found = [ARRAY, *found]
        given = [dimshuffle(arange(size), (0, *["x"] * rank)), *given]
    after = layout_of(found)
    stands = _stands(before.others, 1 + rank, after.place)
    order = [*range(before.others)]
    order[before.place : before.place] = range(before.others + 1, before.others + 1 + rank)
    moved = tuple(stands.index(axis) for axis in (before.others, *order))
    return Batched(tuple(found), tuple(given), moved)


def _rank_of_arrays(operands: Sequence[Variable], is_mask: Sequence[bool]) -> int:
    return max(
        (1 if mask else v.tensor_type.ndim for v, mask in zip(operands, is_mask, strict=True)), default=0
    )


def _stands(others: int, rank: int, place: int) -> list[int]:
    """The axes of a part as they stand: those of slices by number, then those of arrays, put at a place."""
    axes = [*range(others)]
    axes[place:place] = range(others, others + rank)
    return axes


def _with_arrays(
    entries: Sequence[Entry], operands: Sequence[Variable], flags: Sequence[bool], rank: int
) -> tuple[list[Entry] | None, list[Variable]]:
    """The index with arrays in place of numbers and arrays that have the batch's axis."""
    remaining = iter(zip(operands, flags, strict=True))
    found: list[Entry] = []
    given: list[Variable] = []
    for entry in entries:
        if isinstance(entry, Slice):
            taken = [next(remaining) for part in entry.parts() if part is OPERAND]
            if any(flag for _, flag in taken):
                return None, []
            given += [variable for variable, _ in taken]
            found.append(entry)
            continue
        if entry not in (ARRAY, OPERAND):
            found.append(entry)
            continue
        variable, flag = next(remaining)
        if flag:
            own = variable.tensor_type.ndim - 1
            variable = dimshuffle(variable, (0, *["x"] * (rank - own), *range(1, own + 1)))
        found.append(ARRAY if flag else entry)
        given.append(variable)
    return found, given


def batched_read(
    op: Op, entries: Sequence[Entry], node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]
) -> tuple[Variable, ...]:
    """What an index chooses from each element of a batch."""
    source, *operands = inputs
    size = batch_size(inputs, batched)
    index = batched_index(entries, operands, batched[1:], size, batched[0])
    if index is None:
        return by_element(op, node, inputs, batched)
    chosen: Variable = AdvancedSubtensor(index.entries)(source, *index.operands)
    return (index.moved(chosen),)


def batched_write(
    op: PartWrite, node: Apply, inputs: Sequence[Variable], batched: Sequence[bool]
) -> tuple[Variable, ...]:
    """Each element of a batch with a part written."""
    target, value, *operands = inputs
    size = batch_size(inputs, batched)
    index = batched_index(op.entries, operands, batched[2:], size, True)
    if index is None:
        return by_element(op, node, inputs, batched)
    array = target if batched[0] else repeated(target, size)
    lead = value if batched[1] else dimshuffle(value, ("x", *range(value.tensor_type.ndim)))
    kind: type[PartWrite] = type(op)
    if ARRAY in index.entries:
        kind = AdvancedIncSubtensor if isinstance(op, Adding) else AdvancedSetSubtensor
    return (kind(index.entries)(array, index.moved_back(lead), *index.operands),)


register_functions({"batched_read": batched_read, "batched_write": batched_write})
