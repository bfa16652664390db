"""The axes of an e-graph, cut into pieces so that what puts arrays together and takes parts is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from esat.egraph.algebra.axes.array_parts import PartReader, PlacedParts
from esat.egraph.algebra.axes.pieces import UNIT, Pieces, RefusedError, positions
from esat.egraph.algebra.finite_fields.coding import Coded
from esat.egraph.algebra.finite_fields.reading import Integers, Reading
from esat.egraph.language.terms import SCALAR, RankedOp, rank_of

_MOST_ELEMENTS = 1 << 18
"""Of all small arrays together: then the phase takes milliseconds."""


class Cuts:
    """What the lengths of axes are made of.

    Parameters
    ----------
    reading, coded
        The e-graph.
    ops
        By number, the ops that put arrays together or take parts of them.
    parent
        The sets of axes of one length: ``parent[class * ranks + axis]``, then those of lengths by number.
    is_long
        bool ``(classes, ranks)``: which axes there are that are not of length 1.
    known
        int64 by number, the lengths that are known; else 0.

    Attributes
    ----------
    parent
        The same; more sets may be one.
    leaves
        int64: lengths that others are made of.
    """

    def __init__(
        self,
        reading: Reading,
        coded: Coded,
        ops: Mapping[int, RankedOp],
        parent: Integers,
        is_long: Integers,
        known: Integers,
    ) -> None:
        self._reading, self._parent, self._is_long = reading, parent, is_long
        ranks = is_long.shape[1]
        first = reading.classes * ranks
        owners = parent[first:].tolist()
        met = Counter(owner for owner, length in zip(owners, known.tolist(), strict=True) if length)
        lengths = {
            owner: length
            for owner, length in zip(owners, known.tolist(), strict=True)
            if met[owner] == 1 and length
        }
        self._pieces = Pieces(lengths, len(parent))
        roots = np.unique(parent[:first].reshape(is_long.shape)[is_long])
        parts = PartReader(reading, coded, ops, self._pieces, self._key_of).parts(roots.tolist())
        renamed = np.arange(self._pieces.free)
        for key in self._pieces.equal.parent:
            renamed[key] = self._pieces.root(key)
        self.parent = renamed[np.concatenate([parent, np.arange(len(parent), self._pieces.free)])]
        roots = np.unique(renamed[roots])
        made = {int(root): self._pieces.settled(int(root)) for root in roots}
        self._made = {root: pieces for root, pieces in made.items() if pieces != (root,)}
        self._parts = tuple(parts) if self._fits(made) else ()
        if not self._parts:
            self._made = {}
        needed = {piece for pieces in self._made.values() for piece in pieces}
        needed |= {piece for part in self._parts for piece in _pieces_of(part)}
        self.leaves: Integers = np.array(sorted(needed - {UNIT}), np.int64)

    def _key_of(self, klass: int, axis: int) -> int:
        word = int(self._reading.word[klass])
        if word == SCALAR:
            return UNIT
        if word <= 0 or axis >= rank_of(word):
            raise RefusedError
        ranks = self._is_long.shape[1]
        return int(self._parent[klass * ranks + axis]) if self._is_long[klass, axis] else UNIT

    def _fits(self, made: dict[int, tuple[int, ...]]) -> bool:
        """Whether the small arrays are not too large."""
        size = np.ones(len(self.parent), np.int64)
        for root, pieces in made.items():
            size[root] = positions(pieces)
        ranks = self._is_long.shape[1]
        roots = self.parent[: self._reading.classes * ranks].reshape(self._is_long.shape)
        elements = np.where(self._is_long, size[roots], 1).astype(np.float64).prod(axis=1)
        return float(elements[self._reading.class_of].sum()) <= _MOST_ELEMENTS

    def numbered(
        self, found: Integers
    ) -> tuple[dict[int, tuple[int, ...]], tuple[int, ...], tuple[PlacedParts, ...], dict[int, int]]:
        """Pieces, lengths read from their ends, parts, and known lengths, in numbers of lengths.

        Parameters
        ----------
        found
            int64, ascending: the length that each number stands for.
        """
        number = {UNIT: UNIT, **{key: place for place, key in enumerate(found.tolist())}}
        made = {number[key]: tuple(number[piece] for piece in pieces) for key, pieces in self._made.items()}
        ends = {piece for key in self._pieces.mirrored for piece in self._pieces.settled(key)} - {UNIT}
        mirrored = tuple(sorted(number[piece] for piece in ends if piece in number)) if self._parts else ()
        parts = tuple(_renamed(part, number) for part in self._parts)
        known = {number[key]: length for key, length in self._pieces.known.items() if key in number}
        return made, mirrored, parts, known


def _pieces_of(part: PlacedParts) -> set[int]:
    return {piece for window in part.windows for piece in (*window.before, *window.inside)}


def _renamed(part: PlacedParts, number: dict[int, int]) -> PlacedParts:
    def renamed(pieces: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number[piece] for piece in pieces)

    windows = tuple(
        replace(window, before=renamed(window.before), inside=renamed(window.inside))
        for window in part.windows
    )
    return replace(part, windows=windows)
