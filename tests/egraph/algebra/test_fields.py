"""Arithmetic modulo the primes, and numbers that come back from it."""

import random
from fractions import Fraction

import pytest

from esat.egraph.algebra.finite_fields.fields import FIELDS, LARGEST_PART, constant_of
from esat.egraph.algebra.finite_fields.modular import LOW, mixed, power, product, step
from esat.egraph.algebra.finite_fields.transcendental import FUNCTIONS, value_of


def is_prime(number: int) -> bool:
    """Miller and Rabin's test, with bases that decide all numbers below 2**64."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        value = pow(base, odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True


@pytest.mark.parametrize("field", FIELDS)
def test_primes_are_small_enough_and_exponents_have_a_field(field) -> None:
    prime, order = field.prime, field.of_exponents.prime
    assert prime < 2**61
    assert (prime - 1) // 4 == order
    assert is_prime(prime)
    assert is_prime(order)
    assert pow(2, 2 * order, prime) != 1 != pow(2, 4, prime)
    generator, circle, imaginary = field.bases
    assert pow(generator, order, prime) == pow(circle, order, prime) == 1 != generator != circle != 1
    assert imaginary * imaginary % prime == prime - 1


@pytest.mark.parametrize("field", FIELDS)
def test_functions_add_up_as_they_do(field) -> None:
    draw, prime, order = random.Random(3), field.prime, field.of_exponents.prime

    def value(name: str, exponent: int, other: int = 0) -> int:
        exponents = exponent % order, other % order
        return value_of(FUNCTIONS[name], *exponents, *field.bases, prime, field.inverse)

    for _ in range(20):
        x, y = draw.randrange(order), draw.randrange(order)
        exp, sin, cos, tan, sinh, cosh, tanh = (
            lambda number, name=name: value(name, number)
            for name in ("Exp", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Tanh")
        )
        assert exp(x + y) == exp(x) * exp(y) % prime
        assert value("Expm1", x) == (exp(x) - 1) % prime
        assert value("Expdiff", x, y) == (exp(x) - exp(y)) % prime
        assert value("Cosm1", x) == (cos(x) - 1) % prime
        assert value("Sigmoid", x) * (1 + exp(-x)) % prime == 1
        assert sin(x + y) == (sin(x) * cos(y) + cos(x) * sin(y)) % prime
        assert cos(x + y) == (cos(x) * cos(y) - sin(x) * sin(y)) % prime
        assert tan(x) * cos(x) % prime == sin(x)
        assert sinh(x + y) == (sinh(x) * cosh(y) + cosh(x) * sinh(y)) % prime
        assert (cosh(x) ** 2 - sinh(x) ** 2) % prime == 1
        assert tanh(x) * cosh(x) % prime == sinh(x)
        assert len({exp(x), sin(x), cos(x), tan(x), sinh(x), cosh(x), tanh(x), exp(y)}) == 8
    zeros = {name for name in FUNCTIONS if value(name, 0) == 0}
    assert zeros == {"Expm1", "Expdiff", "Tanh", "Sinh", "Sin", "Cosm1", "Tan"}
    assert value("Exp", 0) == value("Cosh", 0) == value("Cos", 0) == value("Sigmoid", 0) * 2 % prime == 1


@pytest.mark.parametrize("field", FIELDS)
def test_products_and_powers(field) -> None:
    draw, prime = random.Random(1), field.prime
    elements = [0, 1, 2, LOW, LOW + 1, prime - 1, prime - 2, *(draw.randrange(prime) for _ in range(300))]
    for left in elements:
        for right in elements[:40]:
            assert product(left, right, prime, field.inverse) == left * right % prime
        assert step(left, LOW + 1, prime, field.inverse) == left * (LOW + 1) % prime
        if left:
            assert power(left, prime - 2, prime, field.inverse) * left % prime == 1


def test_hashes_are_one_to_one_and_spread() -> None:
    hashes = [mixed(word) for word in range(5000)]
    assert len(set(hashes)) == 5000
    assert all(0 <= word < 2**62 for word in hashes)
    bits = (0, 31, 61)
    changed = [(mixed(word) ^ mixed(word ^ (1 << bit))).bit_count() for word in range(200) for bit in bits]
    assert 29 < sum(changed) / len(changed) < 33


def test_fractions_come_back() -> None:
    draw = random.Random(2)
    for _ in range(200):
        fraction = Fraction(draw.randint(-LARGEST_PART, LARGEST_PART), draw.randint(1, LARGEST_PART))
        elements = tuple(
            fraction.numerator * pow(fraction.denominator, -1, field.prime) % field.prime for field in FIELDS
        )
        assert constant_of(elements) == fraction
    found = [constant_of(tuple(draw.randrange(field.prime) for field in FIELDS)) for _ in range(2000)]
    assert found == [None] * 2000


def test_powers_of_two_differ() -> None:
    # Modulo 2**61 - 1 they would not: constants are dyadic, and 2**-55 would be 64.
    for field in FIELDS:
        assert len({field.element(2.0**exponent) for exponent in range(-200, 200)}) == 400
    for exponent in (*range(-200, -20), *range(21, 200)):
        assert constant_of(tuple(field.element(2.0**exponent) for field in FIELDS)) is None
