"""Ops that put arrays together, take parts of them, or write to parts.

Joins, basic indices that are known or end where a part of a join does, and writes to such parts. Their axes
are cut into pieces (:mod:`esat.egraph.algebra.axes.pieces`); what they do is then a table of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from esat.base.records import record
from esat.egraph.algebra.axes.pieces import MOST_POSITIONS, UNIT, Pieces, RefusedError
from esat.egraph.algebra.finite_fields.coded import LENGTH, SUM
from esat.egraph.algebra.finite_fields.coding import Coded, is_sum_of
from esat.egraph.algebra.finite_fields.reading import Integers, Reading
from esat.egraph.language.terms import RankedOp
from esat.ops.arrays.join import Join
from esat.ops.index.basic import IncSubtensor, SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Entry, Slice

PART_OPS = (Join, Subtensor, SetSubtensor)
"""Ops that are known here; one that adds to a part is of the last kind."""
_NAMES = frozenset(op.constructor for op in (Join(0), Subtensor(()), SetSubtensor(()), IncSubtensor(())))
_ROUNDS = 3
_DEEPEST_SUM = 4
"""Levels of sums of lengths that bounds may be."""
NOTHING = -1
"""In the place of a second operand of an element."""


@record(frozen=True)
class Window:
    """A part of an axis.

    Attributes
    ----------
    before, inside
        The pieces of the axis before the part, and between its first and its last element.
    step
        From element to element: 1, -1 for what is read from its end, or, where all pieces have length 1, any.
    is_dropped
        Whether the result does not have the axis.
    """

    before: tuple[int, ...]
    inside: tuple[int, ...]
    step: int = 1
    is_dropped: bool = False

    def places(self, sizes: Mapping[int, int]) -> slice | int:
        """Which positions of the axis are in it, where pieces have such sizes."""
        begin = sum(sizes[piece] for piece in self.before)
        end = begin + sum(sizes[piece] for piece in self.inside)
        if self.is_dropped:
            return begin
        if self.step > 0:
            return slice(begin, end, self.step)
        return slice(end - 1, begin - 1 if begin > 0 else None, self.step)


@record(frozen=True)
class PlacedParts:
    """What an e-node puts where.

    Attributes
    ----------
    node
        The e-node.
    operands
        The classes of its operands.
    op
        Its op.
    ranks
        Axes of the operands.
    windows
        By axis of the array that is read or written to; none of a join.
    """

    node: int
    operands: tuple[int, ...]
    op: Join | Subtensor | SetSubtensor
    ranks: tuple[int, ...]
    windows: tuple[Window, ...]

    def elements(self, sizes: Integers, pieces: Mapping[int, int]) -> Integers:
        """int64 ``(elements, 4)``: whose sum each element is: twice an operand and its element.

        Parameters
        ----------
        sizes
            int64 ``(classes, ranks)``: of the small arrays.
        pieces
            By piece, its size.
        """
        numbered = []
        for place, (klass, rank) in enumerate(zip(self.operands, self.ranks, strict=True)):
            own = sizes[klass, :rank].tolist()
            # A number stands for arrays of any rank of which all axes have length 1.
            shape = (*own, *[1] * (rank - len(own)))
            element = np.arange(prod(shape)).reshape(shape)
            numbered.append(np.stack([np.full_like(element, place), element], axis=-1))
        first = numbered[0]
        second = np.full_like(first, NOTHING)
        where = tuple(window.places(pieces) for window in self.windows)
        if isinstance(self.op, Join):
            first = np.concatenate(numbered, axis=self.op.axis)
            second = np.full_like(first, NOTHING)
        elif isinstance(self.op, IncSubtensor):
            second[where] = numbered[1]
        elif isinstance(self.op, SetSubtensor):
            first[where] = numbered[1]
        else:
            first, second = first[where], second[where]
        return np.concatenate([first.reshape(-1, 2), second.reshape(-1, 2)], axis=1)


@record(frozen=True)
class _Region:
    """A part of an axis, in lengths.

    Attributes
    ----------
    before, inside, after
        Those of the axis: before the part, between its first and last element, and behind it.
    taken
        Those of the axis of the result.
    step, is_dropped
        As of a :class:`Window`.
    """

    before: list[int]
    inside: list[int]
    after: list[int]
    taken: list[int]
    step: int = 1
    is_dropped: bool = False


_Statement = tuple[tuple[int, ...], tuple[int, ...], int]
_Bound = tuple[int, bool]
"""A number, or a class, which the second says."""


class PartReader:
    """Cuts the axes of an e-graph into pieces.

    Parameters
    ----------
    reading, coded
        The e-graph.
    ops
        By number of an opaque op, those that are known here.
    pieces
        Receives what lengths are made of.
    key_of
        What the length of an axis of a class is called in it.
    """

    def __init__(
        self,
        reading: Reading,
        coded: Coded,
        ops: Mapping[int, RankedOp],
        pieces: Pieces,
        key_of: Callable[[int, int], int],
    ) -> None:
        self._reading, self._coded, self._pieces, self._key_of = reading, coded, pieces, key_of
        self._cuts: dict[_Bound | None, dict[int, tuple[int, int]]] = {}
        self._said: dict[_Statement, bool] = {}
        self._settled_leaves: dict[int, tuple[int, ...]] = {}
        self._nodes = list(_part_nodes(reading, ops))

    def parts(self, keys: Sequence[int]) -> list[PlacedParts]:
        """The e-nodes of which it is known what they put where.

        Parameters
        ----------
        keys
            What the lengths of all axes are called.
        """
        known = -1
        for _ in range(_ROUNDS):
            if known == self._pieces.changes:
                break
            known = self._pieces.changes
            self._said.clear()
            for node, ranked in self._nodes:
                try:
                    self._say(node, ranked)
                except RefusedError:
                    continue  # said again in the next round, when more is known
            self._pieces.unite_alike(keys)
        found = []
        for node, ranked in self._nodes:
            try:
                found.append(self._settled(node, ranked))
            except RefusedError:
                continue  # remains an unknown op
        return found

    # ---- what an op says of lengths

    def _say(self, node: int, ranked: RankedOp) -> None:
        for left, right, step in self._statements(node, ranked):
            statement = tuple(left), tuple(right), step
            if statement not in self._said:
                self._said[statement] = False
                self._say_once(left, right, step)
                self._said[statement] = True
            if not self._said[statement]:
                raise RefusedError

    def _say_once(self, left: Sequence[int], right: Sequence[int], step: int) -> None:
        if step:
            self._pieces.equate(left, right)
        if step < 0:
            for key in left:
                self._pieces.mirror(key)

    def _settled(self, node: int, ranked: RankedOp) -> PlacedParts:
        """What an e-node does; refused where its axes are not made of the same pieces."""
        for left, right, step in self._statements(node, ranked):
            leaves = self._leaves(left)
            if leaves != self._leaves(right):
                raise RefusedError
            if step < 0 and leaves != leaves[::-1]:
                raise RefusedError
        operands, op = self._reading.operands_of(node), ranked.op
        assert isinstance(op, PART_OPS)
        if isinstance(op, Join):
            return PlacedParts(node, tuple(operands), op, _ranks(ranked), ())
        count = 2 if isinstance(op, SetSubtensor) else 1
        windows = tuple(
            Window(self._leaves(region.before), self._leaves(region.inside), region.step, region.is_dropped)
            for region in self._regions(node, op)
        )
        return PlacedParts(node, tuple(operands[:count]), op, _ranks(ranked)[:count], windows)

    def _leaves(self, keys: Sequence[int]) -> tuple[int, ...]:
        known = self._settled_leaves
        for key in keys:
            if key not in known:
                known[key] = self._pieces.settled(key)
        return known[keys[0]] if len(keys) == 1 else tuple(leaf for key in keys for leaf in known[key])

    def _statements(self, node: int, ranked: RankedOp) -> Iterator[tuple[list[int], list[int], int]]:
        """Lengths that are equal to others, one after the other, and the step they are read with; 0 for what
        has to be known otherwise, because NumPy would stretch a length 1.
        """
        klass, operands, op = int(self._reading.class_of[node]), self._reading.operands_of(node), ranked.op
        if isinstance(op, Join):
            rank = _ranks(ranked)[0]
            for axis in range(rank):
                own, others = self._key_of(klass, axis), [self._key_of(one, axis) for one in operands]
                if axis == op.axis:
                    yield [own], others, 1
                else:
                    yield from (([own], [other], 1) for other in others)
            return
        assert isinstance(op, Subtensor | SetSubtensor)
        results = iter(range(len(op.entries)))
        for axis, region in enumerate(self._regions(node, op)):
            source = self._key_of(operands[0], axis)
            yield [source], [*region.before, *region.inside, *region.after], 1
            if region.step == -1:
                yield region.inside, region.inside, -1
            target = None if region.is_dropped else next(results)
            if isinstance(op, SetSubtensor):
                yield [self._key_of(klass, axis)], [source], 1
                if target is not None and (length := self._key_of(operands[1], target)) != UNIT:
                    yield [length], region.taken, 0
            elif target is not None:
                yield [self._key_of(klass, target)], region.taken, 1

    # ---- indices

    def _regions(self, node: int, op: Subtensor | SetSubtensor) -> Iterator[_Region]:
        """By axis, the part that an index takes."""
        operands = self._reading.operands_of(node)
        bounds = iter(operands[2 if isinstance(op, SetSubtensor) else 1 :])
        for axis, entry in enumerate(op.entries):
            yield self._region(self._key_of(operands[0], axis), entry, bounds)

    def _region(self, key: int, entry: Entry, bounds: Iterator[int]) -> _Region:
        length = self._pieces.known_length(key)
        if isinstance(entry, Slice):
            if entry.is_full:
                return _Region([], [key], [], [key])
            if length is not None and entry.is_static:
                return self._of_known(length, entry)
            if entry.parts() == (None, None, -1):
                return _Region([], [key], [], [key], step=-1)
            return self._between(key, entry, bounds)
        if length is None or not isinstance(entry, int) or not -length <= entry < length:
            raise RefusedError
        place = entry % length
        return replace(self._of_known(length, Slice(place, place + 1)), is_dropped=True)

    def _of_known(self, length: int, entry: Slice) -> _Region:
        """Places on an axis of known length."""
        start, stop, step = (part if isinstance(part, int) else None for part in entry.parts())
        places = range(*slice(start, stop, step).indices(length))
        if not places:
            raise RefusedError
        first, last = min(places), max(places)
        if len(places) == 1 or abs(places.step) == 1:
            before, inside, after = map(self._piece, (first, len(places), length - last - 1))
            return _Region(before, inside, after, inside, places.step if len(places) > 1 else 1)
        if length > MOST_POSITIONS:
            raise RefusedError
        before, inside, after, taken = (
            [UNIT] * count for count in (first, last + 1 - first, length - last - 1, len(places))
        )
        return _Region(before, inside, after, taken, places.step)

    def _piece(self, length: int) -> list[int]:
        return [self._pieces.of_length(length)] if length else []

    def _between(self, key: int, entry: Slice, bounds: Iterator[int]) -> _Region:
        """Places from one bound to another, of which a length or one of them is not known."""
        if entry.step not in (None, 1):
            raise RefusedError
        first, last = (_bound(part, bounds) for part in (entry.start or None, entry.stop))
        leaves = self._pieces.leaves([key])
        begin = 0 if first is None else self._place(leaves, first)
        end = len(leaves) if last is None else self._place(leaves, last)
        if begin is not None and end is not None:
            if begin >= end:
                raise RefusedError
            return _Region(leaves[:begin], leaves[begin:end], leaves[end:], leaves[begin:end])
        if first is not None and last is not None:
            raise RefusedError
        # Whatever a single bound is, the parts before and behind it are all of the axis together.
        head, tail = self._new_cut(key, first or last)
        return _Region([], head, tail, head) if first is None else _Region(head, tail, [], tail)

    def _new_cut(self, key: int, bound: _Bound | None) -> tuple[list[int], list[int]]:
        """The parts before and behind a bound."""
        root = self._pieces.root(key)
        cuts = self._cuts.setdefault(bound, {})
        known = next((cut for cut in cuts if self._pieces.root(cut) == root), root)
        if known not in cuts:
            cuts[known] = self._pieces.new(), self._pieces.new()
        head, tail = cuts[known]
        return [head], [tail]

    def _place(self, leaves: Sequence[int], bound: _Bound) -> int | None:
        """How many pieces there are before a bound; None where it is not the end of one."""
        number, is_class = bound
        ends = range(len(leaves) + 1)
        if not is_class and number < 0:
            rest: tuple[int, list[int]] = (-number, [])
            return next((place for place in ends if self._length(leaves[place:]) == rest), None)
        keys = self._summed(number, 0) if is_class else self._piece(number)
        if keys is None:
            return None
        wanted = self._length(self._pieces.leaves(keys))
        return next((place for place in ends if self._length(leaves[:place]) == wanted), None)

    def _length(self, leaves: Sequence[int]) -> tuple[int, list[int]]:
        """A sum of lengths: that of the known ones, and the others."""
        lengths = [(leaf, self._pieces.known_length(leaf)) for leaf in leaves]
        return sum(n for _, n in lengths if n is not None), sorted(leaf for leaf, n in lengths if n is None)

    def _summed(self, klass: int, depth: int) -> list[int] | None:
        """The lengths that a class is the sum of, if it is."""
        reading, nodes = self._reading, self._coded.nodes
        if self._coded.is_constant[klass]:
            value = float(reading.value[klass])
            return self._piece(int(value)) if value.is_integer() and value >= 0 else None
        for node in np.flatnonzero(reading.class_of == klass).tolist():
            operands = reading.operands_of(node)
            if nodes.code[node] == LENGTH:
                return [self._key_of(operands[0], int(nodes.number[node]))]
            if nodes.code[node] == SUM and nodes.number[node] == len(operands) and depth < _DEEPEST_SUM:
                parts = [self._summed(operand, depth + 1) for operand in operands]
                if all(part is not None for part in parts):
                    return [key for part in parts for key in part or ()]
        return None


def _bound(part: Any, bounds: Iterator[int]) -> _Bound | None:
    if part is OPERAND:
        return next(bounds), True
    return None if part is None else (part, False)


def _ranks(ranked: RankedOp) -> tuple[int, ...]:
    return tuple(rank or 0 for rank in ranked.operand_ranks)


def _part_nodes(reading: Reading, ops: Mapping[int, RankedOp]) -> Iterator[tuple[int, RankedOp]]:
    """E-nodes of such ops; adding up is an op of numbers of one kind."""
    numbers = [number for number, name in enumerate(reading.names) if name.rsplit("_", 1)[0] in _NAMES]
    if not ops or not numbers:
        return
    for node in np.flatnonzero(np.isin(reading.operator, numbers)).tolist():
        ranked = ops.get(int(reading.attributes[node][-1]))
        if ranked is None or reading.dtype[reading.class_of[node]] < 0:
            continue
        operands = reading.operands_of(node)
        count = 2 if isinstance(ranked.op, SetSubtensor) else len(operands)
        if not isinstance(ranked.op, IncSubtensor) or is_sum_of(reading, node, operands[:count]):
            yield node, ranked
