"""New forms of classes: with strictly fewer operations, and as accurate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations_with_replacement, islice, product

import numpy as np

from esat.base.records import record
from esat.egraph.algebra.equal_forms import expressions
from esat.egraph.algebra.equal_forms.accuracy import Items, is_as_accurate
from esat.egraph.algebra.equal_forms.expressions import Expression, Name, NumberExpression, Product, Sum
from esat.egraph.algebra.equal_forms.factoring import Divisor
from esat.egraph.algebra.equal_forms.factoring import forms as ways_of
from esat.egraph.algebra.equal_forms.normal_forms import Forms
from esat.egraph.algebra.equal_forms.outlines import Outline, ordered, outline
from esat.egraph.algebra.equal_forms.polynomials import ONE, Polynomial, atoms_of, operations
from esat.egraph.algebra.equal_forms.polynomials import number as number_of
from esat.egraph.algebra.equal_forms.quotients import Quotient
from esat.egraph.algebra.finite_fields.backend import compiled
from esat.egraph.algebra.finite_fields.coded import FILL, POWER, SUM
from esat.egraph.algebra.finite_fields.fingerprints import Fingerprints
from esat.egraph.algebra.finite_fields.reading import UNKNOWN
from esat.graph.types import DTYPES

LONGEST_WRITTEN = 64
"""Operations of the longest trees that are looked at."""
_FORMS_OFFERED = 2
"""Of one class at a time."""

Divisors = tuple[list[Divisor], list[Divisor]]
"""Of a numerator, and of a denominator."""


@record(frozen=True, eq=False)
class TreePattern:
    """A form of all classes whose trees are alike.

    Attributes
    ----------
    expression
        The form; its names are the places of the atoms among those of a tree.
    before, after
        Operations of the chosen tree and of the form.
    """

    expression: Expression
    before: int
    after: int


Patterns = dict[Outline, tuple[TreePattern, ...]]
"""The forms of trees, by what these are like."""


@record(frozen=True, slots=True)
class Offer:
    """A form of a class.

    Attributes
    ----------
    klass
        The class.
    expression
        The form.
    before, after
        Operations of the chosen tree and of the form.
    pattern
        Where the form depends on the tree alone, that of all trees like it.
    """

    klass: int
    expression: Expression
    before: int
    after: int
    pattern: TreePattern | None = None


def candidates(found: Fingerprints) -> list[int]:
    """Classes of loaded terms in which something could cancel or be factored, by their ranks."""
    classes = found.reading.classes
    kind, stamp, marked = (
        np.zeros(classes, np.int64),
        np.full(classes, -1, np.int64),
        np.zeros(classes, np.int64),
    )
    is_constant = found.coded.is_constant.astype(np.int64)
    compiled().promising(found.coded.nodes, found.order, found.chosen, is_constant, kind, stamp, marked)
    result = np.flatnonzero((marked == 1) & (found.reading.term != UNKNOWN))
    return sorted(result.tolist(), key=found.rank.__getitem__)


class Offers:
    """Finds forms for classes of an e-graph.

    Parameters
    ----------
    found
        The e-graph.
    patterns
        Forms that were found before; more are added.
    roots
        Classes of a program's outputs.
    """

    def __init__(self, found: Fingerprints, patterns: Patterns, roots: Collection[int]) -> None:
        self.found, self.forms, self._patterns = found, Forms(found, roots), patterns
        self._divisors: dict[tuple[int, int], list[Divisor]] = {}

    def of(self, classes: Sequence[int]) -> Iterator[Offer]:
        """Forms of classes, the best ones of each."""
        forms, rank = self.forms, self.found.rank
        written = [klass for klass in classes if not forms.is_atom(klass)]
        for klass in written:
            form = forms.form(klass)
            if form.below == ONE and len(form.above) > 1 and (atoms := atoms_of(form.above)):
                ends = min(atoms), max(atoms)
                self._divisors.setdefault(ends, []).append((rank[klass], form.above))
        for klass in written:
            yield from self._of(klass)

    def _of(self, klass: int) -> Iterator[Offer]:
        form = self.forms.form(klass)
        saved = self._roots_saved(klass, form)
        before, own = (count(klass) + saved for count in (self.forms.operations, self.forms.own_operations))
        if before > LONGEST_WRITTEN or own < len(atoms_of(*form)):
            return
        divisors = self._divisors_of(klass, form.above), self._divisors_of(klass, form.below)
        if any(divisors) or self.forms.squares:
            yield from self._best(klass, form, before, own, divisors)
            return
        like, names = outline(self.forms, klass)
        known = self._patterns.get(like)
        if known is None:
            places = {name: place for place, name in enumerate(names)}
            best = self._best(klass, form, before, before, divisors)
            known = self._patterns[like] = tuple(
                TreePattern(expressions.renamed(offer.expression, places), before, offer.after)
                for offer in best
            )
        for pattern in known:
            if pattern.after < own:
                expression = expressions.renamed(pattern.expression, names)
                yield Offer(klass, expression, before, pattern.after, pattern)

    def _best(self, klass: int, form: Quotient, before: int, limit: int, divisors: Divisors) -> list[Offer]:
        """The best forms of fewer operations than a limit."""
        offered: list[Offer] = []
        for expression in self._written(form, divisors):
            after = expressions.operations(expression, self._operations)
            if after < limit and rank_free(expression, self.found.rank[klass]):
                offered.append(Offer(klass, expression, before, after))
        offered.sort(key=lambda offer: offer.after)
        return list(islice((offer for offer in offered if self._is_right(offer, form)), _FORMS_OFFERED))

    def _roots_saved(self, klass: int, form: Quotient) -> int:
        """Operations of the square roots in a class's tree that its form does without."""
        if not self.forms.squares:
            return 0
        left = atoms_of(*form)
        ranks = {self.found.rank[below] for below in self.forms.atoms(klass)}
        gone = (ranks & self.forms.squares.keys()) - left
        return sum(1 + operations(self.forms.squares[name]) for name in gone)

    def _operations(self, name: int) -> int:
        return self.forms.operations(self.forms.classes[name])

    def _written(self, form: Quotient, divisors: Divisors) -> Iterator[Expression]:
        """Ways to write a form down."""
        if not form.above:
            yield NumberExpression(0)
            return
        above = list(ways_of(form.above, divisors[0]))
        if form.below == ONE:
            yield from above
            return
        ways = list(ways_of(form.below, divisors[1]))
        shortest = min(ways, key=lambda way: expressions.operations(way, self._operations))
        factored = max(ways, key=lambda way: len(_factors(way)))
        for top, below in product(above, (shortest, factored) if factored != shortest else (shortest,)):
            sign, numerator = (
                (-1, top.below[0])
                if isinstance(top, Sum) and not top.above and len(top.below) == 1
                else (1, top)
            )
            over = Product((numerator,), _factors(below))
            yield over if sign > 0 else Sum((), (over,))

    def _divisors_of(self, klass: int, polynomial: Polynomial) -> list[Divisor]:
        """Other classes that may divide a polynomial, found by their smallest and largest atoms."""
        own, atoms = self.found.rank[klass], atoms_of(polynomial)
        if len(polynomial) < 2:
            return []
        found = [
            divisor
            for ends in combinations_with_replacement(sorted(atoms), 2)
            for divisor in self._divisors.get(ends, ())
            if divisor[0] != own
            and len(divisor[1]) <= len(polynomial)
            and divisor[1] != polynomial
            and atoms_of(divisor[1]) <= atoms
        ]
        return sorted(found, key=lambda divisor: (len(divisor[1]), divisor[0]))

    def _is_right(self, offer: Offer, form: Quotient) -> bool:
        """Whether an offer has the dtype of its class, and numbers that its dtype has, and is accurate."""
        reading = self.found.reading
        dtype = np.dtype(DTYPES[int(reading.dtype[offer.klass])])
        numbers = expressions.numbers(offer.expression)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if any(value.denominator != 1 or value > min(limits.max, 1 << 52) for value in numbers):
                return False
            return not _divides(offer.expression)
        named = [int(reading.dtype[self.forms.classes[name]]) for name in expressions.names(offer.expression)]
        if named and max(named) != int(reading.dtype[offer.klass]):
            return False
        return self._is_accurate(offer, form)

    def _is_accurate(self, offer: Offer, form: Quotient) -> bool:
        """As :func:`is_as_accurate`, of which equal questions are remembered whatever the atoms are."""
        written = _tree(self.forms, offer.klass)
        offered = _opened(self.forms, offer.expression)
        number: dict[int, int] = {}
        written, offered = _renamed(written, number), _renamed(offered, number)
        used = [name for name in self.forms.squares if name in number]
        roots = tuple((number[name], self._items(self.forms.squares[name], number)) for name in used)
        items = tuple(self._items(part, number) for part in form)
        return is_as_accurate(written, offered, items, roots)

    def _items(self, polynomial: Polynomial, number: dict[int, int]) -> Items:
        """A polynomial with its atoms numbered."""
        return tuple(
            (tuple(sorted((number.setdefault(name, len(number)), e) for name, e in monomial)), coefficient)
            for monomial, coefficient in polynomial.items()
        )


