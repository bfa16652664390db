"""Rules of primitives that go element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.frontend.elements import elementwise as own
from esat.frontend.elements.searching import where
from esat.frontend.jax.steps import Equation, Rule
from esat.graph.op import Op
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.elementwise.incomplete import gammainc_by_order

SAME: dict[str, Op] = {
    "abs": own.abs, "acos": own.arccos, "acosh": own.arccosh, "add": own.add, "add_any": own.add,
    "and": own.bitwise_and, "asin": own.arcsin, "asinh": own.arcsinh, "atan": own.arctan,
    "atan2": own.arctan2, "atanh": own.arctanh, "cbrt": own.cbrt, "ceil": own.ceil, "conj": own.conj,
    "cos": own.cos, "cosh": own.cosh, "digamma": own.digamma, "eq": own.eq, "erf": own.erf,
    "erf_inv": own.erfinv, "erfc": own.erfc, "exp": own.exp, "exp2": own.exp2, "expm1": own.expm1,
    "floor": own.floor, "ge": own.ge, "gt": own.gt, "igamma": own.gammainc,
    "igamma_grad_a": gammainc_by_order, "igammac": own.gammaincc, "imag": own.imag,
    "is_finite": own.isfinite, "le": own.le, "lgamma": own.gammaln, "log": own.log, "log1p": own.log1p,
    "log2": own.log2, "logistic": own.sigmoid, "lt": own.lt, "max": own.maximum, "min": own.minimum,
    "mul": own.mul, "ne": own.ne, "neg": own.neg, "nextafter": own.nextafter, "not": own.invert,
    "or": own.bitwise_or, "polygamma": own.polygamma, "real": own.real,
    "regularized_incomplete_beta": own.betainc, "rem": own.fmod, "shift_left": own.left_shift,
    "shift_right_arithmetic": own.right_shift, "sign": own.sign, "sin": own.sin, "sinh": own.sinh,
    "sqrt": own.sqrt, "square": own.sqr, "sub": own.sub, "tan": own.tan, "tanh": own.tanh,
    "xor": own.bitwise_xor,
}  # fmt: skip
"""Primitives that are an op of esat's."""

_AS_OPERANDS = (
    "copy", "device_put", "name", "random_unwrap", "random_wrap", "sharding_constraint",
    "stop_gradient",
)  # fmt: skip


def _same(op: Op) -> Rule:
    return lambda step: op(*step.operands)


def _as_operands(step: Equation) -> list[Variable]:
    return list(step.operands)


def _div(step: Equation) -> Any:
    """Of integers, rounded towards zero."""
    left, right = step.operands
    kind = left.tensor_type.kind
    if kind in "fc":
        return own.div(left, right)
    floor = own.floor_div(left, right)
    if kind == "u":
        return floor
    inexact = own.ne(own.mul(floor, right), left)
    apart = own.ne(own.lt(left, 0), own.lt(right, 0))
    return own.add(floor, cast(own.bitwise_and(inexact, apart), left.tensor_type.dtype))


def _power(step: Equation) -> Any:
    base, exponent = step.operands
    return own.pow(base, cast(exponent, base.tensor_type.dtype))


def _integer_power(step: Equation) -> Any:
    return own.pow(step.first, int(step.params["y"]))


def _round(step: Equation) -> Any:
    x = step.first
    if "EVEN" in str(getattr(step.params["rounding_method"], "name", step.params["rounding_method"])):
        return own.rint(x)
    whole = own.trunc(x)
    return where(own.ge(own.abs(own.sub(x, whole)), 0.5), own.add(whole, own.sign(x)), whole)


def _select(step: Equation) -> Any:
    which, *cases = step.operands
    if which.tensor_type.dtype == "bool":
        return where(which, cases[1], cases[0]) if len(cases) == 2 else cases[0]
    chosen = cases[0]
    for place, case in enumerate(cases[1:], 1):
        chosen = where(own.eq(which, place), case, chosen)
    return chosen


def _clamp(step: Equation) -> Any:
    low, x, high = step.operands
    return own.minimum(own.maximum(x, low), high)


def _convert(step: Equation) -> Any:
    x, dtype = step.first, step.results[0].dtype
    if x.tensor_type.kind == "c" and np.dtype(dtype).kind != "c":
        x = own.real(x)
    return cast(x, dtype)


def _complex(step: Equation) -> Any:
    real, imag = (cast(one, step.results[0].dtype) for one in step.operands)
    return own.add(real, own.mul(imag, 1j))


def _logical_shift(step: Equation) -> Any:
    x, count = step.operands
    unsigned = x.tensor_type.dtype.removeprefix("u").replace("int", "uint")
    return own.right_shift(cast(x, unsigned), cast(count, unsigned))


def _reduced_precision(step: Equation) -> Any:
    x, bits = step.first, (step.params["exponent_bits"], step.params["mantissa_bits"])
    dtype = {(11, 52): "float64", (8, 23): "float32", (5, 10): "float16"}.get(bits)
    if dtype is None:
        raise DtypeError(describe("from_jax", [x.type], f"there are no floats of {bits} bits", step.where))
    return x if np.dtype(dtype).itemsize >= x.tensor_type.numpy_dtype.itemsize else cast(x, dtype)


def _total_order(compare: str) -> Rule:
    """Comparisons in which -0 comes before 0, and NaN after all others and equals itself."""

    def rule(step: Equation) -> Any:
        x, y = step.operands
        if x.tensor_type.kind != "f":
            return op_named(compare)(x, y)
        x_nan, y_nan = own.isnan(x), own.isnan(y)
        signs = own.signbit(x), own.signbit(y)
        if compare == "eq":
            same = own.bitwise_and(own.eq(x, y), own.eq(*signs))
            return own.bitwise_or(same, own.bitwise_and(x_nan, y_nan))
        zeros = own.bitwise_and(own.eq(x, y), own.ne(*signs))
        lesser = own.bitwise_or(own.lt(x, y), own.bitwise_and(zeros, signs[0]))
        lesser = own.bitwise_or(lesser, own.bitwise_and(y_nan, own.invert(x_nan)))
        if compare == "lt":
            return lesser
        same = own.bitwise_and(own.eq(x, y), own.eq(*signs))
        return own.bitwise_or(lesser, own.bitwise_or(same, own.bitwise_and(x_nan, y_nan)))

    return rule


def _one_minus_square(step: Equation) -> Any:
    """By factors, as the square of a number near 1 would leave no digits."""
    x = step.first
    return own.mul(own.add(1, x), own.sub(1, x))


def _polynomial(step: Equation) -> Any:
    """By Horner's rule; coefficients begin with the constant."""
    x, *coefficients = step.operands
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = own.add(own.mul(total, x), coefficient)
    return total


RULES: dict[str, Rule] = {
    **{name: _same(op) for name, op in SAME.items()},
    **dict.fromkeys(_AS_OPERANDS, _as_operands),
    "clamp": _clamp,
    "complex": _complex,
    "convert_element_type": _convert,
    "div": _div,
    "eq_to": _total_order("eq"),
    "integer_pow": _integer_power,
    "le_to": _total_order("le"),
    "lt_to": _total_order("lt"),
    "one_minus_square": _one_minus_square,
    "polynomial": _polynomial,
    "pow": _power,
    "reduce_precision": _reduced_precision,
    "round": _round,
    "rsqrt": lambda step: own.reciprocal(own.sqrt(step.first)),
    "select_n": _select,
    "shift_right_logical": _logical_shift,
}
