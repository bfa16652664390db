"""Quotients of polynomials, reduced as far as exact divisions go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from esat.egraph.algebra.equal_forms.polynomials import (
    ONE,
    UNIT,
    Monomial,
    Polynomial,
    added,
    atom,
    common_monomial,
    divided,
    multiplied,
    number,
    quotient,
    scaled,
)


class Quotient(NamedTuple):
    """A polynomial divided by another one."""

    above: Polynomial
    below: Polynomial


Squares = Mapping[int, Polynomial]
"""Atoms that are square roots, with what they are roots of."""


def without_squares(value: Quotient, squares: Squares) -> Quotient:
    """A quotient in which roots have no higher power than the first; raises TooLongError."""
    above, below = (_without_squares(part, squares) for part in value)
    return reduced(above, below) if below else value


def _without_squares(polynomial: Polynomial, squares: Squares) -> Polynomial:
    total: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        rest: Monomial = tuple(
            (name, exponent % 2 if name in squares else exponent)
            for name, exponent in monomial
            if name not in squares or exponent % 2
        )
        term: Polynomial = {rest: coefficient}
        for name, exponent in monomial:
            for _ in range(exponent // 2 if name in squares else 0):
                term = multiplied(term, squares[name])
        total = added(total, term)
    return total


ZERO = Quotient({}, ONE)


def of_atom(name: int) -> Quotient:
    """What is one atom."""
    return Quotient(atom(name), ONE)


def of_number(value: float) -> Quotient:
    """A finite float."""
    return Quotient({UNIT: number(value)} if value else {}, ONE)


def inverted(value: Quotient) -> Quotient:
    """The reciprocal; raises ZeroDivisionError."""
    if not value.above:
        raise ZeroDivisionError
    return reduced(value.below, value.above)


def sum_of(left: Quotient, right: Quotient, sign: int = 1) -> Quotient:
    """The sum, or the difference; raises TooLongError."""
    if left.below == right.below:
        return reduced(added(left.above, right.above, sign), left.below)
    factor = quotient(right.below, left.below)
    if factor is not None:
        return reduced(added(multiplied(left.above, factor), right.above, sign), right.below)
    factor = quotient(left.below, right.below)
    if factor is not None:
        return reduced(added(left.above, multiplied(right.above, factor), sign), left.below)
    above = added(multiplied(left.above, right.below), multiplied(right.above, left.below), sign)
    return reduced(above, multiplied(left.below, right.below))


def product_of(left: Quotient, right: Quotient) -> Quotient:
    """The product; raises TooLongError."""
    if left.below is ONE and right.below is ONE:
        return Quotient(multiplied(left.above, right.above), ONE)
    first = reduced(left.above, right.below)
    second = reduced(right.above, left.below)
    return reduced(multiplied(first.above, second.above), multiplied(first.below, second.below))


def power_of(base: Quotient, exponent: int) -> Quotient:
    """A power; raises TooLongError, ZeroDivisionError."""
    if exponent < 0:
        base = inverted(base)
    result = Quotient(ONE, ONE)
    for _ in range(abs(exponent)):
        result = product_of(result, base)
    return result


def reduced(above: Polynomial, below: Polynomial) -> Quotient:
    """The quotient without common monomials and without a divisor of the whole."""
    if not above:
        return ZERO
    if below == ONE:
        return Quotient(above, ONE)
    of_below = dict(common_monomial(below))
    common = tuple(
        (name, min(exponent, of_below[name])) for name, exponent in common_monomial(above) if name in of_below
    )
    if common:
        above, below = scaled(above, common, 1), scaled(below, common, 1)
    factor = below[max(below)]
    if factor != 1:
        above = {monomial: divided(coefficient, factor) for monomial, coefficient in above.items()}
        below = {monomial: divided(coefficient, factor) for monomial, coefficient in below.items()}
    if below == ONE:
        return Quotient(above, ONE)
    if len(below) > 1 and len(above) > 1:
        whole = quotient(above, below)
        if whole is not None:
            return Quotient(whole, ONE)
        whole = quotient(below, above)
        if whole is not None:
            return reduced(ONE, whole)
    return Quotient(above, below)
