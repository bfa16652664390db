"""Scalar code of elementwise ops: templates of numba source and the names they may use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from esat.base.records import record

VECTOR_MATH = frozenset([
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "log1mexp", "sigmoid", "softplus",
    "sqrt", "cbrt", "pow", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh",
    "tanh", "arcsinh", "arccosh", "arctanh", "erf", "erfc", "erfcx", "gammaln",
    "digamma",
])  # fmt: skip
"""Names of vectorized functions of floats that templates may call."""

SCIPY_FUNCTIONS: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(("gamma", "erfinv", "erfcinv", "ndtri", "log_ndtr"), 1)
    | dict.fromkeys(("i0", "i0e", "i1", "i1e", "j0", "j1"), 1)
    | dict.fromkeys(("jv", "yv", "iv", "ive", "kve", "owens_t", "polygamma"), 2)
    | dict.fromkeys(("gammainc", "gammaincc", "gammaincinv", "gammainccinv", "beta", "betaln"), 2)
    | {"betainc": 3}
)
"""Names of functions of floats that are SciPy's, or called as these are, and how many operands they have."""

SCALAR_HELPERS = frozenset([
    "wrapping_add", "wrapping_sub", "wrapping_mul", "floor_divide", "remainder", "fmod", "integer_power",
    "shift_left", "shift_right", "sign", "absolute", "copysign", "floor", "ceil", "trunc", "rint", "isnan",
    "isinf", "isfinite", "signbit", "maximum", "minimum", "fmax", "fmin", "select", "fused_multiply_add",
    "multiply_add",
])  # fmt: skip
"""Names of scalar functions that templates may call, with NumPy's semantics for every dtype it has them for.

``select(condition, a, b)`` evaluates both ``a`` and ``b``; ``multiply_add(a, b, c)`` is rounded once where
the machine has an instruction for it, and twice elsewhere.
"""

CODE_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
)  # fmt: skip
"""Dtypes that templates are written for; an op on any other runs through its NumPy function."""
KERNEL_DTYPES = (*CODE_DTYPES, "complex64", "complex128")
"""Dtypes of arrays of kernels: numbers of the last two are computed as their parts."""

TEMPLATE_NAMES = VECTOR_MATH | SCIPY_FUNCTIONS.keys() | SCALAR_HELPERS | frozenset(CODE_DTYPES)
"""Every name a template may use. Names of dtypes convert literals: ``float32(1)``."""

_LITERAL = re.compile(r"const\(([^()]*)\)")


@record(frozen=True, slots=True)
class Code:
    """Templates by the kind of operand; None where there is none.

    A template is one expression, with ``{0}``, ``{1}``, ... for the operands, names of
    :data:`TEMPLATE_NAMES`, Python operators, and ``const(1.5)`` for a number of the operands' dtype. Its
    value is converted to the dtype of the result, which is where integers wrap around.

    Attributes
    ----------
    floating, signed, unsigned, boolean
        Templates for float32 and float64, int8 to int64, uint8 to uint64, and bool.
    """

    floating: str | None = None
    signed: str | None = None
    unsigned: str | None = None
    boolean: str | None = None

    def template(self, dtype: str) -> str | None:
        """The template for operands of ``dtype``."""
        if dtype not in CODE_DTYPES:
            return None
        if dtype == "bool":
            return self.boolean
        if dtype.startswith("float"):
            return self.floating
        return self.unsigned if dtype.startswith("uint") else self.signed


def floats(template: str) -> Code:
    """Code for real floats alone."""
    return Code(floating=template)


def numbers(template: str, boolean: str | None = None, floating: str | None = None) -> Code:
    """Code for integers and, unless given apart, floats."""
    return Code(floating or template, template, template, boolean)


def arithmetic(operator: str, name: str, second: str = "{1}", boolean: str | None = None) -> Code:
    """Code for integers and floats by a Python operator; signed integers wrap around by a helper's name.

    Python's operators on them are compiled as if they never overflowed: ``x + 1 > x`` would be true of all.
    """
    template = f"{{0}} {operator} {second}"
    return Code(template, f"{name}({{0}}, {second})", template, boolean)


def integers(template: str, boolean: str | None = None) -> Code:
    """Code for integers alone."""
    return Code(signed=template, unsigned=template, boolean=boolean)


def anything(template: str) -> Code:
    """Code for all dtypes that have code."""
    return Code(template, template, template, template)


def expression(template: str, dtype: str) -> str:
    """``template`` with its literals as numbers of ``dtype``."""
    return _LITERAL.sub(rf"{dtype}(\1)", template)
