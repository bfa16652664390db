"""Arithmetic modulo a prime below 2**61 on int64, and a hash, for loops that :mod:`esat.base.native`
compiles.

Nothing here overflows but products whose difference is small: as Python integers and as machine words the
results are the same.
"""

from __future__ import annotations

LOW = 0x7FFFFFFF
"""The lower 31 of the 62 bits of a hash."""


def product(left: int, right: int, prime: int, inverse: float) -> int:
    """``left * right`` modulo a prime, of elements of its field.

    In two steps, each of a factor of at most 31 bits: then the quotient by the prime is below 2**31, its
    estimate in floats wrong by 1 at most, and the remainder a difference of two numbers modulo 2**64.
    """
    result = step(left, right >> 31, prime, inverse)
    result = step(result, LOW + 1, prime, inverse)
    result += step(left, right & LOW, prime, inverse)
    return result - prime if result >= prime else result


def step(element: int, factor: int, prime: int, inverse: float) -> int:
    """``element * factor`` modulo a prime, with a factor of at most 31 bits."""
    rest = element * factor - int(float(element) * float(factor) * inverse) * prime
    if rest < 0:
        rest += prime
    return rest - prime if rest >= prime else rest


def power(base: int, exponent: int, prime: int, inverse: float) -> int:
    """``base ** exponent`` modulo a prime, for an exponent that is not negative."""
    result = 1
    while exponent > 0:
        if exponent & 1 == 1:
            result = product(result, base, prime, inverse)
        base = product(base, base, prime, inverse)
        exponent = exponent >> 1
    return result


def mixed(word: int) -> int:
    """A hash of 62 bits of a word of 62 bits, one-to-one: a Feistel network of multiplications.

    Of a vector of words it gives the vector of hashes.
    """
    left = word >> 31
    right = word & LOW
    for turn in range(5):
        scrambled = (
            ((right * 0x5A4F2B1D + 0x3C6EF35F + turn * 0x1F123BB5) >> 14) ^ (right * 0x2C1B3C6D)
        ) & LOW
        above = left ^ scrambled
        left = right
        right = above
    return (left << 31) | right
