"""The finite fields, and how numbers go into them and come back."""

from __future__ import annotations

from fractions import Fraction
from itertools import count

from esat.base.records import record


@record(frozen=True, slots=True)
class Field:
    """Integers modulo a prime.

    Attributes
    ----------
    prime
        Below 2**61, so that sums of four elements fit into an int64.
    seed
        Tells hashes of this field from those of the other one.
    bases
        What powers are taken of: for exponentials, and for circular functions an element and a square root of
        -1. The orders of the first two are those of the field of exponents. In that field -1 has no root:
        there the third is any element, of whose square nothing is known.
    """

    prime: int
    seed: int
    bases: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def with_bases(cls, prime: int, seed: int) -> Field:
        """The field of a prime ``4 q + 1`` with a prime ``q``."""
        first, second = (pow(seed + shift, 4, prime) for shift in (0x5851F42D4C957F, 0x14057B7EF76781))
        candidates = (pow(number, (prime - 1) // 4, prime) for number in count(2))
        root = next(number for number in candidates if number * number % prime == prime - 1)
        return cls(prime, seed, (first, second, root))

    @property
    def of_exponents(self) -> Field:
        """The field in which exponents are evaluated."""
        return Field((self.prime - 1) // 4, self.seed, (0, 0, self.seed))

    @property
    def inverse(self) -> float:
        """Of the prime, for quotients by it."""
        return 1.0 / self.prime

    def element(self, value: complex, is_conjugate: bool = False) -> int:
        """The element that a finite float is, exactly; of a complex number, that with a root of -1.

        Raises
        ------
        OverflowError, ValueError
            For what is not finite.
        """
        if isinstance(value, complex):
            imaginary = self.element(value.imag) * self.bases[2]
            return (self.element(value.real) + (-imaginary if is_conjugate else imaginary)) % self.prime
        numerator, denominator = value.as_integer_ratio()
        return numerator * pow(denominator, -1, self.prime) % self.prime


FIELDS = (
    Field.with_bases(2305843009213691357, 0x2545F4914F6CDD1),
    Field.with_bases(2305843009213688909, 0x369DEA0F31A53F85 >> 2),
)
"""Primes p = 4 q + 1 with a prime q. The multiplicative order of 2 is 4 q. (Modulo 2**61 - 1 the power 2**61
is 1, and float constants, which are multiples of powers of 2, are equal that are not.)"""

LARGEST_PART = 1 << 20
"""Of the numerator and the denominator of a fraction that is taken for a constant. Of 2**60 elements one in
2**20 is such a fraction by chance: hence it has to be the same in both fields."""


def small_fraction(element: int, prime: int) -> Fraction | None:
    """The fraction of small numerator and denominator that an element is, if there is one.

    By Euclid's algorithm on the prime and the element (Wang, "A p-adic algorithm for univariate partial
    fractions", 1981).
    """
    above, remainder, unused, factor = prime, element, 0, 1
    while remainder > LARGEST_PART:
        quotient = above // remainder
        above, remainder = remainder, above - quotient * remainder
        unused, factor = factor, unused - quotient * factor
    if factor == 0 or abs(factor) > LARGEST_PART:
        return None
    return Fraction(remainder, factor)


def constant_of(elements: tuple[int, int]) -> Fraction | None:
    """The small fraction that two elements, one of each field, both are."""
    first = small_fraction(elements[0], FIELDS[0].prime)
    return first if first is not None and first == small_fraction(elements[1], FIELDS[1].prime) else None
