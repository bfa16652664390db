"""The table of vector functions: name, arity and formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from esat.base.records import record
from esat.codegen.vector_math import (
    exponential,
    hyperbolic,
    logarithm,
    power,
    special,
    trigonometric,
)
from esat.codegen.vector_math.builder import Float


@record(frozen=True)
class VectorFunction:
    """One function of one or two numbers.

    Attributes
    ----------
    formula
        Emits the function for :class:`Float` operands.
    guarded
        Whether rare arguments take a branch: such a formula is emitted as a function with vector
        variants, which the loop vectoriser calls, instead of in place.
    """

    name: str
    arity: int
    formula: Callable[..., Float]
    guarded: bool = False


def _table(*functions: VectorFunction) -> Mapping[str, VectorFunction]:
    return MappingProxyType({function.name: function for function in functions})


FUNCTIONS: Mapping[str, VectorFunction] = _table(
    VectorFunction("exp", 1, exponential.exp),
    VectorFunction("exp2", 1, exponential.exp2),
    VectorFunction("expm1", 1, exponential.expm1),
    VectorFunction("sigmoid", 1, exponential.sigmoid),
    VectorFunction("log", 1, logarithm.log),
    VectorFunction("log1p", 1, logarithm.log1p),
    VectorFunction("log2", 1, logarithm.log2),
    VectorFunction("log10", 1, logarithm.log10),
    VectorFunction("softplus", 1, logarithm.softplus),
    VectorFunction("log1mexp", 1, logarithm.log1mexp),
    VectorFunction("logaddexp", 2, logarithm.logaddexp),
    VectorFunction("tanh", 1, hyperbolic.tanh),
    VectorFunction("sinh", 1, hyperbolic.sinh),
    VectorFunction("cosh", 1, hyperbolic.cosh),
    VectorFunction("asinh", 1, hyperbolic.asinh),
    VectorFunction("acosh", 1, hyperbolic.acosh),
    VectorFunction("atanh", 1, hyperbolic.atanh),
    VectorFunction("sin", 1, trigonometric.sin, guarded=True),
    VectorFunction("cos", 1, trigonometric.cos, guarded=True),
    VectorFunction("tan", 1, trigonometric.tan, guarded=True),
    VectorFunction("asin", 1, trigonometric.asin),
    VectorFunction("acos", 1, trigonometric.acos),
    VectorFunction("atan", 1, trigonometric.atan),
    VectorFunction("atan2", 2, trigonometric.atan2),
    VectorFunction("sqrt", 1, power.sqrt),
    VectorFunction("reciprocal_sqrt", 1, power.reciprocal_sqrt),
    VectorFunction("cbrt", 1, power.cbrt),
    VectorFunction("pow", 2, power.power),
    VectorFunction("erf", 1, special.erf),
    VectorFunction("erfc", 1, special.erfc),
    VectorFunction("erfcx", 1, special.erfcx),
    VectorFunction("gammaln", 1, special.gammaln),
    VectorFunction("digamma", 1, special.digamma),
)
