"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from esat.graph.op import Array
from esat.ops.elementwise import complex_functions
from esat.ops.elementwise.arithmetic import sqr
from esat.ops.elementwise.power import sqrt
from esat.ops.elementwise.records.code import floats
from esat.ops.elementwise.records.facts import KEEPS_SIGN, Facts
from esat.ops.elementwise.records.record import Elementwise, slope
from esat.ops.inference.promotion import FLOATS

_LN2 = math.log(2.0)
_ODD_INCREASING = Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN)

sinh = Elementwise(
    "sinh",
    1,
    np.sinh,
    floats("sinh({0})"),
    slope(lambda x, out: cosh(x)),
    flops=18.0,
    facts=_ODD_INCREASING,
    formula="(exp(x) - exp(-x)) / 2",
    complex_form=complex_functions.sinh,
)

cosh: Elementwise = Elementwise(
    "cosh", 1, np.cosh, floats("cosh({0})"), slope(lambda x, out: sinh(x)), flops=18.0,
    facts=Facts(parity="even", lowest=1, positive=True, overflows=True),
    formula="(exp(x) + exp(-x)) / 2",
    complex_form=complex_functions.cosh,
)  # fmt: skip

tanh = Elementwise(
    "tanh", 1, np.tanh, floats("tanh({0})"), slope(lambda x, out: 1 - sqr(out)), flops=14.0,
    facts=replace(_ODD_INCREASING, keeps_finite=True, lowest=-1, highest=1),
    formula="sinh(x) / cosh(x)",
    complex_form=complex_functions.tanh,
)  # fmt: skip


def _log_cosh(x: Array) -> Array:
    """By a form that does not cancel near zero, and one that does not overflow far from it."""
    size = np.abs(x.astype(np.float32) if x.dtype == np.float16 else x)
    near = np.log1p(2 * np.sinh(0.5 * size) ** 2)
    value: Array = np.where(size < 1, near, size + np.log1p(np.exp(-2 * size)) - _LN2)
    return value.astype(x.dtype, copy=False)


def _wide_log_cosh(x: Array) -> Array:
    size = np.abs(x)
    far = size + np.log1p(np.exp(-2 * size)) - np.log(np.ones_like(x) + 1)
    value: Array = np.where(size < 1, np.log1p(2 * np.sinh(size / 2) ** 2), far)
    return value


log_cosh = Elementwise(
    "log_cosh", 1, _log_cosh,
    floats(
        "select(absolute({0}) < const(1), "
        "log1p(const(2) * (sinh({0} * const(0.5)) * sinh({0} * const(0.5)))), "
        f"absolute({{0}}) + log1p(exp(const(-2) * absolute({{0}}))) - const({_LN2!r}))"
    ),
    slope(lambda x, out: tanh(x)), FLOATS, flops=50.0,
    facts=Facts(keeps_finite=True, parity="even", lowest=0), wide=_wide_log_cosh,
    formula="log(cosh(x)), without overflow",
)  # fmt: skip

arcsinh = Elementwise(
    "arcsinh", 1, np.arcsinh, floats("arcsinh({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / sqrt(1 + sqr(inputs[0]))],
    flops=30.0, facts=replace(_ODD_INCREASING, keeps_finite=True),
    formula="log(x + sqrt(x**2 + 1)), without overflow",
)  # fmt: skip

# The two roots apart keep the derivative on the right branch for complex numbers.
arccosh = Elementwise(
    "arccosh", 1, np.arccosh, floats("arccosh({0})"),
    gradient=lambda inputs, output, cotangent: [
        cotangent / (sqrt(inputs[0] - 1) * sqrt(inputs[0] + 1))
    ],
    flops=30.0, facts=Facts(monotone="increasing", lowest=0),
    formula="log(x + sqrt(x**2 - 1)) of x >= 1, without overflow",
)  # fmt: skip

arctanh = Elementwise(
    "arctanh", 1, np.arctanh, floats("arctanh({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (1 - sqr(inputs[0]))],
    flops=30.0, facts=_ODD_INCREASING,
    formula="log((1 + x) / (1 - x)) / 2 of -1 < x < 1, accurate near 0",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (sinh, cosh, tanh, log_cosh, arcsinh, arccosh, arctanh)
