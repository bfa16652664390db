"""Elementwise ops under NumPy's names.

The ops of the table are functions themselves: ``esat.exp`` is the op that nodes of ``esat.exp(x)`` have.
"""

from __future__ import annotations

from esat.ops.elementwise.arithmetic import (
    absolute,
    add,
    copysign,
    div,
    floor_div,
    fmod,
    mod,
    mul,
    neg,
    nextafter,
    positive,
    reciprocal,
    sign,
    sqr,
    sub,
)
from esat.ops.elementwise.bessel import (
    i0,
    i0e,
    i1,
    i1e,
    iv,
    ive,
    j0,
    j1,
    jv,
    kv,
    kve,
    yv,
)
from esat.ops.elementwise.comparison import (
    eq,
    ge,
    gt,
    isfinite,
    isinf,
    isnan,
    le,
    lt,
    ne,
    signbit,
)
from esat.ops.elementwise.complex import (
    conj,
    imag,
    real,
)
from esat.ops.elementwise.exponential import (
    exp,
    exp2,
    expdiff,
    expm1,
    log,
    log1mexp,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    sigmoid,
    softplus,
    xlogy,
)
from esat.ops.elementwise.hyperbolic import (
    arccosh,
    arcsinh,
    arctanh,
    cosh,
    log_cosh,
    sinh,
    tanh,
)
from esat.ops.elementwise.incomplete import (
    beta,
    betainc,
    betaincinv,
    betaln,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
)
from esat.ops.elementwise.logical import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    gcd,
    invert,
    lcm,
    left_shift,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    right_shift,
)
from esat.ops.elementwise.power import (
    cbrt,
    compoundm1,
    hypot,
    pow,
    powm1,
    sqrt,
)
from esat.ops.elementwise.rounding import (
    ceil,
    floor,
    rint,
    trunc,
)
from esat.ops.elementwise.selection import (
    copy,
    fill,
    fmax,
    fmin,
    maximum,
    minimum,
    switch,
)
from esat.ops.elementwise.special import (
    digamma,
    erf,
    erfc,
    erfcinv,
    erfcx,
    erfinv,
    gamma,
    gammaln,
    log_ndtr,
    loggamma,
    ndtr,
    ndtri,
    owens_t,
    polygamma,
    wofz,
)
from esat.ops.elementwise.trigonometric import (
    arccos,
    arcsin,
    arctan,
    arctan2,
    cos,
    cosm1,
    deg2rad,
    rad2deg,
    sin,
    tan,
)

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "and_", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "beta", "betainc", "betaincinv",
    "betaln", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "cbrt", "ceil", "compoundm1", "conj", "conjugate", "copy",
    "copysign", "cos", "cosh", "cosm1", "deg2rad", "degrees", "digamma", "div", "divide", "eq", "equal",
    "erf", "erfc", "erfcinv", "erfcx", "erfinv", "exp", "exp2", "expdiff", "expm1", "fill", "floor",
    "floor_div", "floor_divide", "fmax", "fmin", "fmod", "gamma", "gammainc", "gammaincc", "gammainccinv",
    "gammaincinv", "gammaln", "gcd", "ge", "greater", "greater_equal", "gt", "hypot", "i0", "i0e", "i1",
    "i1e", "imag", "int_div", "inv", "invert", "isfinite", "isinf", "isnan", "iv", "ive", "j0", "j1", "jv",
    "kv", "kve", "lcm", "le", "left_shift", "less", "less_equal", "lgamma", "log", "log1mexp", "log1p",
    "log2", "log10", "log_cosh", "log_ndtr", "logaddexp", "logaddexp2", "loggamma", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mod", "mul", "multiply", "ndtr",
    "ndtri", "ne", "neg", "negative", "neq", "nextafter", "not_equal", "or_", "owens_t", "polygamma",
    "positive", "pow", "power", "powm1", "psi", "rad2deg", "radians", "real", "reciprocal", "remainder",
    "right_shift", "rint", "sgn", "sigmoid", "sign", "signbit", "sin", "sinh", "softplus", "sqr", "sqrt",
    "square", "sub", "subtract", "switch", "tan", "tanh", "true_div", "true_divide", "trunc", "wofz", "xlogy",
    "xor", "yv",
]  # fmt: skip

# The names of NumPy, SciPy and Theano for the same ops.
subtract = sub
multiply = mul
divide = true_div = true_divide = div
floor_divide = int_div = floor_div
remainder = mod
power = pow
negative = neg
abs = absolute
square = sqr
inv = reciprocal
sgn = sign
equal = eq
neq = not_equal = ne
less = lt
less_equal = le
greater = gt
greater_equal = ge
and_ = bitwise_and
or_ = bitwise_or
xor = bitwise_xor
bitwise_invert = bitwise_not = invert
acos = arccos
asin = arcsin
atan = arctan
atan2 = arctan2
acosh = arccosh
asinh = arcsinh
atanh = arctanh
radians = deg2rad
degrees = rad2deg
conjugate = conj
lgamma = gammaln
psi = digamma
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
