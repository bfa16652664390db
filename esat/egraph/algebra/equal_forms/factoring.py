"""Forms of a polynomial: expanded, nested, and factored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from esat.egraph.algebra.equal_forms.expressions import (
    Expression,
    Name,
    Sum,
    of_monomial,
    of_polynomial,
    product,
)
from esat.egraph.algebra.equal_forms.polynomials import (
    ONE,
    UNIT,
    Coefficient,
    Monomial,
    Polynomial,
    atoms_of,
    common_monomial,
    content,
    degree,
    quotient,
    root,
    root_of_monomial,
    root_of_number,
    scaled,
)

MOST_DIVISORS = 12
"""Divisors that are tried on one polynomial."""

Divisor = tuple[int, Polynomial]
"""The name of a class, and the polynomial it is."""
LARGEST_COEFFICIENT = 4096
"""Of a polynomial whose coefficients are integers without a common factor: with larger ones, which rounded
constants have, its value is out of range where the polynomial itself is far within."""


def forms(polynomial: Polynomial, divisors: Sequence[Divisor] = ()) -> Iterator[Expression]:
    """Ways to write a polynomial down.

    Parameters
    ----------
    polynomial
        Not zero.
    divisors
        Classes that may divide it.
    """
    yield of_polynomial(polynomial)
    common, number = common_monomial(polynomial), _small_content(polynomial)
    rest = scaled(polynomial, common, number)
    if len(rest) > 1 and all(coefficient < 0 for coefficient in rest.values()):
        rest, number = scaled(rest, UNIT, -1), -number
    if len(rest) > 1 and (common or abs(number) != 1):
        yield _times(common, number, [of_polynomial(rest)])
    occurrences = sum(map(degree, rest))
    if occurrences == len(atoms_of(rest)):
        return  # each atom once: there is no other form
    if len(rest) > 2:
        yield _times(common, number, [nested(rest)])
        factors = factored(rest, divisors)
        if factors is not None:
            yield _times(common, number, factors)
    else:
        factors = difference_of_squares(rest)
        if factors is not None:
            yield _times(common, number, factors)


def _small_content(polynomial: Polynomial) -> Coefficient:
    """The content, or 1 where that of rounded constants leaves large numbers, which overflow sooner."""
    number = content(polynomial)
    largest = LARGEST_COEFFICIENT * number
    return number if all(-largest <= one <= largest for one in polynomial.values()) else 1


def _times(common: Monomial, number: Coefficient, factors: list[Expression]) -> Expression:
    names: list[Expression] = [Name(name) for name, exponent in common for _ in range(exponent)]
    return product([*names, *factors], None, number)


def nested(polynomial: Polynomial) -> Expression:
    """A polynomial with the most frequent atom taken out, again and again (Horner's form)."""
    if len(polynomial) == 1:
        return of_polynomial(polynomial)
    counts = Counter(name for monomial in polynomial for name, _ in monomial)
    name, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    if count < 2:
        return of_polynomial(polynomial)
    inside = {m: c for m, c in polynomial.items() if any(own == name for own, _ in m)}
    outside = {m: c for m, c in polynomial.items() if m not in inside}
    common = common_monomial(inside)
    rest = scaled(inside, common, 1)
    sign = -1 if all(coefficient < 0 for coefficient in rest.values()) else 1
    term = product([of_monomial(common), nested(scaled(rest, UNIT, sign))])
    if not outside:
        return term if sign > 0 else Sum((), (term,))
    parts = nested(outside)
    above, below = (parts.above, parts.below) if isinstance(parts, Sum) else ((parts,), ())
    return Sum((*above, term), below) if sign > 0 else Sum(above, (*below, term))


def factored(polynomial: Polynomial, divisors: Sequence[Divisor]) -> list[Expression] | None:
    """Factors of a polynomial without a common monomial; None where none was found."""
    for sign in (1, -1):
        square = root(scaled(polynomial, UNIT, sign))
        if square is not None:
            factor = nested(square)
            return [factor, factor] if sign > 0 else [Sum((), (product([factor, factor]),))]
    for divisor, written in _candidates(polynomial, divisors):
        other = quotient(polynomial, divisor)
        if other is not None and other != ONE and len(other) <= len(polynomial):
            further = factored(other, divisors) if len(other) > 2 else difference_of_squares(other)
            return [written, *([nested(other)] if further is None else further)]
    return None


def _candidates(
    polynomial: Polynomial, divisors: Sequence[Divisor]
) -> Iterator[tuple[Polynomial, Expression]]:
    """Polynomials that may divide another: coefficients of its atoms' powers, and classes."""
    atoms = atoms_of(polynomial)
    found: list[Polynomial] = []
    exponents = {monomial: dict(monomial) for monomial in polynomial}
    for name in sorted(atoms):
        parts: dict[int, Polynomial] = {}
        for monomial, coefficient in polynomial.items():
            exponent = exponents[monomial].get(name, 0)
            others = tuple([factor for factor in monomial if factor[0] != name]) if exponent else monomial
            parts.setdefault(exponent, {})[others] = coefficient
        if len(parts) > 1:
            smallest = min(parts.values(), key=len)
            primitive = scaled(smallest, common_monomial(smallest), content(smallest))
            if len(primitive) > 1 and primitive not in found:
                found.append(primitive)
    for factor in found[:MOST_DIVISORS]:
        yield factor, nested(factor)
    own = [(name, factor) for name, factor in divisors if atoms_of(factor) <= atoms and factor != polynomial]
    for name, factor in own[:MOST_DIVISORS]:
        yield factor, Name(name)


def difference_of_squares(polynomial: Polynomial) -> list[Expression] | None:
    """``x - y`` and ``x + y`` for what is ``x x - y y``."""
    if len(polynomial) != 2:
        return None
    (first, above), (second, below) = sorted(polynomial.items(), key=lambda item: -item[1])
    if not above > 0 > below:
        return None
    roots = root_of_monomial(first), root_of_monomial(second)
    numbers = root_of_number(above), root_of_number(-below)
    if roots[0] is None or roots[1] is None or numbers[0] is None or numbers[1] is None:
        return None
    left, right = of_monomial(roots[0], numbers[0]), of_monomial(roots[1], numbers[1])
    return [Sum((left,), (right,)), Sum((left, right), ())]
