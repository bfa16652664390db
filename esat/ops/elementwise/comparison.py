"""Comparison and tests of floats. Results are bool; derivatives are zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.tracing import WeakNumber
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.elementwise import complex_forms
from esat.ops.elementwise.records.code import Code, floats
from esat.ops.elementwise.records.facts import Facts
from esat.ops.elementwise.records.record import ZERO, Elementwise
from esat.ops.inference.promotion import given_dtypes, is_weak

_TRUTH = Facts(lowest=0, highest=1, integral=True)
_SYMMETRIC = Facts(commutative=True, lowest=0, highest=1, integral=True)


class Comparison(Elementwise):
    """A comparison of two numbers by value, exact for integers of any dtypes and size, as in NumPy 2.

    int64 against uint64 has no common integer dtype, and a Python integer may fit none. There the
    operands are first mapped to one dtype by steps that keep the order of every pair that can occur.
    """

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        left, right = (_with_its_dtype(one, other) for one, other in (inputs, inputs[::-1]))
        if is_weak(right) and not is_weak(left):
            left, right = _within_range(left, right)
        elif is_weak(left) and not is_weak(right):
            right, left = _within_range(right, left)
        if not is_weak(left) and not is_weak(right):
            left, right = _signed_and_unsigned(as_variable(left), as_variable(right))
        return super().promote((left, right))


def _with_its_dtype(number: Any, other: Any) -> Any:
    """A traced integer as int64 where it meets integers, whose dtype its value may not fit."""
    if not isinstance(number, WeakNumber) or number.kind is not int or is_weak(other):
        return number
    (dtype,) = given_dtypes([other])
    return number.variable if isinstance(dtype, np.dtype) and dtype.kind in "biu" else number


def _within_range(operand: Any, number: Any) -> tuple[Any, Any]:
    """An operand and a Python number, replaced by a pair of the same order when the number does not fit."""
    (dtype,) = given_dtypes([operand])
    if type(number) is not int or not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        return operand, number
    limits = np.iinfo(dtype)
    variable = as_variable(operand)
    if number > limits.max:
        return op_named("minimum")(variable, 0), 1
    if number < limits.min:
        return op_named("maximum")(variable, 1), 0
    return operand, number


def _signed_and_unsigned(left: Variable, right: Variable) -> tuple[Variable, Variable]:
    """int64 and uint64 operands as uint64 ones of the same order.

    With everything below zero as -1, everything beyond int64 as 2**63, and 1 added, both fit uint64.
    """
    dtypes = left.tensor_type.dtype, right.tensor_type.dtype
    if "uint64" not in dtypes or not any(np.dtype(dtype).kind == "i" for dtype in dtypes):
        return left, right
    first, second = (
        cast(op_named("maximum")(operand, -1), "uint64") + 1
        if operand.tensor_type.kind == "i"
        else op_named("minimum")(operand, 2**63) + 1
        for operand in (left, right)
    )
    return first, second


eq = Comparison(
    "eq", 2, np.equal, "{0} == {1}", ZERO, typing="bool", facts=_SYMMETRIC, formula="x1 == x2",
    complex_form=complex_forms.both("({0} == {1}) & ({2} == {3})"),
)  # fmt: skip
ne = Comparison(
    "ne", 2, np.not_equal, "{0} != {1}", ZERO, typing="bool", facts=_SYMMETRIC, formula="x1 != x2",
    complex_form=complex_forms.both("({0} != {1}) | ({2} != {3})"),
)  # fmt: skip
lt = Comparison("lt", 2, np.less, "{0} < {1}", ZERO, typing="bool", facts=_TRUTH, formula="x1 < x2")
le = Comparison("le", 2, np.less_equal, "{0} <= {1}", ZERO, typing="bool", facts=_TRUTH, formula="x1 <= x2")
gt = Comparison("gt", 2, np.greater, "{0} > {1}", ZERO, typing="bool", facts=_TRUTH, formula="x1 > x2")
ge = Comparison(
    "ge", 2, np.greater_equal, "{0} >= {1}", ZERO, typing="bool", facts=_TRUTH, formula="x1 >= x2"
)

isnan = Elementwise(
    "isnan", 1, np.isnan, Code("isnan({0})", "False", "False", "False"), ZERO, typing="bool", facts=_TRUTH,
    formula="Whether x is NaN", complex_form=complex_forms.either("isnan({0}) | isnan({1})"),
)  # fmt: skip
isinf = Elementwise(
    "isinf", 1, np.isinf, Code("isinf({0})", "False", "False", "False"), ZERO, typing="bool", facts=_TRUTH,
    formula="Whether x is infinite", complex_form=complex_forms.either("isinf({0}) | isinf({1})"),
)  # fmt: skip
isfinite = Elementwise(
    "isfinite", 1, np.isfinite, Code("isfinite({0})", "True", "True", "True"), ZERO, typing="bool",
    facts=_TRUTH, formula="Whether x is neither infinite nor NaN",
    complex_form=complex_forms.either("isfinite({0}) & isfinite({1})"),
)  # fmt: skip
signbit = Elementwise(
    "signbit", 1, np.signbit, floats("signbit({0})"), ZERO, typing="bool", facts=_TRUTH,
    formula="Whether the sign of x is negative, that of a zero or NaN as well",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (eq, ne, lt, le, gt, ge, isnan, isinf, isfinite, signbit)
