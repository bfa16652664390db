"""Trigonometric functions and their inverses. Angles are in radians."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from esat.graph.op import Array
from esat.graph.variables import Variable
from esat.ops.elementwise import complex_functions
from esat.ops.elementwise.arithmetic import sqr
from esat.ops.elementwise.power import sqrt
from esat.ops.elementwise.records.code import floats
from esat.ops.elementwise.records.facts import ANY, KEEPS_SIGN, NONNEGATIVE, POSITIVE, Facts
from esat.ops.elementwise.records.record import Elementwise, slope
from esat.ops.elementwise.records.scipy_functions import Special
from esat.ops.inference.promotion import special

_HALF_PI = math.pi / 2
_DEGREE = math.pi / 180

sin = Elementwise(
    "sin", 1, np.sin, floats("sin({0})"), slope(lambda x, out: cos(x)), flops=12.0,
    facts=Facts(keeps_finite=True, parity="odd", lowest=-1, highest=1),
    formula="sin(x), of radians",
    complex_form=complex_functions.turned(complex_functions.sinh),
)  # fmt: skip

cos: Elementwise = Elementwise(
    "cos", 1, np.cos, floats("cos({0})"), slope(lambda x, out: -sin(x)), flops=12.0,
    facts=Facts(keeps_finite=True, parity="even", lowest=-1, highest=1),
    formula="cos(x), of radians",
    complex_form=complex_functions.cos,
)  # fmt: skip


def _wide_cosm1(x: Array) -> Array:
    half = np.sin(x * 0.5)
    value: Array = -2 * half * half
    return value


# cos(x) - 1 = -2 sin(x/2)**2, which cancels nowhere: near the multiples of 2 pi SciPy's function does.
cosm1 = Elementwise(
    "cosm1", 1, Special("cosm1"),
    floats("const(-2) * (sin({0} * const(0.5)) * sin({0} * const(0.5)))"),
    slope(lambda x, out: -sin(x)), special("cosm1"), flops=15.0,
    facts=Facts(keeps_finite=True, parity="even", lowest=-2, highest=0),
    wide=_wide_cosm1,
    formula="cos(x) - 1, accurate near 0",
)  # fmt: skip

tan = Elementwise(
    "tan", 1, np.tan, floats("tan({0})"), slope(lambda x, out: 1 + sqr(out)), flops=18.0,
    facts=Facts(parity="odd"),
    formula="tan(x), of radians",
    complex_form=complex_functions.turned(complex_functions.tanh),
)  # fmt: skip

arcsin = Elementwise(
    "arcsin", 1, np.arcsin, floats("arcsin({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / sqrt(1 - sqr(inputs[0]))],
    flops=18.0,
    facts=Facts(parity="odd", monotone="increasing", lowest=-_HALF_PI, highest=_HALF_PI, signs=KEEPS_SIGN),
    formula="The angle between -pi/2 and pi/2 whose sine is x",
)  # fmt: skip

arccos = Elementwise(
    "arccos", 1, np.arccos, floats("arccos({0})"),
    gradient=lambda inputs, output, cotangent: [-(cotangent / sqrt(1 - sqr(inputs[0])))],
    flops=18.0,
    facts=Facts(monotone="decreasing", lowest=0, highest=math.pi),
    formula="The angle between 0 and pi whose cosine is x",
)  # fmt: skip

arctan = Elementwise(
    "arctan", 1, np.arctan, floats("arctan({0})"),
    gradient=lambda inputs, output, cotangent: [cotangent / (1 + sqr(inputs[0]))],
    flops=16.0,
    facts=Facts(
        keeps_finite=True, parity="odd", monotone="increasing", lowest=-_HALF_PI, highest=_HALF_PI,
        signs=KEEPS_SIGN,
    ),
    formula="The angle between -pi/2 and pi/2 whose tangent is x",
)  # fmt: skip


def _arctan2_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    ordinate, abscissa = inputs
    part = cotangent / (sqr(ordinate) + sqr(abscissa))
    return [part * abscissa, -(part * ordinate)]


arctan2 = Elementwise(
    "arctan2", 2, np.arctan2, floats("arctan2({0}, {1})"), _arctan2_gradient, flops=24.0,
    facts=Facts(
        keeps_finite=True, lowest=-math.pi, highest=math.pi,
        signs=(((POSITIVE, ANY), POSITIVE), ((NONNEGATIVE, POSITIVE), NONNEGATIVE)),
    ),
    formula="The angle of the point (x2, x1), between -pi and pi",
)  # fmt: skip

deg2rad = Elementwise(
    "deg2rad", 1, np.deg2rad, floats(f"{{0}} * const({_DEGREE!r})"),
    gradient=lambda inputs, output, cotangent: [cotangent * _DEGREE],
    facts=Facts(keeps_finite=True, parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="x * pi / 180",
)  # fmt: skip

rad2deg = Elementwise(
    "rad2deg", 1, np.rad2deg, floats(f"{{0}} * const({1 / _DEGREE!r})"),
    gradient=lambda inputs, output, cotangent: [cotangent * (1 / _DEGREE)],
    facts=Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="x * 180 / pi",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (sin, cos, cosm1, tan, arcsin, arccos, arctan, arctan2, deg2rad, rad2deg)
