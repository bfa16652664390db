"""Exponentials and logarithms, and the functions built from them that need care near their limits."""

from __future__ import annotations

import math

import numpy as np

from esat.graph.op import Array
from esat.graph.variables import Variable
from esat.ops.elementwise import complex_forms, complex_functions
from esat.ops.elementwise.comparison import eq
from esat.ops.elementwise.records.code import floats
from esat.ops.elementwise.records.facts import ANY, KEEPS_SIGN, NONNEGATIVE, POSITIVE, Facts
from esat.ops.elementwise.records.record import Elementwise, slope
from esat.ops.elementwise.records.scipy_functions import Special
from esat.ops.elementwise.selection import switch
from esat.ops.inference.promotion import FLOATS, special_complex

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)

exp = Elementwise(
    "exp", 1, np.exp, floats("exp({0})"), slope(lambda x, out: out), flops=10.0,
    facts=Facts(monotone="increasing", lowest=0, positive=True, overflows=True, vanishes=True),
    formula="e**x",
    complex_form=complex_forms.exp,
)  # fmt: skip

exp2 = Elementwise(
    "exp2", 1, np.exp2, floats("exp2({0})"), slope(lambda x, out: out * _LN2), flops=10.0,
    facts=Facts(monotone="increasing", lowest=0, positive=True, overflows=True, vanishes=True),
    formula="2**x",
)  # fmt: skip

expm1 = Elementwise(
    "expm1", 1, np.expm1, floats("expm1({0})"), slope(lambda x, out: exp(x)), flops=12.0,
    facts=Facts(monotone="increasing", lowest=-1, signs=KEEPS_SIGN),
    formula="exp(x) - 1, accurate near 0",
)  # fmt: skip

