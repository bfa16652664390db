"""Arithmetic. On booleans add is "or" and mul is "and"; sub, neg and sign do not take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.graph.variables import Variable
from esat.ops.elementwise import complex_forms
from esat.ops.elementwise.records.code import Code, arithmetic, floats, numbers
from esat.ops.elementwise.records.facts import (
    ANY,
    KEEPS_SIGN,
    NEGATIVE,
    NONNEGATIVE,
    NONPOSITIVE,
    POSITIVE,
    Facts,
)
from esat.ops.elementwise.records.record import ZERO, Elementwise, no_gradient, slope

Cotangents = Sequence[Variable | None]

add = Elementwise(
    "add", 2, np.add, arithmetic("+", "wrapping_add", boolean="{0} | {1}"),
    gradient=lambda inputs, output, cotangent: [cotangent, cotangent],
    facts=Facts(
        commutative=True, associative=True,
        signs=(
            ((POSITIVE, NONNEGATIVE), POSITIVE),
            ((NONNEGATIVE, NONNEGATIVE), NONNEGATIVE),
            ((NEGATIVE, NONPOSITIVE), NEGATIVE),
            ((NONPOSITIVE, NONPOSITIVE), NONPOSITIVE),
        ),
    ),
    formula="x1 + x2; of truth values, x1 or x2",
    complex_form=complex_forms.add,
)  # fmt: skip

sub = Elementwise(
    "sub", 2, np.subtract, arithmetic("-", "wrapping_sub"),
    gradient=lambda inputs, output, cotangent: [cotangent, -cotangent],
    facts=Facts(
        signs=(
            ((POSITIVE, NONPOSITIVE), POSITIVE),
            ((NONNEGATIVE, NEGATIVE), POSITIVE),
            ((NONNEGATIVE, NONPOSITIVE), NONNEGATIVE),
            ((NEGATIVE, NONNEGATIVE), NEGATIVE),
            ((NONPOSITIVE, POSITIVE), NEGATIVE),
            ((NONPOSITIVE, NONNEGATIVE), NONPOSITIVE),
        ),
    ),
    formula="x1 - x2",
    complex_form=complex_forms.sub,
)  # fmt: skip

mul = Elementwise(
    "mul", 2, np.multiply, arithmetic("*", "wrapping_mul", boolean="{0} & {1}"),
    gradient=lambda inputs, output, cotangent: [cotangent * inputs[1], cotangent * inputs[0]],
    facts=Facts(
        commutative=True, associative=True,
        signs=(
            ((POSITIVE, POSITIVE), POSITIVE),
            ((NONNEGATIVE, NONNEGATIVE), NONNEGATIVE),
            ((POSITIVE, NEGATIVE), NEGATIVE),
            ((NONNEGATIVE, NONPOSITIVE), NONPOSITIVE),
            ((NEGATIVE, NEGATIVE), POSITIVE),
            ((NONPOSITIVE, NONPOSITIVE), NONNEGATIVE),
        ),
    ),
    formula="x1 * x2; of truth values, x1 and x2",
    complex_form=complex_forms.mul,
)  # fmt: skip


def _div_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    part = cotangent / inputs[1]
    return [part, -(part * output)]


# A divisor of zero may be -0.0, so that only strict signs of it say anything.
div = Elementwise(
    "div", 2, np.divide, floats("{0} / {1}"), _div_gradient, flops=4.0,
    facts=Facts(
        signs=(
            ((POSITIVE, POSITIVE), POSITIVE),
            ((NONNEGATIVE, POSITIVE), NONNEGATIVE),
            ((NEGATIVE, POSITIVE), NEGATIVE),
            ((NONPOSITIVE, POSITIVE), NONPOSITIVE),
            ((POSITIVE, NEGATIVE), NEGATIVE),
            ((NONNEGATIVE, NEGATIVE), NONPOSITIVE),
            ((NEGATIVE, NEGATIVE), POSITIVE),
            ((NONPOSITIVE, NEGATIVE), NONNEGATIVE),
        ),
    ),
    formula="x1 / x2, of floats",
    complex_form=complex_forms.div,
)  # fmt: skip

# Division by an integer zero gives 0, as in NumPy.
floor_div = Elementwise(
    "floor_div", 2, np.floor_divide, numbers("floor_divide({0}, {1})"), ZERO, flops=8.0,
    facts=Facts(
        integral=True,
        signs=(((NONNEGATIVE, POSITIVE), NONNEGATIVE), ((NONPOSITIVE, POSITIVE), NONPOSITIVE)),
    ),
    formula="floor(x1 / x2); zero for integers divided by zero",
)  # fmt: skip

mod = Elementwise(
    "mod", 2, np.remainder, numbers("remainder({0}, {1})"),
    gradient=lambda inputs, output, cotangent: [cotangent, -(cotangent * floor_div(*inputs))],
    flops=10.0,
    facts=Facts(signs=(((ANY, POSITIVE), NONNEGATIVE), ((ANY, NEGATIVE), NONPOSITIVE))),
    formula="x1 - x2 * floor(x1 / x2), with the sign of the divisor",
)  # fmt: skip


def _fmod_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    dividend, divisor = inputs
    return [cotangent, -(cotangent * ((dividend - output) / divisor))]


fmod = Elementwise(
    "fmod", 2, np.fmod, numbers("fmod({0}, {1})"), _fmod_gradient, flops=10.0,
    facts=Facts(signs=(((NONNEGATIVE, ANY), NONNEGATIVE), ((NONPOSITIVE, ANY), NONPOSITIVE))),
    formula="x1 - x2 * trunc(x1 / x2), with the sign of the dividend",
)  # fmt: skip

neg = Elementwise(
    "neg", 1, np.negative, numbers("-{0}"),
    gradient=lambda inputs, output, cotangent: [-cotangent], flops=0.5,  # one bit of a number changes
    facts=Facts(
        keeps_finite=True, parity="odd", monotone="decreasing",
        signs=(
            ((POSITIVE,), NEGATIVE),
            ((NEGATIVE,), POSITIVE),
            ((NONNEGATIVE,), NONPOSITIVE),
            ((NONPOSITIVE,), NONNEGATIVE),
        ),
    ),
    formula="-x",
    complex_form=complex_forms.neg,
)  # fmt: skip

positive = Elementwise(
    "positive", 1, np.positive, numbers("{0}"),
    gradient=lambda inputs, output, cotangent: [cotangent],
    facts=Facts(keeps_finite=True, idempotent=True, parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="x",
)  # fmt: skip


def _sign_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    if inputs[0].tensor_type.kind == "c":
        raise no_gradient(
            "sign", inputs, "the sign of a complex number has no complex derivative", output.owner
        )
    return [None]


sign = Elementwise(
    "sign", 1, np.sign, numbers("sign({0})"), _sign_gradient,
    facts=Facts(
        keeps_finite=True, idempotent=True, parity="odd", monotone="increasing", lowest=-1, highest=1,
        integral=True, signs=KEEPS_SIGN,
    ),
    formula="-1, 0 or 1; z / abs(z) of complex numbers",
)  # fmt: skip


def _abs_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    direction: Variable = sign(inputs[0])
    if inputs[0].tensor_type.kind == "c":
        from esat.ops.elementwise.complex import conj

        direction = conj(direction)
    return [cotangent * direction]


# At zero the gradient is zero, an element of the subdifferential.
absolute = Elementwise(
    "abs", 1, np.absolute, Code("absolute({0})", "absolute({0})", "{0}", "{0}"), _abs_gradient, typing="real",
    facts=Facts(
        keeps_finite=True, idempotent=True, parity="even", lowest=0,
        signs=(((POSITIVE,), POSITIVE), ((NEGATIVE,), POSITIVE)),
    ),
    formula="abs(x), the modulus of complex numbers",
    complex_form=complex_forms.absolute,
)  # fmt: skip

sqr = Elementwise(
    "sqr", 1, np.square, arithmetic("*", "wrapping_mul", "{0}"), slope(lambda x, out: 2 * x),
    facts=Facts(parity="even", lowest=0, signs=(((POSITIVE,), POSITIVE), ((NEGATIVE,), POSITIVE))),
    formula="x * x",
    complex_form=complex_forms.sqr,
)  # fmt: skip

reciprocal = Elementwise(
    "reciprocal", 1, np.reciprocal, floats("const(1) / {0}"),
    gradient=lambda inputs, output, cotangent: [-(cotangent * sqr(output))],
    flops=4.0,
    facts=Facts(parity="odd", signs=(((POSITIVE,), POSITIVE), ((NEGATIVE,), NEGATIVE))),
    formula="1 / x, rounded towards zero for integers",
    complex_form=complex_forms.reciprocal,
)  # fmt: skip

copysign: Elementwise = Elementwise(
    "copysign", 2, np.copysign, floats("copysign({0}, {1})"),
    gradient=lambda inputs, output, cotangent: [
        cotangent * (copysign(1.0, inputs[0]) * copysign(1.0, inputs[1])), None,
    ],
    facts=Facts(keeps_finite=True),
    formula="The magnitude of x1 with the sign of x2",
)  # fmt: skip

nextafter = Elementwise(
    "nextafter",
    2,
    np.nextafter,
    None,
    lambda inputs, output, cotangent: [cotangent, None],
    flops=4.0,
    formula="The next number of the dtype from x1 towards x2",
)

OPS: tuple[Elementwise, ...] = (
    add,
    sub,
    mul,
    div,
    floor_div,
    mod,
    fmod,
    neg,
    positive,
    sign,
    absolute,
    sqr,
    reciprocal,
    copysign,
    nextafter,
)
