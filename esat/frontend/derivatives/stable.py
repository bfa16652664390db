"""Forms that gradients are taken of in place of what was written, where that overflows or cancels.

The derivative of ``log(softmax(x))`` as written divides by probabilities that underflow, and multiplies by
them again far from there. Neither happens if the derivative is taken of ``log_softmax(x)``. Values are
computed as they are written: rules see to their stability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from esat.graph.op import Op
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.elementwise.arithmetic import neg
from esat.ops.elementwise.exponential import log, log1mexp, logaddexp, sigmoid, softplus
from esat.ops.elementwise.hyperbolic import log_cosh
from esat.ops.elementwise.special import log_ndtr
from esat.ops.index.advanced import AdvancedSubtensor
from esat.ops.index.basic import Subtensor
from esat.ops.index.entries import Slice
from esat.ops.linalg.inverse import DETERMINANT, SLOGDET
from esat.ops.normalization import Normalization, log_softmax, logsumexp, softmax
from esat.ops.reduction import PROD, SUM, Reduction, restore_axes

Term = tuple[int, Variable]
"""A sign, and what is added with it."""


def stable_form(node: Apply) -> Variable | None:
    """A formula for the node's result whose gradient neither overflows nor cancels, where one is known.

    Returns
    -------
    A Variable of the type of the result, computed from ancestors of the node, with its derivatives: equal
    to it over the reals, but for logarithms of negative factors, ``log(x*y) = log(x) + log(y)``.
    """
    find = _FORMS.get(node.op.name)
    if find is None or node.outputs[0].tensor_type.kind != "f":
        return None
    form = find(node)
    if form is None:
        return None
    given, wanted = form.tensor_type, node.outputs[0].tensor_type
    return form if (given.dtype, given.broadcastable) == (wanted.dtype, wanted.broadcastable) else None


# ---- logarithms


def _log(node: Apply) -> Variable | None:
    return _log_of(node.inputs[0])


def _log1p(node: Apply) -> Variable | None:
    terms = _terms(node.inputs[0])
    if len(terms) == 1:
        return _log_of_one_and(terms[0])
    (left, first), (right, second) = terms
    return _log_of(first) if left > 0 > right and _is_one(second) else None


def _log_of_base(base: float, node: Apply) -> Variable | None:
    form = _log_of(node.inputs[0])
    return None if form is None else form / math.log(base)


def _log_of(inner: Variable) -> Variable | None:
    terms = _terms(inner)
    if len(terms) == 2:
        return _log_of_sum(*terms)
    if (odds := _sigmoid_of(inner)) is not None:
        return _apply(neg, _apply(softplus, _negated(odds)))
    if (normalized := _softmax_of(inner)) is not None:
        return log_softmax(*normalized)
    if (summed := _sum_of_exponentials(inner)) is not None:
        operand, axes = summed
        return logsumexp(operand, axes, keepdims=inner.tensor_type.ndim == operand.tensor_type.ndim)
    if (x := _operand("erfc", inner)) is not None:
        return _log_erfc(x)
    if (x := _operand("cosh", inner)) is not None:
        return _apply(log_cosh, x)
    if (x := _operand("ndtr", inner)) is not None:
        return _apply(log_ndtr, x)
    sign, positive = terms[0]
    if sign < 0 and (x := _operand("expm1", positive)) is not None:
        return _apply(log1mexp, x)
    part = _log_of_part(inner)
    return _log_of_product(inner) if part is None else part


def _log_of_sum(left: Term, right: Term) -> Variable | None:
    for (sign, one), other in ((left, right), (right, left)):
        if sign > 0 and _is_one(one):
            return _log_of_one_and(other)
    x, y = _operand("exp", left[1]), _operand("exp", right[1])
    if x is None or y is None or left[0] < 0 > right[0]:
        return None
    if left[0] == right[0]:
        return _apply(logaddexp, x, y)
    return x + _apply(log1mexp, y - x) if left[0] > 0 else y + _apply(log1mexp, x - y)


def _log_of_one_and(other: Term) -> Variable | None:
    """The logarithm of one and another term."""
    sign, term = other
    if (x := _operand("exp", term)) is not None:
        return _apply(softplus, x) if sign > 0 else _apply(log1mexp, x)
    if sign > 0:
        return None
    if (odds := _sigmoid_of(term)) is not None:
        return _apply(neg, _apply(softplus, odds))
    x = _operand("erf", term)
    return None if x is None else _log_erfc(x)


def _log_erfc(x: Variable) -> Variable:
    """``erfc(x) = 2 ndtr(-sqrt(2) x)``."""
    return _apply(log_ndtr, -math.sqrt(2.0) * x) + math.log(2.0)


def _log_of_part(inner: Variable) -> Variable | None:
    """Logarithms of chosen elements are chosen from the logarithms of all."""
    node = inner.owner
    if node is None or not isinstance(node.op, (Subtensor, AdvancedSubtensor)):
        return None
    whole = _log_of(node.inputs[0])
    return None if whole is None else node.op.make_node(whole, *node.inputs[1:]).outputs[0]


def _log_of_product(inner: Variable) -> Variable | None:
    """Of determinants and products over axes, which leave the range, and of products and powers of them."""
    node = inner.owner
    if node is None:
        return None
    if node.op == DETERMINANT:
        logarithm: Variable = SLOGDET(node.inputs[0])[1]
        return logarithm
    if isinstance(node.op, Reduction) and node.op.reducer is PROD:
        form = _log_of(node.inputs[0])
        logarithms = _apply(log, node.inputs[0]) if form is None else form
        return _apply(Reduction(SUM, node.op.axes, node.op.keepdims), logarithms)
    factors = [(factor, power, _log_of(factor)) for factor, power in _powers(node)]
    if all(form is None for _, _, form in factors):
        return None
    terms = [(_apply(log, factor) if form is None else form) * power for factor, power, form in factors]
    return sum(terms[1:], terms[0])


def _powers(node: Apply) -> list[tuple[Variable, Variable | float]]:
    """Factors and constant powers whose product is a result or its negative; none where it is no product."""
    operands = node.inputs
    match node.op.name:
        case "mul":
            return [(operand, 1.0) for operand in operands]
        case "div":
            return [(operands[0], 1.0), (operands[1], -1.0)]
        case "neg" | "abs":
            return [(operands[0], 1.0)]
        case "pow" if isinstance(operands[1], Constant):
            return [(operands[0], operands[1])]
    power = {"reciprocal": -1.0, "sqr": 2.0, "sqrt": 0.5}.get(node.op.name)
    return [] if power is None else [(operands[0], power)]


# ---- quotients


def _quotient(node: Apply) -> Variable | None:
    if (odds := _sigmoid_of(node.outputs[0])) is not None:
        return _apply(sigmoid, odds)
    normalized = _softmax_of(node.outputs[0])
    return None if normalized is None else softmax(*normalized)


_FORMS: dict[str, Callable[[Apply], Variable | None]] = {
    "log": _log,
    "log1p": _log1p,
    "log2": partial(_log_of_base, 2.0),
    "log10": partial(_log_of_base, 10.0),
    "div": _quotient,
    "reciprocal": _quotient,
}


# ---- what Variables are made of


def _sigmoid_of(variable: Variable) -> Variable | None:
    """The x of ``sigmoid(x)``, ``1 / (1 + exp(-x))`` and their like; x - y for two exponentials."""
    if (x := _operand("sigmoid", variable)) is not None:
        return x
    fraction = _fraction(variable)
    if fraction is None:
        return None
    upper, lower = fraction
    terms = _terms(lower)
    if len(terms) != 2 or min(sign for sign, _ in terms) < 0:
        return None
    above = 0 if upper is None else _exponent(upper)
    below = [_exponent(term) for _, term in terms]
    for own, other in (below, below[::-1]):
        if own is not None and other is not None and above is own:
            return _difference(own, other)
    return None


def _softmax_of(variable: Variable) -> tuple[Variable, tuple[int, ...]] | None:
    """Operand and axes of a softmax, also of one written as exponentials over their sum."""
    node = variable.owner
    if node is not None and isinstance(node.op, Normalization):
        return (node.inputs[0], node.op.axes) if node.op.name == "softmax" else None
    fraction = _fraction(variable)
    if fraction is None or fraction[0] is None:
        return None
    summed = _sum_of_exponentials(_without_restored_axes(fraction[1]))
    return summed if summed is not None and summed[0] is _operand("exp", fraction[0]) else None


def _sum_of_exponentials(variable: Variable) -> tuple[Variable, tuple[int, ...]] | None:
    """Operand and axes of a sum of exponentials."""
    node = variable.owner
    if node is None or not isinstance(node.op, Reduction) or node.op.reducer is not SUM:
        return None
    x = _operand("exp", node.inputs[0])
    return None if x is None else (x, node.op.axes)


def _without_restored_axes(variable: Variable) -> Variable:
    """The reduction behind a view that restores the axes which it drops; else the Variable itself."""
    view = variable.owner
    if view is None or not isinstance(view.op, DimShuffle):
        return variable
    reduced = _without_whole_slices(view.inputs[0])
    reduction = reduced.owner
    if reduction is None or not isinstance(reduction.op, Reduction) or reduction.op.keepdims:
        return variable
    restored = restore_axes(reduced, reduction.op.axes, reduction.inputs[0].tensor_type.ndim)
    return reduced if restored.owner is not None and restored.owner.op == view.op else variable


def _without_whole_slices(variable: Variable) -> Variable:
    """The x of ``x[:]``, which ``x[:, None]`` is a view of."""
    node = variable.owner
    if node is None or not isinstance(node.op, Subtensor):
        return variable
    whole = all(isinstance(entry, Slice) and entry.is_full for entry in node.op.entries)
    return node.inputs[0] if whole else variable


def _fraction(variable: Variable) -> tuple[Variable | None, Variable] | None:
    """Numerator, None in a reciprocal, and denominator."""
    node = variable.owner
    if node is None or node.op.name not in ("div", "reciprocal"):
        return None
    return (node.inputs[0], node.inputs[1]) if node.op.name == "div" else (None, node.inputs[0])


def _exponent(variable: Variable) -> Variable | int | None:
    """The x of ``exp(x)``, 0 for one."""
    return 0 if _is_one(variable) else _operand("exp", variable)


def _difference(left: Variable | int, right: Variable | int) -> Variable | None:
    if isinstance(right, int):
        return None if isinstance(left, int) else left
    return _negated(right) if isinstance(left, int) else left - right


def _terms(variable: Variable) -> list[Term]:
    """The one or two terms of a sum or difference, with their signs."""
    node = variable.owner
    name = None if node is None else node.op.name
    if node is None or name not in ("add", "sub"):
        return [_signed(variable)]
    (left, x), (right, y) = map(_signed, node.inputs)
    return [(left, x), (right if name == "add" else -right, y)]


def _signed(variable: Variable) -> Term:
    operand = _operand("neg", variable)
    return (1, variable) if operand is None else (-1, operand)


def _negated(variable: Variable) -> Variable:
    sign, operand = _signed(variable)
    return operand if sign < 0 else _apply(neg, variable)


def _operand(name: str, variable: Variable) -> Variable | None:
    """The operand of an op of one, where the Variable is made by it."""
    node = variable.owner
    return node.inputs[0] if node is not None and node.op.name == name else None


def _is_one(variable: Variable) -> bool:
    """Whether all elements are known to be 1, looking through views."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    return isinstance(variable, Constant) and bool(np.all(np.asarray(variable.data) == 1))


def _apply(op: Op, *operands: Variable) -> Variable:
    (result,) = op.make_node(*operands).outputs
    return result
