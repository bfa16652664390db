"""Sparse polynomials with rational coefficients over atoms, short ones only.

A monomial is a tuple of pairs of an atom and its exponent, in ascending order; a polynomial maps monomials to
their coefficients, none of which is zero. Atoms are numbers that stand for classes, in an order that follows
from what the classes are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import gcd, isqrt, lcm

Coefficient = int | Fraction
Monomial = tuple[tuple[int, int], ...]
Polynomial = dict[Monomial, Coefficient]

MOST_MONOMIALS = 16
LARGEST_DEGREE = 6
"""Limits of what is expanded: growth with the size of the graph stays linear."""

UNIT: Monomial = ()
ONE: Polynomial = {UNIT: 1}


class TooLongError(Exception):
    """A polynomial has more monomials, or a larger degree, than are looked at."""


def number(value: float) -> Coefficient:
    """A finite float, exactly."""
    return int(value) if value == int(value) else Fraction(value)


def magnitude(value: Coefficient) -> Coefficient:
    """The absolute value."""
    return -value if value < 0 else value


def divided(left: Coefficient, right: Coefficient) -> Coefficient:
    """The quotient, as an integer where it is one."""
    result = Fraction(left) / right
    return result.numerator if result.denominator == 1 else result


def atom(name: int) -> Polynomial:
    """The polynomial that is one atom."""
    return {((name, 1),): 1}


def degree(monomial: Monomial) -> int:
    """The sum of the exponents."""
    return sum(exponent for _, exponent in monomial)


def atoms_of(*polynomials: Polynomial) -> set[int]:
    """All atoms in polynomials."""
    return {name for polynomial in polynomials for monomial in polynomial for name, _ in monomial}


def limited(polynomial: Polynomial) -> Polynomial:
    """A polynomial that is within the limits.

    Raises
    ------
    TooLongError
        If it is not.
    """
    if len(polynomial) > MOST_MONOMIALS or any(degree(m) > LARGEST_DEGREE for m in polynomial):
        raise TooLongError
    return polynomial


def _accumulate(total: Polynomial, monomial: Monomial, coefficient: Coefficient) -> None:
    value = total.get(monomial, 0) + coefficient
    if value:
        total[monomial] = value
    else:
        total.pop(monomial, None)


def multiplied_monomials(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials."""
    if not left or not right:
        return left or right
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted(exponents.items()))


def divided_monomials(left: Monomial, right: Monomial) -> Monomial | None:
    """The quotient of two monomials, if it is one."""
    if not right:
        return left
    exponents = dict(left)
    for name, exponent in right:
        rest = exponents.get(name, 0) - exponent
        if rest < 0:
            return None
        if rest:
            exponents[name] = rest
        else:
            del exponents[name]
    return tuple(exponents.items())


