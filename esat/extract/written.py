"""How the user put sums and products together, which the e-graph does not know any more.

The operands of n-ary terms have no order. Over the real numbers any order is right, but not every one is as
accurate: ``(x - max(x)) + y`` is written so that large values cancel before ``y`` is added. So the additions
that the user wrote are found again among the operands of the n-ary e-nodes that were chosen: first those that
computed the same value, then those of any other part of the graph. Products are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from esat.egraph.loader import NARY_FORM, signed_operands
from esat.egraph.terms import Joins, TermGraph

_INVERSES = ("Neg", "Reciprocal")

Key = tuple[int, int]
"""A class, or ``-1 - k`` for a term ``k`` without one, and 1 where it is subtracted or divided by."""


class _Pair(NamedTuple):
    """An op of two operands that the user wrote."""

    number: int
    result: int
    left: Key
    right: Key

    def operands(self, side: int) -> tuple[Key, Key]:
        """Its operands where its result is added (0) or subtracted (1), first one on that side."""
        left, right = (self.left[0], self.left[1] ^ side), (self.right[0], self.right[1] ^ side)
        return (right, left) if left[1] != side == right[1] else (left, right)


class WrittenSums:
    """The sums and products of a graph as it was written.

    Parameters
    ----------
    source
        The terms that were loaded.
    term_class
        Class of each term by its number, as far as there are; -1 for terms that n-ary terms took up.
    chosen
        E-node of each class, -1 where none was chosen.
    """

    def __init__(self, source: TermGraph, term_class: Sequence[int], chosen: Sequence[int]) -> None:
        self._source, self._chosen = source, chosen
        self._class = [*term_class, *[-1] * (len(source.terms) - len(term_class))]
        self._indices: dict[str, _Index] = {}

    def joins(self, form: str, klass: int, operands: Sequence[int], positives: int) -> Joins:
        """How the operands of a class's n-ary e-node were put together.

        Parameters
        ----------
        form
            ``NarySum`` or ``NaryProd``.
        operands
            Their classes: first those that are added (or multiplied), ``positives`` of them.
        """
        index = self._indices.get(form)
        if index is None:
            index = self._indices[form] = self._index(form)
        return index.joins(
            klass, [(operand, int(place >= positives)) for place, operand in enumerate(operands)]
        )

    def _index(self, form: str) -> _Index:
        index = _Index()
        for number, term in enumerate(self._source.terms):
            if NARY_FORM.get(term.constructor) != form:
                continue
            operands = [self._operand(form, *operand) for operand in signed_operands(term)]
            if len(operands) == 1:
                index.add_inverse(self._value(number), *operands[0])
            elif len(operands) == 2:
                index.add_pair(_Pair(number, self._value(number), *operands))
        return index

    def _operand(self, form: str, number: int, side: int) -> Key:
        """A term as an operand: the one whose sign it turns, if it does but that and is not computed."""
        while True:
            value, term = self._value(number), self._source.terms[number]
            computed = value >= 0 and self._chosen[value] >= 0
            if computed or term.constructor not in _INVERSES or NARY_FORM[term.constructor] != form:
                return value, side
            ((number, turned),) = signed_operands(term)
            side ^= turned

    def _value(self, number: int) -> int:
        klass = self._class[number]
        return klass if klass >= 0 else -1 - number


class _Index:
    """The pairs of one form, by what they make and by their operands."""

    def __init__(self) -> None:
        self._made: dict[int, list[tuple[_Pair, int]]] = {}
        self._partners: dict[int, dict[int, list[_Pair]]] = {}

    def add_pair(self, pair: _Pair) -> None:
        self._made.setdefault(pair.result, []).append((pair, 0))
        left, right = pair.left[0], pair.right[0]
        for operand, other in {(left, right), (right, left)}:
            self._partners.setdefault(operand, {}).setdefault(other, []).append(pair)

    def add_inverse(self, value: int, operand: int, side: int) -> None:
        """Of what only turns the sign of another value."""
        made = [(pair, turned ^ side) for pair, turned in self._made.get(operand, ())]
        if made:
            self._made.setdefault(value, []).extend(made)

    def joins(self, klass: int, operands: Sequence[Key]) -> Joins:
        """Joins of the operands of a class's e-node."""
        parts = _Parts(operands)
        for pair, side in self._made.get(klass, ()):
            for inner, inner_side in reversed(self._below(pair, side, parts)):
                parts.join(inner, inner_side)
        if parts.left > 2:
            self._join_any(parts)
        return tuple(parts.joins)

    def _below(self, pair: _Pair, side: int, parts: _Parts) -> list[tuple[_Pair, int]]:
        """A pair and those that make its operands, and so on, as far as these are no parts; users first."""
        found: list[tuple[_Pair, int]] = []
        seen: set[_Pair] = set()
        pending = [(pair, side)]
        while pending:
            entry = pending.pop()
            if entry[0] in seen:
                continue
            seen.add(entry[0])
            found.append(entry)
            for key in entry[0].operands(entry[1]):
                if not parts.has(key):
                    pending += [(inner, key[1] ^ turned) for inner, turned in self._made.get(key[0], ())[:1]]
        return found

    def _join_any(self, parts: _Parts) -> None:
        """Join parts by any pairs, first those that were written first."""
        pending = parts.values()
        for value in pending:  # grows on the way
            partners = self._partners.get(value, {})
            met = partners.keys() & parts.values() if partners else ()
            for pair in sorted(pair for other in met for pair in partners[other]):
                for side in (0, 1):
                    while parts.join(pair, side):
                        pending.append(pair.result)


class _Parts:
    """What is left of the operands of an e-node, and the joins that were made of them."""

    def __init__(self, operands: Sequence[Key]) -> None:
        self.joins: list[tuple[int, int]] = []
        self.left = len(operands)
        self._numbers: dict[Key, list[int]] = {}
        self._count = len(operands)
        for number in reversed(range(len(operands))):
            self._numbers.setdefault(operands[number], []).append(number)

    def has(self, key: Key) -> bool:
        """Whether a value is left on its side."""
        return bool(self._numbers.get(key))

    def values(self) -> list[int]:
        """The values that are left, each once."""
        return list(dict.fromkeys(value for (value, _side), numbers in self._numbers.items() if numbers))

    def join(self, pair: _Pair, side: int) -> bool:
        """Join what a pair joins, if that is left."""
        left, right = pair.operands(side)
        first, second = self._numbers.get(left), self._numbers.get(right)
        if not first or not second or (first is second and len(first) < 2):
            return False
        self.joins.append((first.pop(), second.pop()))
        self._numbers.setdefault((pair.result, side), []).append(self._count)
        self._count += 1
        self.left -= 1
        return True
