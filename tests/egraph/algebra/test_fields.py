"""Arithmetic modulo the primes, and numbers that come back from it."""

import random
from fractions import Fraction

import pytest

from esat.egraph.algebra.fields import FIELDS, LARGEST_PART, constant_of
from esat.egraph.algebra.numbers import LOW, mixed, power, product, step


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
def test_primes_are_safe_and_small_enough(field) -> None:
    assert field.prime < 2**61
    assert is_prime(field.prime)
    assert is_prime(field.prime // 2)
    assert all(pow(2, exponent, field.prime) != 1 for exponent in range(1, 4096))


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