def root_of_monomial(monomial: Monomial) -> Monomial | None:
    """The square root, if it is a monomial."""
    if any(exponent % 2 for _, exponent in monomial):
        return None
    return tuple((name, exponent // 2) for name, exponent in monomial)


def added(left: Polynomial, right: Polynomial, factor: Coefficient = 1) -> Polynomial:
    """``left + factor * right``; raises TooLongError."""
    total = dict(left)
    for monomial, coefficient in right.items():
        _accumulate(total, monomial, factor * coefficient)
    return limited(total)


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product; raises TooLongError."""
    if left == ONE:
        return right
    if right == ONE:
        return left
    if len(left) * len(right) > 4 * MOST_MONOMIALS:
        raise TooLongError
    total: Polynomial = {}
    for one, coefficient in left.items():
        for other, factor in right.items():
            _accumulate(total, multiplied_monomials(one, other), coefficient * factor)
    return limited(total)


def scaled(polynomial: Polynomial, monomial: Monomial, factor: Coefficient) -> Polynomial:
    """A polynomial divided by a monomial, which divides it, and by a number."""
    result: Polynomial = {}
    for own, coefficient in polynomial.items():
        quotient = divided_monomials(own, monomial)
        assert quotient is not None
        result[quotient] = coefficient * factor if abs(factor) == 1 else divided(coefficient, factor)
    return result


def _lexicographic(names: Iterable[int]) -> Callable[[Monomial], tuple[int, ...]]:
    place = {name: number for number, name in enumerate(sorted(names))}
    none = [0] * len(place)
    known: dict[Monomial, tuple[int, ...]] = {}

    def key(monomial: Monomial) -> tuple[int, ...]:
        found = known.get(monomial)
        if found is None:
            exponents = none.copy()
            for name, exponent in monomial:
                exponents[place[name]] = exponent
            found = known[monomial] = tuple(exponents)
        return found

    return key


def quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """The quotient of two polynomials, if it is a polynomial within the limits."""
    key = _lexicographic(atoms_of(dividend, divisor))
    leading = max(divisor, key=key)
    rest = dict(dividend)
    result: Polynomial = {}
    for _ in range(2 * MOST_MONOMIALS):
        if not rest:
            return result
        first = max(rest, key=key)
        monomial = divided_monomials(first, leading)
        if monomial is None:
            return None
        coefficient = divided(rest[first], divisor[leading])
        result[monomial] = coefficient
        for own, factor in divisor.items():
            _accumulate(rest, multiplied_monomials(own, monomial), -coefficient * factor)
        if len(rest) > 4 * MOST_MONOMIALS:
            return None
    return None


def root_of_number(value: Coefficient) -> Coefficient | None:
    """The square root of a number, if it is rational."""
    if value < 0:
        return None
    above, below = isqrt(value.numerator), isqrt(value.denominator)
    if above * above != value.numerator or below * below != value.denominator:
        return None
    return divided(above, below)


def root(polynomial: Polynomial) -> Polynomial | None:
    """The square root of a polynomial, if it is a polynomial: from the leading monomial down."""
    key = _lexicographic(atoms_of(polynomial))
    leading = max(polynomial, key=key)
    monomial, coefficient = root_of_monomial(leading), root_of_number(polynomial[leading])
    if monomial is None or coefficient is None:
        return None
    result: Polynomial = {monomial: coefficient}
    for _ in range(MOST_MONOMIALS):
        try:
            rest = added(polynomial, multiplied(result, result), -1)
        except TooLongError:
            return None
        if not rest:
            return result
        first = max(rest, key=key)
        next_one = divided_monomials(first, monomial)
        if next_one is None or next_one in result:
            return None
        result[next_one] = divided(rest[first], 2 * coefficient)
    return None


def common_monomial(polynomial: Polynomial) -> Monomial:
    """The largest monomial that divides all of a polynomial's."""
    monomials = iter(polynomial)
    common = dict(next(monomials))
    for monomial in monomials:
        if not common:
            break
        common = {name: min(exponent, common[name]) for name, exponent in monomial if name in common}
    return tuple(sorted(common.items()))


def content(polynomial: Polynomial) -> Coefficient:
    """The largest positive number by which all coefficients are integers without a common factor."""
    coefficients = polynomial.values()
    return divided(gcd(*(c.numerator for c in coefficients)), lcm(*(c.denominator for c in coefficients)))


# ---- operations


def power_operations(exponent: int) -> int:
    """Multiplications of a power by squaring."""
    return exponent.bit_length() + exponent.bit_count() - 2


def monomial_operations(monomial: Monomial, coefficient: Coefficient) -> int:
    """Multiplications of a monomial, whatever its sign."""
    if not monomial:
        return 0
    powers = sum(power_operations(exponent) for _, exponent in monomial)
    return powers + len(monomial) - 1 + (abs(coefficient) != 1)


def operations(polynomial: Polynomial) -> int:
    """Operations of a polynomial, monomial by monomial."""
    if not polynomial:
        return 0
    products = sum(monomial_operations(m, c) for m, c in polynomial.items())
    return products + len(polynomial) - 1 + all(c < 0 for c in polynomial.values())
