"""Ops that choose among their operands: switch, fill, copy, maximum, minimum, clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.graph.op import Array, as_variable
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.elementwise import complex_forms
from esat.ops.elementwise.comparison import eq, ge, gt, isnan, le, lt
from esat.ops.elementwise.logical import logical_and, logical_or
from esat.ops.elementwise.records.code import Code, anything, numbers
from esat.ops.elementwise.records.facts import (
    ANY,
    KEEPS_SIGN,
    NEGATIVE,
    NONNEGATIVE,
    NONPOSITIVE,
    POSITIVE,
    Facts,
    SignRule,
)
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.inference.promotion import common_dtype, given_dtypes, is_weak, operand_dtypes, wrap

_SIGNS = (POSITIVE, NEGATIVE, NONNEGATIVE, NONPOSITIVE)
Cotangents = Sequence[Variable | None]


class Switch(Elementwise):
    """``condition ? a : b`` by element; the condition is bool, the others have one dtype."""

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        condition = cast(as_variable(inputs[0]), "bool")
        return [condition, *super().promote(inputs[1:])]


switch: Elementwise = Switch(
    "switch", 3, np.where, anything("select({0}, {1}, {2})"),
    gradient=lambda inputs, output, cotangent: [
        None, switch(inputs[0], cotangent, 0), switch(inputs[0], 0, cotangent),
    ],
    operand_typing=("bool", "same", "same"),
    facts=Facts(keeps_finite=True, signs=tuple(((ANY, sign, sign), sign) for sign in _SIGNS)),
    formula="x2 where x1 is true, otherwise x3",
    complex_form=complex_forms.switch,
)  # fmt: skip


class Fill(Elementwise):
    """The value of the second operand in the shape of both, which is meant to be the first's.

    The first operand gives only its shape, in whatever dtype it has. A Python number takes its dtype.
    """

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        model, value = inputs
        dtype = common_dtype(self.name, inputs if is_weak(value) else [value])
        return [as_variable(model), wrap(self.name, value, dtype)]


def _fill(model: Array, value: Array) -> Array:
    return np.array(np.broadcast_arrays(model, value)[1])


fill = Fill(
    "fill", 2, _fill, anything("{1}"),
    gradient=lambda inputs, output, cotangent: [None, cotangent],
    typing="fill", operand_typing=("", "same"), flops=0.0,
    facts=Facts(keeps_finite=True, signs=tuple(((ANY, sign), sign) for sign in _SIGNS)),
    formula="x2 in the shape that x1 and x2 have together",
    complex_form=complex_forms.filled,
)  # fmt: skip

# A copy. NumPy's identity is a matrix.
copy = Elementwise(
    "copy", 1, np.array, anything("{0}"),
    gradient=lambda inputs, output, cotangent: [cotangent],
    flops=0.0, constructor="Identity",
    facts=Facts(keeps_finite=True, idempotent=True, parity="odd", monotone="increasing", signs=KEEPS_SIGN),
    formula="x",
)  # fmt: skip


def _shares(wins: Variable, ties: Variable, cotangent: Variable) -> Variable:
    """The cotangent where an operand is the result, half of it where both are (as in JAX)."""
    share: Variable = switch(wins, cotangent, switch(ties, 0.5 * cotangent, 0))
    return share


def _maximum_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    left, right = inputs
    ties = eq(left, right)
    return [_shares(gt(left, right), ties, cotangent), _shares(lt(left, right), ties, cotangent)]


def _minimum_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    left, right = inputs
    ties = eq(left, right)
    return [_shares(lt(left, right), ties, cotangent), _shares(gt(left, right), ties, cotangent)]


def _fmax_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    left, right = inputs
    ties = eq(left, right)
    return [
        _shares(logical_or(gt(left, right), isnan(right)), ties, cotangent),
        _shares(logical_or(lt(left, right), isnan(left)), ties, cotangent),
    ]


def _fmin_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    left, right = inputs
    ties = eq(left, right)
    return [
        _shares(logical_or(lt(left, right), isnan(right)), ties, cotangent),
        _shares(logical_or(gt(left, right), isnan(left)), ties, cotangent),
    ]


_LARGER: tuple[SignRule, ...] = (
    ((POSITIVE, ANY), POSITIVE),
    ((NONNEGATIVE, ANY), NONNEGATIVE),
    ((NEGATIVE, NEGATIVE), NEGATIVE),
    ((NONPOSITIVE, NONPOSITIVE), NONPOSITIVE),
)
_SMALLER: tuple[SignRule, ...] = (
    ((NEGATIVE, ANY), NEGATIVE),
    ((NONPOSITIVE, ANY), NONPOSITIVE),
    ((POSITIVE, POSITIVE), POSITIVE),
    ((NONNEGATIVE, NONNEGATIVE), NONNEGATIVE),
)
_UPPER = Facts(keeps_finite=True, commutative=True, associative=True, idempotent=True, signs=_LARGER)
_LOWER = Facts(keeps_finite=True, commutative=True, associative=True, idempotent=True, signs=_SMALLER)
# One operand alone says nothing of fmax and fmin: where it is NaN the other is the result.
_EITHER = Facts(
    keeps_finite=True,
    commutative=True,
    associative=True,
    idempotent=True,
    signs=tuple(((sign, sign), sign) for sign in _SIGNS),
)

# maximum and minimum are NaN where an operand is; fmax and fmin only where both are. Of zeros of
# different sign either may be the result, as in NumPy.
maximum = Elementwise(
    "maximum",
    2,
    np.maximum,
    numbers("maximum({0}, {1})", boolean="{0} | {1}"),
    _maximum_gradient,
    facts=_UPPER,
    formula="The larger operand; NaN if either is",
)
minimum = Elementwise(
    "minimum",
    2,
    np.minimum,
    numbers("minimum({0}, {1})", boolean="{0} & {1}"),
    _minimum_gradient,
    facts=_LOWER,
    formula="The smaller operand; NaN if either is",
)
fmax = Elementwise(
    "fmax", 2, np.fmax, Code("fmax({0}, {1})", "maximum({0}, {1})", "maximum({0}, {1})", "{0} | {1}"),
    _fmax_gradient, facts=_EITHER,
    formula="The larger operand, or the other one if one is NaN",
)  # fmt: skip
fmin = Elementwise(
    "fmin", 2, np.fmin, Code("fmin({0}, {1})", "minimum({0}, {1})", "minimum({0}, {1})", "{0} & {1}"),
    _fmin_gradient, facts=_EITHER,
    formula="The smaller operand, or the other one if one is NaN",
)  # fmt: skip


class Clip(Elementwise):
    """``minimum(maximum(x, low), high)``. A Python bound beyond the range of an integer ``x`` is no bound."""

    def promote(self, inputs: Sequence[Any]) -> list[Variable]:
        dtypes = operand_dtypes(self.name, self.dtypes, inputs, by_result=True)
        value, low, high = inputs
        if np.dtype(dtypes[0]).kind in "iu" and not is_weak(value) and given_dtypes([value])[0] == dtypes[0]:
            limits = np.iinfo(dtypes[0])
            low = max(low, int(limits.min)) if type(low) is int else low
            high = min(high, int(limits.max)) if type(high) is int else high
        return super().promote((value, low, high))


def _clip_gradient(inputs: Sequence[Variable], output: Variable, cotangent: Variable) -> Cotangents:
    """To the operand that is the result: x within the bounds, ends included, as in PyTensor."""
    value, low, high = inputs
    within = logical_and(ge(value, low), le(value, high))
    below = logical_and(lt(value, low), le(low, high))
    above = logical_or(gt(value, high), gt(low, high))
    return [
        switch(logical_and(within, le(low, high)), cotangent, 0),
        switch(below, cotangent, 0),
        switch(above, cotangent, 0),
    ]


clip = Clip(
    "clip", 3, np.clip, numbers("minimum(maximum({0}, {1}), {2})", boolean="({0} | {1}) & {2}"),
    _clip_gradient, flops=2.0,
    facts=Facts(
        keeps_finite=True, signs=(
            ((ANY, POSITIVE, POSITIVE), POSITIVE),
            ((POSITIVE, ANY, POSITIVE), POSITIVE),
            ((ANY, NONNEGATIVE, NONNEGATIVE), NONNEGATIVE),
            ((NONNEGATIVE, ANY, NONNEGATIVE), NONNEGATIVE),
            ((ANY, ANY, NEGATIVE), NEGATIVE),
            ((ANY, ANY, NONPOSITIVE), NONPOSITIVE),
            ((NEGATIVE, NEGATIVE, ANY), NEGATIVE),
            ((NONPOSITIVE, NONPOSITIVE, ANY), NONPOSITIVE),
        )
    ),
    formula="minimum(maximum(x1, x2), x3)",
)  # fmt: skip

OPS: tuple[Elementwise, ...] = (switch, fill, copy, maximum, minimum, fmax, fmin, clip)
