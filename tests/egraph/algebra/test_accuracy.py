"""What is lost by a form is told from the exact value at hostile points."""

from __future__ import annotations

from fractions import Fraction

import pytest

from esat.egraph.algebra.equal_forms.accuracy import _dyadic, _exactly, _lost, _points, is_as_accurate
from esat.egraph.algebra.equal_forms.expressions import Name, NumberExpression, Product, Sum


@pytest.mark.parametrize("count", [1, 2, 5])
def test_polynomials_have_the_value_that_fractions_give(count: int) -> None:
    polynomials = [
        {},
        {(): Fraction(1, 3)},
        {((0, 3),): 2, (): -1},
        {((0, 1), (count - 1, 2)) if count > 1 else ((0, 2),): Fraction(-7, 10), ((0, 1),): 5},
    ]
    for values in _points(count):
        dyadic = {name: _dyadic(value) for name, value in enumerate(values)}
        for polynomial in polynomials:
            true = Fraction(0)
            for monomial, coefficient in polynomial.items():
                term = Fraction(coefficient)
                for name, exponent in monomial:
                    term *= Fraction(values[name]) ** exponent
                true += term
            assert _exactly(polynomial, dyadic) == true


def test_bits_lost_are_those_of_the_relative_error() -> None:
    assert _lost(1.0, Fraction(1)) == 0.0
    assert _lost(1.0 + 2.0**-50, Fraction(1)) == 3.0
    assert _lost(-0.75, Fraction(-1)) == 51.0
    assert _lost(1e-300, Fraction(0)) == 60.0
    assert _lost(float("inf"), Fraction(1)) == 99.0


def test_a_form_in_which_numbers_cancel_is_less_accurate() -> None:
    x, one = Name(0), NumberExpression(1)
    squares = (((((0, 2),), 1), ((), -1)), (((), 1),))
    product = Product((Sum((x,), (one,)), Sum((x, one), ())), ())
    difference = Sum((Product((x, x), ()),), (one,))
    assert is_as_accurate(difference, product, squares)
    assert not is_as_accurate(product, difference, squares)
