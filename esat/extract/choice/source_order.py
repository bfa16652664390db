"""How the user put sums and products together, which the e-graph does not know any more.

The operands of n-ary terms have no order. Over the real numbers any order is right, but not every one is as
accurate: ``(x - max(x)) + y`` is written so that large values cancel before ``y`` is added. So the additions
that the user wrote are found again among the operands of the n-ary e-nodes that were chosen: first those that
computed the same value, then those of any other part of the graph. Products are treated alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple

from esat.egraph.language.loader import NARY_FORM, signed_operands
from esat.egraph.language.terms import Joins, TermGraph

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
        missing = range(len(term_class), len(source.terms))
        values = [klass if klass >= 0 else -1 - number for number, klass in enumerate(term_class)]
        values += [-1 - number for number in missing]
        self._source, self._values, self._chosen = source, values, chosen
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
        if len(operands) < 2:
            return ()
        index = self._indices.get(form)
        if index is None:
            index = self._indices[form] = _Index(form, self._source, self._values, self._chosen)
        if len(operands) == 2:
            return index.swapped(klass, operands) if positives == 2 else ()
        keys = [(operand, int(place >= positives)) for place, operand in enumerate(operands)]
        return index.joins(klass, keys)


class _Index:
    """The pairs of one form, by what they make and by their operands."""

    def __init__(self, form: str, source: TermGraph, values: Sequence[int], chosen: Sequence[int]) -> None:
        self._terms, self._values, self._chosen = source.terms, values, chosen
        self._constructors = frozenset(name for name, nary in NARY_FORM.items() if nary == form)
        self._inverses = self._constructors.intersection(_INVERSES)
        self._numbers = [
            number for number, term in enumerate(source.terms) if term.constructor in self._constructors
        ]
        self._made: dict[int, list[int]] = {}
        for number in self._numbers:
            self._made.setdefault(values[number], []).append(number)
        self._pairs: dict[int, tuple[_Pair, int] | None] = {}
        self._first = {value: number for number, value in reversed(list(enumerate(values)))}

    def _pair(self, number: int) -> tuple[_Pair, int] | None:
        """The pair that a term is, and whether the term turns its sign; None where it is no pair."""
        if number not in self._pairs:
            self._pairs[number] = self._new_pair(number)
        return self._pairs[number]

    def _new_pair(self, number: int) -> tuple[_Pair, int] | None:
        below, side = number, 0
        while self._terms[below].constructor in self._inverses:
            below, side = self._terms[below].operands[0], side ^ 1
        term = self._terms[below]
        if term.constructor not in self._constructors:
            return None
        operands = signed_operands(term)
        if len(operands) != 2:
            return None
        left, right = (self._operand(*operand) for operand in operands)
        return _Pair(below, self._values[below], left, right), side

    def _operand(self, number: int, side: int) -> Key:
        """A term as an operand: the one whose sign it turns, if it does but that and is not computed."""
        while self._terms[number].constructor in self._inverses:
            value = self._values[number]
            if value >= 0 and self._chosen[value] >= 0:
                break
            number, side = self._terms[number].operands[0], side ^ 1
        return self._values[number], side

    @cached_property
    def _partners(self) -> dict[int, dict[int, list[int]]]:
        """The pairs of each two operands, by number."""
        partners: dict[int, dict[int, list[int]]] = {}
        terms, values = self._terms, self._values
        for number in self._numbers:
            operands = terms[number].operands
            if len(operands) == 2:
                left, right = (
                    values[operand]
                    if terms[operand].constructor not in self._inverses
                    else self._operand(operand, 0)[0]
                    for operand in operands
                )
                partners.setdefault(left, {}).setdefault(right, []).append(number)
                if left != right:
                    partners.setdefault(right, {}).setdefault(left, []).append(number)
        return partners

    def swapped(self, klass: int, operands: Sequence[int]) -> Joins:
        """The join of two operands, if they were written the other way round."""
        for number in self._made.get(klass, ()):
            written = [self._values[operand] for operand in self._terms[number].operands]
            if len(written) == 2:
                return ((1, 0),) if written == [*reversed(operands)] else ()
        return ()

    def joins(self, klass: int, operands: Sequence[Key]) -> Joins:
        """Joins of the operands of a class's e-node."""
        parts = _Parts(operands)
        begun = sorted(self._first[value] for value, _side in operands if value in self._first)
        if len(begun) < 2:
            return ()
        for number in self._made.get(klass, ()):
            for pair, side in reversed(self._below(number, parts, begun[1])):
                parts.join(pair, side)
            if parts.left == 1:
                return parts.joins
        if parts.left > 2:
            self._join_any(parts)
        return parts.joins

    def _below(self, number: int, parts: _Parts, least: int) -> list[tuple[_Pair, int]]:
        """The pair of a term and those that make its operands, as far as these are no parts; users first.

        Operands have smaller numbers: what is made of two of the parts has one above that of the second of
        them, ``least``.
        """
        found: list[tuple[_Pair, int]] = []
        seen: set[int] = set()
        pending = [(number, 0)]
        while pending:
            number, side = pending.pop()
            made = None if number <= least or number in seen else self._pair(number)
            if made is None:
                continue
            seen.add(number)
            pair, side = made[0], side ^ made[1]
            found.append((pair, side))
            for key in pair.operands(side):
                if not parts.has(key):
                    pending += [(inner, key[1]) for inner in self._made.get(key[0], ())[:1]]
        return found

    def _join_any(self, parts: _Parts) -> None:
        """Join parts by any pairs, first those that were written first."""
        pending = parts.values()
        for value in pending:  # grows on the way
            partners = self._partners.get(value, {})
            for number in sorted(number for other in parts.among(partners) for number in partners[other]):
                made = self._pair(number)
                for pair, side in () if made is None else ((made[0], 0), (made[0], 1)):
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

    def among(self, values: Collection[int]) -> list[int]:
        """Those of some values that are left, on either side; it takes as long as there are few of either."""
        if self.left < len(values):
            return [value for value in self.values() if value in values]
        return [value for value in values if self.has((value, 0)) or self.has((value, 1))]

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
