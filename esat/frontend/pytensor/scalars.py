"""Rules of scalar ops, by which Elemwise, CAReduce, Composite and numbers compute.

PyTensor says the dtype of each result. An op that computes in it casts its operands first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from esat.frontend.elements import elementwise as own
from esat.frontend.elements.searching import where
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule
from esat.frontend.pytensor.types import constant_of
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast

_OF_FLOATS: dict[str, Any] = {
    "ArcCos": own.arccos, "ArcCosh": own.arccosh, "ArcSin": own.arcsin, "ArcSinh": own.arcsinh,
    "ArcTan": own.arctan, "ArcTan2": own.arctan2, "ArcTanh": own.arctanh, "BetaInc": own.betainc,
    "BetaIncInv": own.betaincinv, "Cos": own.cos, "Cosh": own.cosh, "Erf": own.erf, "Erfc": own.erfc,
    "Erfcinv": own.erfcinv, "Erfcx": own.erfcx, "Erfinv": own.erfinv, "Exp": own.exp, "Exp2": own.exp2,
    "Expm1": own.expm1, "Gamma": own.gamma, "GammaInc": own.gammainc, "GammaIncC": own.gammaincc,
    "GammaIncCInv": own.gammainccinv, "GammaIncInv": own.gammaincinv, "GammaLn": own.gammaln,
    "I0": own.i0, "I0e": own.i0e, "I1": own.i1, "I1e": own.i1e, "Iv": own.iv, "Ive": own.ive, "J0": own.j0,
    "J1": own.j1, "Jv": own.jv, "Kv": own.kv, "Kve": own.kve, "Log": own.log, "Log10": own.log10,
    "Log1mexp": own.log1mexp, "Log1p": own.log1p, "Log2": own.log2, "Owens_t": own.owens_t,
    "Psi": own.digamma, "Reciprocal": own.reciprocal, "Sigmoid": own.sigmoid, "Sin": own.sin,
    "Sinh": own.sinh, "Softplus": own.softplus, "Sqrt": own.sqrt, "Tan": own.tan, "Tanh": own.tanh,
    "TrueDiv": own.div,
}  # fmt: skip
"""Of real and complex numbers; integers become such first."""

_IN_RESULTS: dict[str, Any] = {
    "Identity": lambda x: x, "IntDiv": own.floor_div, "Mod": own.mod, "Neg": own.neg, "Pow": own.pow,
    "Sign": own.sign, "Sqr": own.sqr, "Sub": own.sub,
}  # fmt: skip
"""Computed in the dtype of the result, whatever it is."""

_SEVERAL: dict[str, Any] = {
    "Add": own.add, "Maximum": own.maximum, "Minimum": own.minimum, "Mul": own.mul,
}  # fmt: skip
"""Of any number of operands, in the dtype of the result."""

_OF_OPERANDS: dict[str, Any] = {
    "AND": own.bitwise_and, "Abs": own.abs, "Ceil": own.ceil, "Conj": own.conj, "EQ": own.eq,
    "Floor": own.floor, "GE": own.ge, "GT": own.gt, "Imag": own.imag, "Invert": own.invert,
    "IsInf": own.isinf, "IsNan": own.isnan, "LE": own.le, "LT": own.lt, "NEQ": own.ne,
    "OR": own.bitwise_or, "PolyGamma": own.polygamma, "Real": own.real, "RoundHalfToEven": own.rint,
    "Second": own.fill, "Trunc": own.trunc, "XOR": own.bitwise_xor,
}  # fmt: skip
"""Computed in the dtypes of the operands."""


def _chosen(condition: Variable, then: Variable, otherwise: Variable) -> Variable:
    result: Variable = where(cast(condition, "bool"), then, otherwise)
    return result


def _clip(x: Variable, low: Variable, high: Variable) -> Variable:
    """PyTensor compares with the lower bound first: it holds where the bounds contradict each other."""
    return _where(own.lt(x, low), low, _where(own.gt(x, high), high, x))


def _where(condition: Any, then: Any, otherwise: Any) -> Variable:
    result: Variable = where(condition, then, otherwise)
    return result


def _rounded_away(x: Variable) -> Variable:
    whole = own.trunc(x)
    return _where(own.ge(own.abs(own.sub(x, whole)), 0.5), own.add(whole, own.sign(x)), whole)


def _complex(real: Variable, imag: Variable) -> Variable:
    result: Variable = own.add(real, own.mul(imag, 1j))
    return result


def _without_zeros(*operands: Variable) -> Variable:
    """A product in which zeros count as one, unless all are zero."""

    def joined(x: Variable, y: Variable) -> Variable:
        return _where(own.eq(x, 0), y, _where(own.eq(y, 0), x, own.mul(x, y)))

    return reduce(joined, operands)


_COMPOSED: dict[str, Callable[..., Variable]] = {
    "Clip": _clip,
    "Complex": _complex,
    "MulWithoutZeros": _without_zeros,
    "RoundHalfAwayFromZero": _rounded_away,
    "Switch": _chosen,
    "TriGamma": lambda x: op_named("polygamma")(1, x),
}


def scalar_results(step: PyTensorStep, op: Any, operands: Sequence[Variable]) -> list[Variable]:
    """The results of a scalar op, element by element.

    Parameters
    ----------
    step
        The node that applies it.
    op
        PyTensor's scalar op.
    operands
        Arrays that broadcast.

    Raises
    ------
    NoRuleError
        For ops of which there is no form.
    """
    name = type(op).__name__
    if name == "Composite":
        return _composed(step, op.fgraph, operands)
    dtype = step.dtype
    if name == "Cast":
        return [_cast(operands[0], str(op.o_type.dtype))]
    if name in _OF_FLOATS:
        given = [cast(one, dtype) for one in operands] if np.dtype(dtype).kind in "fc" else operands
        return [_OF_FLOATS[name](*given)]
    if name in _IN_RESULTS:
        return [_IN_RESULTS[name](*(cast(one, dtype) for one in operands))]
    if name in _SEVERAL:
        return [reduce(_SEVERAL[name], [cast(one, dtype) for one in operands])]
    function = _OF_OPERANDS.get(name) or _COMPOSED.get(name)
    if function is None:
        raise NoRuleError("esat has no such function")
    return [function(*operands)]


def _composed(step: PyTensorStep, fgraph: Any, operands: Sequence[Variable]) -> list[Variable]:
    """The outputs of a graph of scalar ops, each of which is applied element by element."""
    known: dict[Any, Any] = dict(zip(fgraph.inputs, operands, strict=True))

    def read(variable: Any) -> Any:
        return known[variable] if variable in known else constant_of(variable)

    for node in fgraph.toposort():
        inner = replace(step, op=node.op, node=node)
        results = scalar_results(inner, node.op, [read(one) for one in node.inputs])
        for variable, result in zip(node.outputs, results, strict=True):
            known[variable] = cast(result, str(variable.type.dtype))
    return [read(variable) for variable in fgraph.outputs]


def _cast(x: Variable, dtype: str) -> Variable:
    if x.tensor_type.kind == "c" and np.dtype(dtype).kind != "c":
        raise NoRuleError("a cast of complex numbers to real ones")
    return cast(x, dtype)


def _elementwise(step: PyTensorStep) -> list[Variable]:
    """Results of all operands' common shape, also those that do not depend on all of them."""
    results = scalar_results(step, step.op.scalar_op, step.operands)
    return [_stretched(step, *pair) for pair in zip(results, step.node.outputs, strict=True)]


def _stretched(step: PyTensorStep, result: Variable, wanted: Any) -> Variable:
    type = result.tensor_type
    flags = wanted.type.broadcastable
    if type.ndim == len(flags) and all(
        own == other for own, other in zip(type.broadcastable, flags, strict=True)
    ):
        return result
    for operand in step.operands:
        result = own.fill(operand, result)
    return result


def _number(step: PyTensorStep) -> list[Variable]:
    return scalar_results(step, step.op, step.operands)


def _xlogy(step: PyTensorStep) -> Variable:
    """A symbolic op, whose graph is one op of esat's."""
    x, y = (cast(one, step.dtype) for one in step.operands)
    return own.xlogy(x, y)


RULES: dict[str, Rule] = {
    "Elemwise": _elementwise,
    "ScalarOp": _number,
    "XLogY": _xlogy,
}