def _factors(expression: Expression) -> tuple[Expression, ...]:
    """What an expression multiplies, to be divided by one after another: all at once may leave the range."""
    if isinstance(expression, Product) and not expression.below:
        return tuple(factor for part in expression.above for factor in _factors(part))
    return (expression,)


def rank_free(expression: Expression, own: int) -> bool:
    """Whether an expression does without the class it is offered for."""
    return own not in expressions.names(expression)


def _divides(expression: Expression) -> bool:
    match expression:
        case Name() | NumberExpression():
            return False
        case Sum(above, below):
            return any(map(_divides, (*above, *below)))
        case Product(above, below):
            return bool(below) or any(map(_divides, above))


def _tree(forms: Forms, klass: int) -> Expression:
    """The chosen tree of a class, down to atoms."""
    found = forms.found
    if found.coded.is_constant[klass]:
        value = number_of(float(found.reading.value[klass]))
        return NumberExpression(value) if value >= 0 else Sum((), (NumberExpression(-value),))
    if forms.is_atom(klass):
        return Name(found.rank[klass])
    node = found.chosen_list[klass]
    code, number, operands = found.code_list[node], found.number_list[node], ordered(forms, node)
    if code == FILL:
        return _tree(forms, operands[1])
    if code == POWER:
        base = (_tree(forms, operands[0]),) * abs(number)
        return Product(base, ()) if number >= 0 else Product((), base)
    parts = tuple([_tree(forms, operand) for operand in operands])
    return (Sum if code == SUM else Product)(parts[:number], parts[number:])


def _opened(forms: Forms, expression: Expression) -> Expression:
    """An expression with the trees of the classes that it names."""
    match expression:
        case Name(rank):
            return _tree(forms, forms.classes[rank])
        case NumberExpression():
            return expression
        case _:
            above, below = (
                [_opened(forms, part) for part in side] for side in (expression.above, expression.below)
            )
            return type(expression)(tuple(above), tuple(below))


def _renamed(expression: Expression, number: dict[int, int]) -> Expression:
    """An expression with its names numbered in the order in which they stand."""
    match expression:
        case Name(rank):
            return Name(number.setdefault(rank, len(number)))
        case NumberExpression():
            return expression
        case _:
            above, below = (
                [_renamed(part, number) for part in side] for side in (expression.above, expression.below)
            )
            return type(expression)(tuple(above), tuple(below))
