"""Expressions that are offered: sums and products of classes and numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from esat.base.records import record
from esat.egraph.algebra.equal_forms.polynomials import (
    Coefficient,
    Monomial,
    Polynomial,
    magnitude,
    power_operations,
)


@record(frozen=True, slots=True)
class Name:
    """A class, by its place in the order of what the classes are."""

    rank: int


@record(frozen=True, slots=True)
class NumberExpression:
    """A number that is not negative."""

    value: Coefficient


@record(frozen=True, slots=True)
class Sum:
    """Expressions added, and others subtracted."""

    above: tuple[Expression, ...]
    below: tuple[Expression, ...]


@record(frozen=True, slots=True)
class Product:
    """Expressions multiplied, and others by which these are divided."""

    above: tuple[Expression, ...]
    below: tuple[Expression, ...]


Expression = Name | NumberExpression | Sum | Product


def operations(expression: Expression, of_class: Callable[[int], int]) -> int:
    """Operations of an expression; equal factors are powers by squaring.

    Parameters
    ----------
    expression
        What to count.
    of_class
        Operations that a class takes itself, by its name.
    """
    match expression:
        case Name(rank):
            return of_class(rank)
        case NumberExpression():
            return 0
        case Sum(above, below):
            own = len(above) + len(below) - 1 + (not above)
            return own + sum(operations(part, of_class) for part in (*above, *below))
        case Product(above, below):
            count = int(not above)
            for part, exponent in [*Counter(above).items(), *Counter(below).items()]:
                count += 1 + power_operations(exponent) + operations(part, of_class)
            return count - 1


def names(expression: Expression) -> set[int]:
    """All names in an expression."""
    match expression:
        case Name(rank):
            return {rank}
        case NumberExpression():
            return set()
        case _:
            return set().union(*map(names, (*expression.above, *expression.below)))


def renamed(expression: Expression, names: Mapping[int, int] | Sequence[int]) -> Expression:
    """An expression with other names."""
    match expression:
        case Name(rank):
            return Name(names[rank])
        case NumberExpression():
            return expression
        case _:
            above, below = ([renamed(part, names) for part in side] for side in _sides(expression))
            return type(expression)(tuple(above), tuple(below))


def _sides(expression: Sum | Product) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    return expression.above, expression.below


def numbers(expression: Expression) -> set[Coefficient]:
    """All numbers in an expression."""
    match expression:
        case Name():
            return set()
        case NumberExpression(value):
            return {value}
        case _:
            return set().union(*map(numbers, (*expression.above, *expression.below)))


def product(
    above: list[Expression], below: list[Expression] | None = None, coefficient: Coefficient = 1
) -> Expression:
    """A product with a number as another factor; negative ones are subtracted from nothing."""
    if abs(coefficient) != 1 or not above:
        above = [NumberExpression(magnitude(coefficient)), *above]
    whole = above[0] if len(above) == 1 and not below else Product(tuple(above), tuple(below or ()))
    return whole if coefficient > 0 else Sum((), (whole,))


def of_monomial(monomial: Monomial, coefficient: Coefficient = 1) -> Expression:
    """A monomial, times a number."""
    return product([Name(name) for name, exponent in monomial for _ in range(exponent)], None, coefficient)


def of_polynomial(polynomial: Polynomial) -> Expression:
    """A polynomial, monomial by monomial."""
    if not polynomial:
        return NumberExpression(0)
    above = [of_monomial(m, c) for m, c in sorted(polynomial.items()) if c > 0]
    below = [of_monomial(m, -c) for m, c in sorted(polynomial.items()) if c < 0]
    return above[0] if len(above) == 1 and not below else Sum(tuple(above), tuple(below))