log = Elementwise(
    "log", 1, np.log, floats("log({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / inputs[0]],
    flops=14.0, facts=Facts(monotone="increasing"),
    formula="The natural logarithm of x",
    complex_form=complex_functions.log,
)  # fmt: skip

log2 = Elementwise(
    "log2", 1, np.log2, floats("log2({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (inputs[0] * _LN2)],
    flops=14.0, facts=Facts(monotone="increasing"),
    formula="The logarithm of x to base 2",
    complex_form=complex_functions.scaled_log(2.0),
)  # fmt: skip

log10 = Elementwise(
    "log10", 1, np.log10, floats("log10({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (inputs[0] * _LN10)],
    flops=14.0, facts=Facts(monotone="increasing"),
    formula="The logarithm of x to base 10",
    complex_form=complex_functions.scaled_log(10.0),
)  # fmt: skip

log1p = Elementwise(
    "log1p", 1, np.log1p, floats("log1p({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (1 + inputs[0])],
    flops=20.0, facts=Facts(monotone="increasing", signs=KEEPS_SIGN),
    formula="log(1 + x), accurate near 0",
)  # fmt: skip


def _share(operand: Variable, output: Variable) -> Variable:
    """How far below the logarithm of a sum one of its terms lies; zero where it is all, also if infinite."""
    difference: Variable = switch(eq(operand, output), 0, operand - output)
    return difference


_LOG_SUM_SIGNS = (((NONNEGATIVE, ANY), NONNEGATIVE), ((POSITIVE, ANY), POSITIVE))

logaddexp = Elementwise(
    "logaddexp", 2, np.logaddexp, floats("logaddexp({0}, {1})"),
    gradient=lambda inputs, output, cotangent: [cotangent * exp(_share(x, output)) for x in inputs],
    flops=30.0,
    facts=Facts(keeps_finite=True, commutative=True, associative=True, signs=_LOG_SUM_SIGNS),
    formula="log(exp(x1) + exp(x2)), without overflow",
)  # fmt: skip

# log2(2**x + 2**y); equal operands apart, since infinite ones have no difference.
logaddexp2 = Elementwise(
    "logaddexp2", 2, np.logaddexp2,
    floats(
        "select({0} == {1}, {0} + const(1), maximum({0}, {1}) "
        f"+ log1p(exp2(-absolute({{0}} - {{1}}))) * const({1 / _LN2!r}))"
    ),
    gradient=lambda inputs, output, cotangent: [cotangent * exp2(_share(x, output)) for x in inputs],
    flops=32.0,
    facts=Facts(keeps_finite=True, commutative=True, associative=True, signs=_LOG_SUM_SIGNS),
    formula="log2(2**x1 + 2**x2), without overflow",
)  # fmt: skip


def _sigmoid(x: Array) -> Array:
    value: Array = Special("expit")(x.astype(np.float32) if x.dtype == np.float16 else x)
    return value.astype(x.dtype, copy=False)


def _wide_sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    value: Array = np.where(x >= 0, 1, small) / (1 + small)
    return value


sigmoid = Elementwise(
    "sigmoid", 1, _sigmoid, floats("sigmoid({0})"), slope(lambda x, out: out * (1 - out)), FLOATS, flops=12.0,
    facts=Facts(
        keeps_finite=True, monotone="increasing", lowest=0, highest=1, positive=True, vanishes=True
    ),
    wide=_wide_sigmoid,
    formula="1 / (1 + exp(-x)), without overflow",
)  # fmt: skip


def _softplus(x: Array) -> Array:
    value: Array = np.logaddexp(x, x.dtype.type(0))
    return value


softplus = Elementwise(
    "softplus", 1, _softplus, floats("softplus({0})"), slope(lambda x, out: sigmoid(x)), FLOATS, flops=28.0,
    facts=Facts(keeps_finite=True, monotone="increasing", lowest=0, positive=True),
    formula="log(1 + exp(x)), without overflow",
)  # fmt: skip


def _log1mexp(x: Array) -> Array:
    """By the better of two forms on either side of -log(2).

    Source: M. Mächler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """
    value: Array = np.where(x > -_LN2, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
    return value


log1mexp = Elementwise(
    "log1mexp", 1, _log1mexp, floats("log1mexp({0})"),
    gradient=lambda inputs, output, cotangent: [-(cotangent / expm1(-inputs[0]))],
    dtypes=FLOATS, flops=30.0,
    facts=Facts(monotone="decreasing", highest=0),
    formula="log(1 - exp(x)) of a negative number, without cancellation; NaN of a positive one",
)  # fmt: skip


def _expdiff(x: Array, y: Array) -> Array:
    difference, power = x - y, np.exp(y)
    value: Array = np.where(np.abs(difference) < _LN2, power * np.expm1(difference), np.exp(x) - power)
    return value


# exp(x) - exp(y), by exp(y) expm1(x - y) where they are near each other: of near operands x - y is exact.
expdiff = Elementwise(
    "expdiff", 2, _expdiff,
    floats(
        f"select(absolute({{0}} - {{1}}) < const({_LN2!r}), exp({{1}}) * expm1({{0}} - {{1}}), "
        "exp({0}) - exp({1}))"
    ),
    gradient=lambda inputs, output, cotangent: [cotangent * exp(inputs[0]), -(cotangent * exp(inputs[1]))],
    dtypes=FLOATS, flops=32.0,
    formula="exp(x1) - exp(x2), without cancellation",
)  # fmt: skip


def _wide_xlogy(x: Array, y: Array) -> Array:
    value: Array = np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))
    return value


xlogy = Elementwise(
    "xlogy", 2, Special("xlogy"),
    floats("select(({0} == const(0)) & ({1} == {1}), const(0), {0} * log({1}))"),
    gradient=lambda inputs, output, cotangent: [
        cotangent * log(inputs[1]), cotangent * (inputs[0] / inputs[1]),
    ],
    dtypes=special_complex("xlogy"), flops=16.0, wide=_wide_xlogy,
    formula="x1 * log(x2), and zero where x1 is unless x2 is NaN",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (
    exp,
    exp2,
    expm1,
    log,
    log2,
    log10,
    log1p,
    logaddexp,
    logaddexp2,
    sigmoid,
    softplus,
    log1mexp,
    expdiff,
    xlogy,
)
