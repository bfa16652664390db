"""Powers and roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.algorithms.folding import constant_of
from esat.graph.op import Array
from esat.graph.variables import Constant, Variable
from esat.ops.elementwise import complex_functions
from esat.ops.elementwise.arithmetic import sqr
from esat.ops.elementwise.comparison import eq
from esat.ops.elementwise.exponential import log
from esat.ops.elementwise.records.code import Code, floats
from esat.ops.elementwise.records.facts import ANY, KEEPS_SIGN, NEGATIVE, NONNEGATIVE, POSITIVE, Facts
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.elementwise.selection import fill, switch
from esat.ops.inference.promotion import FLOATS, special

Cotangents = Sequence[Variable | None]


class Pow(Elementwise):
    """``x ** y``. Integers to a negative integer power are an error, as in NumPy."""

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        operands = super().promote(inputs)
        exponent = operands[1]
        known = constant_of(exponent)
        if exponent.tensor_type.kind == "i" and known is not None and np.any(known.data < 0):
            reason = "integers cannot be raised to negative integer powers; cast one operand to a float"
            raise DtypeError(describe(self.name, [operand.type for operand in operands], reason))
        return operands


def _pow_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    """``y x**(y-1)`` and ``x**y log(x)``, both zero where the power does not depend on the operand.

    That is for y = 0, and for x = 0 (where JAX too takes zero, whatever y).
    """
    base, exponent = inputs
    known = constant_of(exponent)
    if known is not None:
        return [_gradient_of_known_power(base, known, output, cotangent), None]
    constant_power = eq(exponent, 0)
    by_base = switch(constant_power, 0, exponent * base ** switch(constant_power, 1, exponent - 1))
    by_exponent = switch(eq(base, 0), 0, output * log(switch(eq(base, 0), 1, base)))
    return [cotangent * by_base, cotangent * by_exponent]


def _gradient_of_known_power(
    base: Variable, exponent: Constant, output: Variable, cotangent: Variable
) -> Variable:
    """``y x**(y-1)`` where it is known which y are 0: a condition on them only where they are mixed."""
    powers = exponent.data
    if not np.any(powers):
        zero: Variable = fill(output, 0)
        return zero
    less = Constant(
        exponent.type, np.where(powers == 0, 1, powers - powers.dtype.type(1)).astype(powers.dtype)
    )
    by_base: Variable = exponent * base**less
    if not np.all(powers):
        by_base = switch(powers == 0, 0, by_base)
    return cotangent * by_base


# A signed exponent that is not constant may turn out negative, which only NumPy's loop reports.
pow = Pow(
    "pow", 2, np.power, Code("pow({0}, {1})", None, "integer_power({0}, {1})"), _pow_gradient, flops=45.0,
    facts=Facts(signs=(((POSITIVE, ANY), POSITIVE), ((NONNEGATIVE, NONNEGATIVE), NONNEGATIVE))),
    formula="x1**x2",
)  # fmt: skip


def _powm1(x: Array, y: Array) -> Array:
    exponent = y * np.log(x)
    value: Array = np.where(np.abs(exponent) < 0.5, np.expm1(exponent), np.power(x, y) - x.dtype.type(1))
    return value


def _powm1_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    """The gradient of the power: what is subtracted is constant."""
    power: Variable = pow(*inputs)
    return _pow_gradient(inputs, power, cotangent)


_EXPONENT = "{1} * log({0})"

# x**y - 1, by expm1(y log(x)) where that is near zero: comparisons with the NaN of a negative base are false.
# In the dtypes of SciPy's function, which is 0 where powers overflow and NaN at infinite operands.
powm1 = Elementwise(
    "powm1", 2, _powm1,
    floats(f"select(absolute({_EXPONENT}) < const(0.5), expm1({_EXPONENT}), pow({{0}}, {{1}}) - const(1))"),
    _powm1_gradient, special("powm1"), flops=75.0,
    formula="x1**x2 - 1, without cancellation",
)  # fmt: skip


def _compoundm1(x: Array, y: Array) -> Array:
    exponent, one = y * np.log1p(x), x.dtype.type(1)
    value: Array = np.where(np.abs(exponent) < 0.5, np.expm1(exponent), np.power(one + x, y) - one)
    return value


def _compoundm1_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    """The gradient of the power of the sum."""
    base: Variable = 1 + inputs[0]
    return _pow_gradient([base, inputs[1]], pow(base, inputs[1]), cotangent)


_COMPOUND = "{1} * log1p({0})"

# (1 + x)**y - 1, growth at compound interest, by expm1(y log1p(x)) where that is near zero.
compoundm1 = Elementwise(
    "compoundm1", 2, _compoundm1,
    floats(
        f"select(absolute({_COMPOUND}) < const(0.5), expm1({_COMPOUND}), "
        "pow(const(1) + {0}, {1}) - const(1))"
    ),
    _compoundm1_gradient, FLOATS, flops=75.0,
    formula="(1 + x1)**x2 - 1, without cancellation",
)  # fmt: skip

sqrt = Elementwise(
    "sqrt", 1, np.sqrt, floats("sqrt({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (2 * output)],
    flops=5.0,
    facts=Facts(monotone="increasing", lowest=0, signs=(((POSITIVE,), POSITIVE),)),
    formula="The square root of x",
    complex_form=complex_functions.sqrt,
)  # fmt: skip

cbrt = Elementwise(
    "cbrt", 1, np.cbrt, floats("cbrt({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (3 * sqr(output))],
    flops=20.0,
    facts=Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="The cube root of x",
)  # fmt: skip


def _hypot_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    """The unit vector; zero at the origin, an element of the subdifferential."""
    length = switch(eq(output, 0), 1, output)
    return [cotangent * (operand / length) for operand in inputs]


_LARGER = "maximum(absolute({0}), absolute({1}))"
_SMALLER = "minimum(absolute({0}), absolute({1}))"

# Scaled by the larger operand, so that no square overflows or underflows; infinite if either is, even
# beside a NaN.
hypot = Elementwise(
    "hypot", 2, np.hypot,
    floats(
        "select(isinf({0}) | isinf({1}), fmax(absolute({0}), absolute({1})), "
        f"select({_LARGER} == const(0), const(0), {_LARGER} * "
        f"sqrt(const(1) + ({_SMALLER} / {_LARGER}) * ({_SMALLER} / {_LARGER}))))"
    ),
    _hypot_gradient, flops=20.0,
    facts=Facts(
        commutative=True, associative=True, lowest=0,
        signs=(((POSITIVE, ANY), POSITIVE), ((NEGATIVE, ANY), POSITIVE)),
    ),
    formula="sqrt(x1**2 + x2**2), without overflow",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (pow, powm1, compoundm1, sqrt, cbrt, hypot)
