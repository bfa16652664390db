"""Whether a form that is offered loses digits, or its range, where the form there is does not.

Both are quotients of polynomials in the same atoms, so that the true value is known exactly: fractions at
points where differences cancel. Atoms are taken for free variables.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from esat.egraph.algebra.expressions import Expression, Name, NumberExpression, Product, Sum, names
from esat.egraph.algebra.polynomials import Coefficient, Monomial, Polynomial, atoms_of
from esat.egraph.algebra.quotients import Quotient

POINTS = 40
SCALED_POINTS = 12
"""Of these, points with huge or with tiny atoms."""
SLACK_BITS = 3.0
"""Bits that a form may lose more."""

_UNREACHED = 99.0
"""Bits lost by what is infinite or not a number."""
_NO_DIGIT = 60.0


Items = tuple[tuple[Monomial, Coefficient], ...]
"""A polynomial that can be hashed."""


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
    for point in _points(sorted(names(written) | names(offered) | atoms_of(*exact, *squares.values()))):
        fractions = {name: Fraction(value) for name, value in point.items()}
        if not _set_roots(point, fractions, squares):
            continue
        try:
            true = _exactly(exact.above, fractions) / _exactly(exact.below, fractions)
        except ZeroDivisionError:
            continue
        if _lost(_computed(offered, point), true) > _lost(_computed(written, point), true) + SLACK_BITS:
            return False
    return True


def _set_roots(
    point: dict[int, float], fractions: dict[int, Fraction], squares: Mapping[int, Polynomial]
) -> bool:
    """Give roots their values; whether they are defined, and within range."""
    for name in sorted(squares, key=lambda name: len(squares[name])):
        try:
            radicand = float(_exactly(squares[name], fractions))
        except OverflowError:
            return False
        if not 0 <= radicand < math.inf:
            return False
        point[name] = math.sqrt(radicand)
        fractions[name] = Fraction(point[name])
    return True


def _points(names: Sequence[int]) -> list[dict[int, float]]:
    """Hostile points: near each other, near one, of all magnitudes."""
    draw = random.Random(7)
    points: list[dict[int, float]] = []
    for number in range(POINTS):
        point: dict[int, float] = {}
        last = 1.0
        for name in names:
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
            point[name] = last
        scale = 1.0 if number < POINTS - SCALED_POINTS else 1e200 if number % 2 else 1e-200
        points.append({name: value * scale for name, value in point.items()})
    return points


def _exactly(polynomial: Polynomial, point: Mapping[int, Fraction]) -> Fraction:
    total = Fraction(0)
    for monomial, coefficient in polynomial.items():
        term = Fraction(coefficient)
        for name, exponent in monomial:
            term *= point[name] ** exponent
        total += term
    return total


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
    error = abs(Fraction(value) - true)
    if not error:
        return 0.0
    if not true:
        return _NO_DIGIT
    relative = error / abs(true)
    bits = math.log2(relative.numerator) - math.log2(relative.denominator) + 53
    return min(max(0.0, bits), _NO_DIGIT)
