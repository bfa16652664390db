"""Whether a form that is offered loses digits, or its range, where the form there is does not.

Both are quotients of polynomials in the same atoms, so that the true value is known exactly: fractions at
points where differences cancel. Atoms are taken for free variables.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

from esat.egraph.algebra.equal_forms.expressions import (
    Expression,
    Name,
    NumberExpression,
    Product,
    Sum,
    names,
    numbers,
)
from esat.egraph.algebra.equal_forms.polynomials import Coefficient, Monomial, Polynomial, atoms_of
from esat.egraph.algebra.equal_forms.quotients import Quotient

POINTS = 40
SCALED_POINTS = 12
"""Of these, points with huge or with tiny atoms."""
MOST_CONSTANTS, MOST_MOVED = 6, 4
"""Constants of an expression of which quotients are taken, and atoms that have their values."""
SLACK_BITS = 3.0
"""Bits that a form may lose more."""

_UNREACHED = 99.0
"""Bits lost by what is infinite or not a number."""
_NO_DIGIT = 60.0


Items = tuple[tuple[Monomial, Coefficient], ...]
"""A polynomial that can be hashed."""

Dyadic = tuple[int, int]
"""An integer, and the exponent of the power of two that it is multiplied by: a finite float."""


@lru_cache(maxsize=4096)
def is_as_accurate(
    written: Expression,
    offered: Expression,
    form: tuple[Items, ...],
    roots: tuple[tuple[int, Items], ...] = (),
) -> bool:
    """Whether an expression loses at most as many bits as another of the same value, and a few more.

    Parameters
    ----------
    written, offered
        The expressions; names are small numbers that say nothing but which of them are equal.
    form
        The numerator and the denominator of what both are.
    roots
        Names of square roots, with what they are roots of.
    """
    exact = Quotient(dict(form[0]), dict(form[1]))
    squares = {name: dict(items) for name, items in roots}
    atoms = sorted(names(written) | names(offered) | atoms_of(*exact, *squares.values()))
    for values in (*_points(len(atoms)), *_points_at_ratios(len(atoms), numbers(written))):
        point = dict(zip(atoms, values, strict=True))
        dyadic = {name: _dyadic(value) for name, value in point.items()}
        if not _set_roots(point, dyadic, squares):
            continue
        try:
            true = _exactly(exact.above, dyadic) / _exactly(exact.below, dyadic)
        except ZeroDivisionError:
            continue
        if _lost(_computed(offered, point), true) > _lost(_computed(written, point), true) + SLACK_BITS:
            return False
    return True


def _set_roots(point: dict[int, float], dyadic: dict[int, Dyadic], squares: Mapping[int, Polynomial]) -> bool:
    """Give roots their values; whether they are defined, and within range."""
    for name in sorted(squares, key=lambda name: len(squares[name])):
        try:
            radicand = float(_exactly(squares[name], dyadic))
        except OverflowError:
            return False
        if not 0 <= radicand < math.inf:
            return False
        point[name] = math.sqrt(radicand)
        dyadic[name] = _dyadic(point[name])
    return True


def _points_at_ratios(count: int, constants: Collection[Coefficient]) -> Iterator[tuple[float, ...]]:
    """Points at which one atom is the quotient of two constants: where a difference may be exactly zero.

    Of ``2e16*(x - 1) - 7e-14`` nothing is left there of a form that has both constants in one.
    """
    sizes = sorted({1.0, *map(float, constants)})
    if not constants or len(sizes) > MOST_CONSTANTS:
        return
    ratios = sorted({above / below for above in sizes for below in sizes if below})
    for place, ratio in product(range(min(count, MOST_MOVED)), filter(math.isfinite, ratios)):
        point = list(_points(count)[place])
        point[place] = ratio
        yield tuple(point)


@lru_cache(maxsize=64)
def _points(count: int) -> Sequence[tuple[float, ...]]:
    """Hostile points of so many atoms: near each other, near one, of all magnitudes."""
    draw = random.Random(7)
    points: list[tuple[float, ...]] = []
    for number in range(POINTS):
        point: list[float] = []
        last = 1.0
        for _ in range(count):
            kind = draw.randrange(5)
            sign, near = draw.choice((-1, 1)), 1 + draw.choice((-1, 1)) * 10.0 ** draw.uniform(-14, -1)
            if kind == 0:
                last = draw.uniform(-3, 3)
            elif kind == 1:
                last = sign * 10.0 ** draw.uniform(-3, 3)
            elif kind == 2:
                last = sign * near
            else:
                last = sign * last * near
            point.append(last)
        scale = 1.0 if number < POINTS - SCALED_POINTS else 1e200 if number % 2 else 1e-200
        points.append(tuple(value * scale for value in point))
    return points


def _dyadic(value: float) -> Dyadic:
    numerator, denominator = value.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def _exactly(polynomial: Polynomial, point: Mapping[int, Dyadic]) -> Fraction:
    """The value of a polynomial, added up in integers: fractions look for common divisors each time."""
    below = math.lcm(*(coefficient.denominator for coefficient in polynomial.values()))
    terms: list[Dyadic] = []
    for monomial, coefficient in polynomial.items():
        term, shift = coefficient.numerator * (below // coefficient.denominator), 0
        for name, exponent in monomial:
            value, own_shift = point[name]
            term *= value**exponent
            shift += own_shift * exponent
        terms.append((term, shift))
    lowest = min((shift for _, shift in terms), default=0)
    total = sum(term << (shift - lowest) for term, shift in terms)
    return Fraction(total << lowest, below) if lowest > 0 else Fraction(total, below << -lowest)


def _computed(expression: Expression, point: Mapping[int, float]) -> float:
    match expression:
        case Name(rank):
            return point[rank]
        case NumberExpression(value):
            return float(value)
        case Sum(above, below):
            total = 0.0
            for part in above:
                total += _computed(part, point)
            for part in below:
                total -= _computed(part, point)
            return total
        case Product(above, below):
            result = 1.0
            for part in above:
                result *= _computed(part, point)
            for part in below:
                divisor = _computed(part, point)
                result = result / divisor if divisor else math.nan
            return result


def _lost(value: float, true: Fraction) -> float:
    """Bits of 53 that a computed value has wrong."""
    if not math.isfinite(value):
        return _UNREACHED
    above, below = value.as_integer_ratio()
    error = abs(above * true.denominator - true.numerator * below)
    if not error:
        return 0.0
    if not true:
        return _NO_DIGIT
    relative = Fraction(error, below * abs(true.numerator))
    bits = math.log2(relative.numerator) - math.log2(relative.denominator) + 53
    return min(max(0.0, bits), _NO_DIGIT)
