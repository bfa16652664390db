"""Hyperbolic functions and their inverses."""

from __future__ import annotations

import numpy as np

from esat.ops.elementwise.arithmetic import sqr
from esat.ops.elementwise.code import floats
from esat.ops.elementwise.facts import KEEPS_SIGN, Facts
from esat.ops.elementwise.power import sqrt
from esat.ops.elementwise.record import Elementwise, slope

_ODD_INCREASING = Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN)

sinh = Elementwise(
    "sinh", 1, np.sinh, floats("sinh({0})"), slope(lambda x, out: cosh(x)), flops=18.0, facts=_ODD_INCREASING
)

cosh: Elementwise = Elementwise(
    "cosh", 1, np.cosh, floats("cosh({0})"), slope(lambda x, out: sinh(x)), flops=18.0,
    facts=Facts(parity="even", lowest=1, positive=True),
)  # fmt: skip

tanh = Elementwise(
    "tanh", 1, np.tanh, floats("tanh({0})"), slope(lambda x, out: 1 - sqr(out)), flops=14.0,
    facts=Facts(parity="odd", monotone="increasing", lowest=-1, highest=1, signs=KEEPS_SIGN),
)  # fmt: skip

arcsinh = Elementwise(
    "arcsinh", 1, np.arcsinh, floats("arcsinh({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / sqrt(1 + sqr(inputs[0]))],
    flops=30.0, facts=_ODD_INCREASING,
)  # fmt: skip

# The two roots apart keep the derivative on the right branch for complex numbers.
arccosh = Elementwise(
    "arccosh", 1, np.arccosh, floats("arccosh({0})"),
    gradient=lambda inputs, output, cotangent: [
        cotangent / (sqrt(inputs[0] - 1) * sqrt(inputs[0] + 1))
    ],
    flops=30.0, facts=Facts(monotone="increasing", lowest=0),
)  # fmt: skip

arctanh = Elementwise(
    "arctanh", 1, np.arctanh, floats("arctanh({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (1 - sqr(inputs[0]))],
    flops=30.0, facts=_ODD_INCREASING,
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (sinh, cosh, tanh, arcsinh, arccosh, arctanh)
