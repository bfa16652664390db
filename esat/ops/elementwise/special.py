"""Special functions, defined by SciPy's of the same name and computed in its dtypes.

Those are float32 and float64, and complex where SciPy has it. Other dtypes are cast as the installed SciPy
casts them: small integers and float16 to float32, or (most functions of 1.17) to float64. Derivatives: NIST
Digital Library of Mathematical Functions, chapters 5 (gamma) and 7 (error functions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from esat.graph.constants import constant
from esat.graph.variables import Variable
from esat.ops.elementwise.arithmetic import sqr
from esat.ops.elementwise.exponential import exp
from esat.ops.elementwise.records.code import floats
from esat.ops.elementwise.records.facts import KEEPS_SIGN, POSITIVE, Facts
from esat.ops.elementwise.records.record import Elementwise, no_gradient, slope
from esat.ops.elementwise.records.scipy_functions import Polygamma, Special
from esat.ops.inference.promotion import SciPyLoops, special, special_complex

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_PI_OVER_TWO = math.sqrt(math.pi) / 2
_ROOT_TWO_PI = math.sqrt(2 * math.pi)
_ONE_OVER_ROOT_TWO_PI = 1 / math.sqrt(2 * math.pi)
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)

# ---- error functions and the normal distribution

erf = Elementwise(
    "erf", 1, Special("erf"), floats("erf({0})"), slope(lambda x, out: _TWO_OVER_ROOT_PI * exp(-sqr(x))),
    special_complex("erf"), flops=25.0,
    facts=Facts(
        keeps_finite=True, parity="odd", monotone="increasing", lowest=-1, highest=1, signs=KEEPS_SIGN
    ),
    formula="The error function: 2 / sqrt(pi) times the integral of exp(-t**2) from 0 to x",
)  # fmt: skip

erfc = Elementwise(
    "erfc", 1, Special("erfc"), floats("erfc({0})"), slope(lambda x, out: -_TWO_OVER_ROOT_PI * exp(-sqr(x))),
    special_complex("erfc"), flops=35.0,
    facts=Facts(keeps_finite=True, monotone="decreasing", lowest=0, highest=2, positive=True, vanishes=True),
    formula="1 - erf(x), without cancellation",
)  # fmt: skip

erfcx = Elementwise(
    "erfcx", 1, Special("erfcx"), floats("erfcx({0})"), slope(lambda x, out: 2 * x * out - _TWO_OVER_ROOT_PI),
    special_complex("erfcx"), flops=40.0,
    facts=Facts(monotone="decreasing", lowest=0, positive=True),
    formula="exp(x**2) * erfc(x), without overflow",
)  # fmt: skip

erfinv = Elementwise(
    "erfinv", 1, Special("erfinv"), floats("erfinv({0})"),
    slope(lambda x, out: _ROOT_PI_OVER_TWO * exp(sqr(out))),
    special("erfinv"), flops=60.0,
    facts=Facts(parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="The inverse of erf",
)  # fmt: skip

erfcinv = Elementwise(
    "erfcinv", 1, Special("erfcinv"), floats("erfcinv({0})"),
    slope(lambda x, out: -_ROOT_PI_OVER_TWO * exp(sqr(out))),
    special("erfcinv"), flops=60.0,
    facts=Facts(monotone="decreasing"),
    formula="The inverse of erfc",
)  # fmt: skip

ndtr = Elementwise(
    "ndtr", 1, Special("ndtr"), floats(f"const(0.5) * erfc({{0}} * const({-math.sqrt(0.5)!r}))"),
    slope(lambda x, out: _ONE_OVER_ROOT_TWO_PI * exp(-0.5 * sqr(x))), special_complex("ndtr"), flops=38.0,
    facts=Facts(keeps_finite=True, monotone="increasing", lowest=0, highest=1, positive=True, vanishes=True),
    formula="The cumulative distribution function of the standard normal distribution",
)  # fmt: skip

ndtri = Elementwise(
    "ndtri", 1, Special("ndtri"), floats("ndtri({0})"),
    slope(lambda x, out: _ROOT_TWO_PI * exp(0.5 * sqr(out))),
    special("ndtri"), flops=60.0,
    facts=Facts(monotone="increasing"),
    formula="The inverse of ndtr: quantiles of the standard normal distribution",
)  # fmt: skip

# The derivative exp(-x**2 / 2) / (sqrt(2 pi) ndtr(x)) in a form in which nothing underflows.
log_ndtr = Elementwise(
    "log_ndtr", 1, Special("log_ndtr"), floats("log_ndtr({0})"),
    slope(lambda x, out: _ROOT_TWO_OVER_PI / erfcx(-math.sqrt(0.5) * x)),
    special_complex("log_ndtr"), flops=60.0,
    facts=Facts(monotone="increasing", highest=0),
    formula="log(ndtr(x)), without underflow",
)  # fmt: skip

# ---- the gamma function and its relatives

gamma = Elementwise(
    "gamma", 1, Special("gamma"), floats("gamma({0})"), slope(lambda x, out: out * digamma(x)),
    special_complex("gamma"), flops=80.0,
    facts=Facts(signs=(((POSITIVE,), POSITIVE),)),
    formula="The gamma function: the integral of t**(x - 1) * exp(-t) from 0 to infinity",
)  # fmt: skip

gammaln = Elementwise(
    "gammaln",
    1,
    Special("gammaln"),
    floats("gammaln({0})"),
    slope(lambda x, out: digamma(x)),
    special("gammaln"),
    flops=80.0,
    formula="log(abs(gamma(x))), without overflow",
)


def _digamma_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    if inputs[0].tensor_type.kind == "c":
        raise no_gradient("digamma", inputs, "its derivative is known for real numbers only", output.owner)
    # An order of the operand's dtype: by a Python number, polygamma of float32 is float64.
    order = constant(1, inputs[0].tensor_type.dtype)
    return [cotangent * polygamma(order, inputs[0])]


digamma: Elementwise = Elementwise(
    "digamma",
    1,
    Special("psi"),
    floats("digamma({0})"),
    _digamma_gradient,
    special_complex("psi"),
    flops=80.0,
    formula="The derivative of gammaln",
)


def _polygamma_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    order, x = inputs
    return [None, cotangent * polygamma(order + 1, x)]


# The derivative of digamma of the order of the first operand, a non-negative whole number. SciPy composes
# it of functions that compute in float32 only if both operands have that dtype.
polygamma: Elementwise = Elementwise(
    "polygamma", 2, Polygamma(), floats("polygamma({0}, {1})"), _polygamma_gradient,
    SciPyLoops("", ("float64", "float32")), flops=1200.0, parameters=1,  # 15 times digamma, on a Xeon
    formula="The derivative of digamma of order x1, at x2",
)  # fmt: skip

# The logarithm of gamma that is continuous in the complex plane but for the negative real axis. Of a real
# number it is NaN where gamma is negative.
loggamma = Elementwise(
    "loggamma", 1, Special("loggamma"), None, slope(lambda x, out: digamma(x)), special_complex("loggamma"),
    flops=150.0, formula="The principal branch of log(gamma(x))",
)  # fmt: skip

wofz = Elementwise(
    "wofz", 1, Special("wofz"), None, slope(lambda z, out: _TWO_OVER_ROOT_PI * 1j - 2 * z * out),
    SciPyLoops("wofz", ("complex128", "complex64")), flops=250.0,
    formula="Faddeeva's function exp(-x**2) * erfc(-1j * x), a complex number",
)  # fmt: skip


def _owens_t_gradient(
    inputs: Sequence[Variable], output: Variable, cotangent: Variable
) -> Sequence[Variable | None]:
    h, a = inputs
    by_h = -0.5 * _ONE_OVER_ROOT_TWO_PI * exp(-0.5 * sqr(h)) * erf(math.sqrt(0.5) * a * h)
    by_a = exp(-0.5 * sqr(h) * (1 + sqr(a))) / (2 * math.pi * (1 + sqr(a)))
    return [cotangent * by_h, cotangent * by_a]


owens_t = Elementwise(
    "owens_t", 2, Special("owens_t"), floats("owens_t({0}, {1})"), _owens_t_gradient, special("owens_t"),
    flops=200.0,
    formula="The probability of X > x1 and 0 < Y < x2 * X for standard normal X and Y",
)  # fmt: skip


OPS: tuple[Elementwise, ...] = (
    erf,
    erfc,
    erfcx,
    erfinv,
    erfcinv,
    ndtr,
    ndtri,
    log_ndtr,
    gamma,
    gammaln,
    digamma,
    polygamma,
    loggamma,
    wofz,
    owens_t,
)
