"""Axes that are put together of pieces, one after the other, and how lengths are cut so that all agree.

A join says that a length is the sum of others, in this order; a slice, that it is the length of a piece. Two
such statements about one length are brought to pieces that both are made of: a length 5 that is 2 + 3 and
also 4 + 1 is 2 + 2 + 1, and then every 3 is 2 + 1, and every 4 is 2 + 2. Where that cannot be told, the ops
that say so stay unknown ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from esat.base.union_find import UnionFind

UNIT = -1
"""The length 1."""
MOST_POSITIONS = 16
"""Of an axis in the small arrays that stand for values: a piece has up to three, of length 1 one."""
_POSITIONS_OF_PIECE = 3
_MOST_STEPS = 32


class RefusedError(Exception):
    """No pieces are known that two lengths are both made of, or they are too many."""


class Pieces:
    """What lengths are made of.

    Lengths are called by keys: numbers from 0 on, or :data:`UNIT`.

    Parameters
    ----------
    known
        Lengths that are numbers, by key; no two keys have one number.
    free
        The first number that no length is called by.

    Attributes
    ----------
    changes
        How often something was found out.
    equal
        Keys of which one stands for all.
    root
        Of a key, that which stands for all that are equal to it.
    mirrored
        Lengths of axes that are read from their ends.
    """

    def __init__(self, known: Mapping[int, int], free: int) -> None:
        self.known = {key: length for key, length in known.items() if length > 1}
        self.free = free
        self.changes = 0
        self.equal = UnionFind[int]()
        self.root = self.equal.find
        self.mirrored: set[int] = set()
        self._of_length = {length: key for key, length in self.known.items()}
        self._parts: dict[int, tuple[int, ...]] = {
            key: (UNIT,) for key, length in known.items() if length == 1
        }

    def new(self) -> int:
        """A length of which nothing is known."""
        self.free += 1
        return self.free - 1

    def of_length(self, length: int) -> int:
        """The key of a number, which is at least 1."""
        if length == 1:
            return UNIT
        if length not in self._of_length:
            self._of_length[length] = self.new()
            self.known[self._of_length[length]] = length
        return self.root(self._of_length[length])

    def known_length(self, key: int) -> int | None:
        """The number that a length is, if that is known."""
        return 1 if key == UNIT else self.known.get(self.root(key))

    def leaves(self, keys: Sequence[int]) -> list[int]:
        """What lengths, one after the other, are made of, down to what is not cut.

        Raises
        ------
        RefusedError
            Where there are too many.
        """
        found: list[int] = []
        room = MOST_POSITIONS
        pending = list(reversed(keys))
        while pending:
            key = self.root(pending.pop())
            parts = self._parts.get(key)
            if parts is None:
                found.append(key)
                room -= 1 if key == UNIT else _POSITIONS_OF_PIECE
            else:
                pending += reversed(parts)
            if len(pending) > room:
                raise RefusedError
        return found

    def settled(self, key: int) -> tuple[int, ...]:
        """What a length is made of; itself where there are too many pieces."""
        try:
            return tuple(self.leaves([key]))
        except RefusedError:
            return (self.root(key),)

    def equate(self, left: Sequence[int], right: Sequence[int]) -> None:
        """Say that lengths, one after the other, end where others do.

        Raises
        ------
        RefusedError
            Where both cannot be cut into the same pieces.
        """
        if left == right:
            return
        for _ in range(_MOST_STEPS):
            first, second = _without_common_ends(self.leaves(left), self.leaves(right))
            if not first and not second:
                return
            if not first or not second:
                raise RefusedError
            if len(second) == 1 and (len(first) > 1 or first[0] == UNIT):
                first, second = second, first
            if len(first) == 1:
                self._define(first[0], second)
            elif not self._cut(first[0], second[0], 0) and not self._cut(first[-1], second[-1], -1):
                raise RefusedError
        raise RefusedError

    def mirror(self, key: int) -> None:
        """Say that an axis of this length is read from its end.

        Raises
        ------
        RefusedError
            Where it is not known to consist of the same pieces then.
        """
        leaves = self.leaves([key])
        self.equate(leaves, leaves[::-1])
        self.mirrored.add(key)

    def unite_alike(self, keys: Sequence[int]) -> None:
        """Equate lengths that are made of the same pieces."""
        first: dict[tuple[int, ...], int] = {}
        for key in keys:
            leaves = self.settled(key)
            other = first.setdefault(leaves, self.root(key))
            if len(leaves) > 1 and other != self.root(key):
                self.changes += 1
                del self._parts[self.root(key)]
                self._unite(other, self.root(key))

    def _define(self, key: int, parts: Sequence[int]) -> None:
        """Cut what is not cut yet."""
        if key in parts or (key == UNIT and len(parts) > 1):
            raise RefusedError
        lengths = [self.known_length(part) for part in parts]
        own = self.known_length(key)
        total = sum(length for length in lengths if length is not None)
        if own is not None and (total > own or (None not in lengths and total != own)):
            raise RefusedError
        self.changes += 1
        if len(parts) == 1 and parts[0] != UNIT:
            self._unite(key, parts[0])
        else:
            self._parts[key] = tuple(parts)

    def _unite(self, kept: int, other: int) -> None:
        """Call two lengths, the second not cut, by one key; a number wins over what is unknown."""
        if kept not in self.known and other in self.known and kept not in self._parts:
            kept, other = other, kept
        self.equal.unite(kept, other)
        if other in self.known and kept not in self.known:
            self.known[kept] = self.known[other]

    def _cut(self, left: int, right: int, end: int) -> bool:
        """Cut the longer of two known lengths, so that it begins, or ends, with the shorter."""
        lengths = self.known_length(left), self.known_length(right)
        if lengths[0] is None or lengths[1] is None:
            return False
        shorter, longer = (left, right) if lengths[0] < lengths[1] else (right, left)
        rest = self.of_length(abs(lengths[0] - lengths[1]))
        parts = self.leaves([shorter, rest] if end == 0 else [rest, shorter])
        self._define(longer, parts)
        return True


def positions(leaves: Sequence[int]) -> int:
    """Positions that pieces have in the small arrays, at most."""
    return sum(1 if leaf == UNIT else _POSITIONS_OF_PIECE for leaf in leaves)


def _without_common_ends(left: Sequence[int], right: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    shorter = min(len(left), len(right))
    begin = 0
    while begin < shorter and left[begin] == right[begin]:
        begin += 1
    end = 0
    while end < shorter - begin and left[-1 - end] == right[-1 - end]:
        end += 1
    return left[begin : len(left) - end], right[begin : len(right) - end]
