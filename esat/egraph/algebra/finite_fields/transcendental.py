"""Exponentials and what is made of them, hyperbolic and circular functions, in finite fields.

Of a prime p = 4 q + 1 with a prime q, the fourth powers other than 1 have the order q: g**x depends on x
modulo q, and g**(x + y) is g**x * g**y. So an exponential is a power of such an element, whose exponent is
evaluated in the field of q elements (Martin, "Determining the equivalence of algebraic expressions by hash
coding", 1971). Sines and cosines are (u - 1/u) / 2i and (u + 1/u) / 2 of the same power u of another element,
with an i whose square is -1: nothing is known of what both elements have to do with each other.
"""

from __future__ import annotations

from esat.egraph.algebra.finite_fields.modular import power, product

(EXP, EXPM1, EXPDIFF, SIGMOID, TANH, SINH, COSH, SIN, COS, COSM1, TAN) = range(11)

FUNCTIONS = {
    "Exp": EXP,
    "Expm1": EXPM1,
    "Expdiff": EXPDIFF,
    "Sigmoid": SIGMOID,
    "Tanh": TANH,
    "Sinh": SINH,
    "Cosh": COSH,
    "Sin": SIN,
    "Cos": COS,
    "Cosm1": COSM1,
    "Tan": TAN,
}
"""By constructor, the number of what is known."""


def value_of(
    function: int,
    exponent: int,
    other: int,
    generator: int,
    circle: int,
    imaginary: int,
    prime: int,
    inverse: float,
) -> int:
    """The value of a function; -1 where it has none.

    Parameters
    ----------
    function
        Which one.
    exponent, other
        Its operands, in the field of exponents; twice the same where there is one.
    generator, circle, imaginary
        The bases of the field.
    prime, inverse
        Those of the field.
    """
    power_of = power(circle if function >= SIN else generator, exponent, prime, inverse)
    if function == EXP:
        return power_of
    if function == EXPM1:
        return difference(power_of, 1, prime)
    if function == EXPDIFF:
        return difference(power_of, power(generator, other, prime, inverse), prime)
    if function == SIGMOID:
        return divided(power_of, (power_of + 1) % prime, prime, inverse)
    square = product(power_of, power_of, prime, inverse)
    above = difference(square, 1, prime)
    below = (square + 1) % prime
    double = (power_of + power_of) % prime
    if function == SINH:
        below = double
    elif function == COSH:
        above, below = below, double
    elif function == SIN:
        below = product(double, imaginary, prime, inverse)
    elif function == COS:
        above, below = below, double
    elif function == COSM1:
        above, below = difference(below, double, prime), double
    elif function == TAN:
        below = product(below, imaginary, prime, inverse)
    return divided(above, below, prime, inverse)


def difference(left: int, right: int, prime: int) -> int:
    """``left - right`` modulo a prime."""
    result = left - right
    return result + prime if result < 0 else result


def divided(left: int, right: int, prime: int, inverse: float) -> int:
    """``left / right`` modulo a prime; -1 if the divisor is zero."""
    if right == 0:
        return -1
    return product(left, power(right, prime - 2, prime, inverse), prime, inverse)
