"""Polynomials and the ways to write them: all of them have one value."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from esat.egraph.algebra.equal_forms.expressions import Name, NumberExpression, Product, Sum, operations
from esat.egraph.algebra.equal_forms.factoring import forms
from esat.egraph.algebra.equal_forms.polynomials import (
    TooLongError,
    added,
    atom,
    content,
    multiplied,
    quotient,
    root,
)
from esat.egraph.algebra.equal_forms.quotients import of_atom, of_number, power_of, product_of, sum_of

POINT = {name: Fraction(value) for name, value in enumerate(("3/7", "-5/3", "11/2", "2/13"))}
monomials = st.lists(st.integers(0, 3), max_size=3).map(
    lambda names: tuple(sorted((name, names.count(name)) for name in set(names)))
)
polynomials = st.dictionaries(monomials, st.integers(-5, 5).filter(bool), min_size=1, max_size=4)


def value(polynomial) -> Fraction:
    total = Fraction(0)
    for monomial, coefficient in polynomial.items():
        term = Fraction(coefficient)
        for name, exponent in monomial:
            term *= POINT[name] ** exponent
        total += term
    return total


def computed(expression) -> Fraction:
    match expression:
        case Name(rank):
            return POINT[rank]
        case NumberExpression(number):
            return Fraction(number)
        case Sum(above, below):
            return sum(map(computed, above), Fraction(0)) - sum(map(computed, below), Fraction(0))
        case Product(above, below):
            result = Fraction(1)
            for part in above:
                result *= computed(part)
            for part in below:
                result /= computed(part)
            return result


@given(polynomials, polynomials)
@settings(max_examples=60, deadline=None)
def test_products_divide_and_have_roots(left, right) -> None:
    try:
        whole = multiplied(left, right)
    except TooLongError:
        return
    assert value(whole) == value(left) * value(right)
    if whole:
        other = quotient(whole, left)
        assert other is not None
        assert value(other) * value(left) == value(whole)
    try:
        square = multiplied(left, left)
    except TooLongError:
        return
    found = root(square)
    assert found is not None
    assert value(found) ** 2 == value(square)


@given(polynomials, polynomials)
@settings(max_examples=60, deadline=None)
def test_every_way_to_write_a_polynomial_has_its_value(left, right) -> None:
    try:
        whole = multiplied(left, right)
    except TooLongError:
        return
    for polynomial in (left, whole):
        if polynomial:
            ways = list(forms(polynomial, [(2, atom(2))]))
            assert all(computed(way) == value(polynomial) for way in ways)
            number = content(polynomial)
            whole_numbers = [Fraction(coefficient) / number for coefficient in polynomial.values()]
            assert all(coefficient.denominator == 1 for coefficient in whole_numbers)


def test_the_best_way_has_the_fewest_operations() -> None:
    a, b, c, d = map(atom, range(4))

    def fewest(polynomial) -> int:
        return min(operations(way, lambda _: 0) for way in forms(polynomial))

    assert fewest(multiplied(added(a, b), added(a, b))) == 2
    assert fewest(multiplied(added(a, b), added(c, d))) == 3
    assert fewest(multiplied(added(a, b, -1), added(a, b))) == 3
    assert fewest(multiplied(multiplied(added(a, b), c), added(c, d, 2))) == 5
    cube = multiplied(added(a, b), multiplied(added(a, b), added(a, b)))
    assert (
        fewest(added(added(cube, multiplied(a, multiplied(a, a)), -1), multiplied(b, multiplied(b, b)), -1))
        == 4
    )


def test_quotients_are_reduced() -> None:
    a, b, one = of_atom(0), of_atom(1), of_number(1.0)
    difference = sum_of(power_of(a, 2), power_of(b, 2), -1)
    assert product_of(difference, power_of(sum_of(a, b, -1), -1)) == sum_of(a, b)
    parts = sum_of(product_of(a, power_of(sum_of(a, b), -1)), product_of(b, power_of(sum_of(a, b), -1)))
    assert parts == one
    assert power_of(sum_of(power_of(a, -1), power_of(b, -1)), -1).above == product_of(a, b).above
