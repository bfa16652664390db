"""Powers with a whole number as exponent, as the products of their plans."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from esat.graph import Apply
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.elementwise.power import pow
from esat.ops.elementwise.whole_power import Rounding, power_plan, whole_exponent

_ERROR_OF_SQUARE = "fused_multiply_add({0}, {0}, -{1})"
_ERROR_OF_PRODUCT = "fused_multiply_add({0}, {1}, -{2})"
_ERROR_OF_RECIPROCAL = "fused_multiply_add(-{0}, {1}, const(1)) * {1}"
_TWICE_PRODUCT_AND = "fused_multiply_add({0} + {0}, {1}, {2})"
_PRODUCT_AND = "fused_multiply_add({0}, {1}, {2})"
# Where the product is infinite, what it was rounded by is not a number.
_IF_NUMBER = "select({0} == {0}, {0}, {1})"


class ValueBuilder(Protocol):
    """Defines values of one dtype."""

    def __call__(self, template: str, *operands: int) -> int:
        """The number of the value that a template has for operands."""


class _Pair(NamedTuple):
    """The value ``high + low``; None where nothing was rounded."""

    high: int
    low: int | None = None


def exponent_of(node: Apply) -> int | None:
    """The exponent of a power that products compute; None for all else.

    Integers have no powers with negative exponents: whoever computes them raises.
    """
    if node.op is not pow or node.inputs[0].tensor_type.kind not in "fiu":
        return None
    exponent = node.inputs[1]
    while exponent.owner is not None and isinstance(exponent.owner.op, DimShuffle):
        exponent = exponent.owner.inputs[0]
    whole = whole_exponent(exponent)
    return None if whole is not None and whole < 0 and exponent.tensor_type.kind != "f" else whole


def integer_power(compute: ValueBuilder, product: str, base: int, exponent: int) -> int:
    """``base ** exponent`` of integers, which wrap around, for a positive exponent.

    Parameters
    ----------
    product
        The template of a product.
    """
    result = base
    for bit in f"{exponent:b}"[1:]:
        result = compute(product, result, result)
        if bit == "1":
            result = compute(product, result, base)
    return result


def float_power(compute: ValueBuilder, base: int, exponent: int) -> int:
    """``base ** exponent`` of floats, for an exponent that is neither zero nor one."""
    plan = power_plan(exponent)
    factor = _Pair(base)
    if plan.inverts:
        reciprocal = compute("const(1) / {0}", base)
        error = compute(_ERROR_OF_RECIPROCAL, base, reciprocal) if plan.has_pairs else None
        factor = _Pair(reciprocal, error)
    result = factor
    for step in plan.steps:
        other = result if step.squares else factor
        if step.rounding is Rounding.PAIR:
            result = _square(compute, result) if step.squares else _product(compute, result, factor)
        elif step.rounding is Rounding.LAST_PAIR:
            result = _Pair(_rounded_product(compute, result, other))
        else:
            result = _Pair(compute("{0} * {1}", result.high, other.high))
    return result.high


def _square(compute: ValueBuilder, value: _Pair) -> _Pair:
    high = compute("{0} * {0}", value.high)
    error = compute(_ERROR_OF_SQUARE, value.high, high)
    if value.low is None:
        return _Pair(high, error)
    return _Pair(high, compute(_TWICE_PRODUCT_AND, value.high, value.low, error))


def _product(compute: ValueBuilder, value: _Pair, factor: _Pair) -> _Pair:
    assert value.low is not None
    high = compute("{0} * {1}", value.high, factor.high)
    error = compute(_ERROR_OF_PRODUCT, value.high, factor.high, high)
    if factor.low is not None:
        error = compute(_PRODUCT_AND, value.high, factor.low, error)
    return _Pair(high, compute(_PRODUCT_AND, value.low, factor.high, error))


def _rounded_product(compute: ValueBuilder, left: _Pair, right: _Pair) -> int:
    """The product of pairs, rounded once."""
    high = compute("{0} * {1}", left.high, right.high)
    if left.low is None:
        return high
    if left is right:
        cross = compute("({0} + {0}) * {1}", left.high, left.low)
    else:
        cross = compute("{0} * {1}", left.low, right.high)
        if right.low is not None:
            cross = compute(_PRODUCT_AND, left.high, right.low, cross)
    return compute(_IF_NUMBER, compute(_PRODUCT_AND, left.high, right.high, cross), high)
