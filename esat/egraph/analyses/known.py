"""What is known of the numbers of a Variable from the ops that compute it: signs, and ranges they may leave.

The counterpart, for Variables, of the facts in ``esat/egraph/analyses/facts.py`` and
``esat/egraph/analyses/numbers.egg``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from esat.egraph.analyses.facts import lossless, never_overflows
from esat.egraph.analyses.uniform import dtype_of, value_of
from esat.graph import Apply, Constant, Family, Variable
from esat.graph.types import DTYPES
from esat.ops.annotations.assume import Assume
from esat.ops.arrays.join import Join
from esat.ops.cast import Cast
from esat.ops.contraction import MatMul
from esat.ops.elementwise.records.facts import ANY, FINITE
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction

LOGARITHMS = frozenset({"log", "log1p", "log2", "log10"})
"""Ops that it matters to whether a number leaves the range of floats."""
LONG_PRODUCTS = frozenset({"Det", "ReduceProd"})
"""Constructors of ops whose results have as many factors as there are rows, or elements."""
_DEPTH = 12
"""Ops looked through."""
_SIGNS = frozenset({"positive", "nonnegative", "negative", "nonpositive"})
_WEAKER = {"nonnegative": "positive", "nonpositive": "negative"}
_VIEWS = (Family.VIEW, Family.INDEX)


def has_fact(variable: Variable, fact: str) -> bool:
    """Whether a fact is known of every element: a sign, integral, finite."""
    return _Answers().has_fact(variable, fact, _DEPTH)


def is_exponential(variable: Variable) -> bool:
    """Whether the logarithm is better computed otherwise than from the number."""
    return overflows(variable) or vanishes(variable)


def overflows(variable: Variable) -> bool:
    """Whether the number leaves the range of floats upwards, and its logarithm has a form that does not."""
    return _Answers().leaves_range(variable, True, _DEPTH)


def vanishes(variable: Variable) -> bool:
    """Likewise, towards zero."""
    return _Answers().leaves_range(variable, False, _DEPTH)


def facts_of(variable: Variable) -> tuple[str, ...]:
    """What is known of the signs and ranges of a Variable, as rules call it."""
    if variable.tensor_type.kind != "f":
        return ()
    ranges = [name for name, holds in (("overflows", overflows), ("vanishes", vanishes)) if holds(variable)]
    return (*ranges, *(sign for sign in ("positive", "nonnegative") if ranges and has_fact(variable, sign)))


def is_view(node: Apply) -> bool:
    """Whether the elements are those of the first operand, which is the only one of numbers."""
    if isinstance(node.op, Cast):
        return True
    numbers = [operand for operand in node.inputs if getattr(operand.type, "kind", "") in ("f", "c")]
    return node.op.family in _VIEWS and len(numbers) == 1 and numbers[0] is node.inputs[0]


def _value_has(value: float, fact: str) -> bool:
    if fact in ("integral", "finite"):
        return math.isfinite(value) and (fact == "finite" or value == int(value))
    return {
        "positive": value > 0,
        "nonnegative": value >= 0,
        "negative": value < 0,
        "nonpositive": value <= 0,
    }[fact]


class _Answers:
    """The answers to a question and to those that it leads to, each of which is asked once.

    There are several ways to a sign of a product, each through the signs of its operands: without memory
    there would be as many questions as there are paths.
    """

    def __init__(self) -> None:
        self._facts: dict[tuple[Variable, str, int], bool] = {}
        self._ranges: dict[tuple[Variable, bool, int], bool] = {}

    def has_fact(self, variable: Variable, fact: str, depth: int) -> bool:
        """See :func:`has_fact`; so many ops are looked through."""
        key = variable, fact, depth
        if key not in self._facts:
            self._facts[key] = self._has_fact(variable, fact, depth)
        return self._facts[key]

    def _has_fact(  # noqa: PLR0911 - one question after the other
        self, variable: Variable, fact: str, depth: int
    ) -> bool:
        value = value_of(variable)
        kind = np.dtype(DTYPES[dtype_of(variable)]).kind
        if fact == "integral" and kind in "iub":
            return True
        if value is not None and kind in "iuf":
            return _value_has(value, fact)
        if kind == "u" and fact == "nonnegative":
            return True
        node = variable.owner
        if isinstance(variable, Constant) or node is None or depth == 0 or kind != "f":
            return False
        if isinstance(node.op, Assume):
            return fact in node.op.facts or self.has_fact(node.inputs[0], fact, depth - 1)
        if not isinstance(node.op, Elementwise):
            keeps = self._keeps_finite if fact == FINITE else self._keeps_sign if fact in _SIGNS else None
            return keeps is not None and keeps(node, fact, depth)
        if np.dtype(DTYPES[dtype_of(node.inputs[-1])]).kind != "f":
            return False  # what is said of ops is said of real floats: the angle of a complex number is any
        facts = node.op.facts
        weaker = _WEAKER.get(fact)
        if getattr(facts, fact, False) or (weaker is not None and getattr(facts, weaker, False)):
            return True
        if node.op.name == "mul" and fact == "nonnegative" and node.inputs[0] is node.inputs[1]:
            return True
        for given, result in node.op.sign_rules:
            if result not in (fact, weaker):
                continue
            orders = [given, tuple(reversed(given))] if facts.commutative else [given]
            for signs in orders:
                if all(
                    sign == ANY or self.has_fact(operand, sign, depth - 1)
                    for sign, operand in zip(signs, node.inputs, strict=True)
                ):
                    return True
        return False

    def _keeps_sign(self, node: Apply, fact: str, depth: int) -> bool:
        """Whether a view, reduction, cast or product of matrices has the sign, as its operands have it."""
        op, operand = node.op, node.inputs[0]
        if isinstance(op, Normalization):
            return fact in (("positive", "nonnegative") if op.name == "softmax" else ("nonpositive",))
        if isinstance(op, Cast) and operand.tensor_type.kind == "b":
            return fact == "nonnegative"
        if isinstance(op, Reduction):
            # Of no terms a sum is zero, and a product one.
            fitting = {
                "sum": ("nonnegative", "nonpositive"),
                "prod": ("nonnegative", "positive"),
                "max": tuple(_SIGNS),
                "min": tuple(_SIGNS),
            }
            return fact in fitting.get(op.name, ()) and self.has_fact(operand, fact, depth - 1)
        if isinstance(op, MatMul):
            return fact == "nonnegative" and all(self.has_fact(part, fact, depth - 1) for part in node.inputs)
        return is_view(node) and self.has_fact(operand, fact, depth - 1)

    def _keeps_finite(self, node: Apply, fact: str, depth: int) -> bool:
        """Whether a view, extremum, softmax or cast has no infinity or NaN because its operand has none."""
        op, operand = node.op, node.inputs[0]
        if isinstance(op, Cast):
            source, target = operand.tensor_type, node.outputs[0].tensor_type
            if source.kind in "biu":
                return never_overflows(source.dtype, target.dtype)
            return lossless(source.dtype, target.dtype) and self.has_fact(operand, fact, depth - 1)
        chosen = isinstance(op, Reduction) and op.name in ("max", "min")
        softmax = isinstance(op, Normalization) and op.name == "softmax"
        return (chosen or softmax or is_view(node)) and self.has_fact(operand, fact, depth - 1)

    def leaves_range(self, variable: Variable, upwards: bool, depth: int) -> bool:
        """Whether a number leaves the range of floats so that its logarithm has a better form."""
        key = variable, upwards, depth
        if key not in self._ranges:
            self._ranges[key] = self._leaves_range(variable, upwards, depth)
        return self._ranges[key]

    def _leaves_range(self, variable: Variable, upwards: bool, depth: int) -> bool:
        node = variable.owner
        if node is None or depth == 0 or variable.tensor_type.kind != "f" or len(node.outputs) != 1:
            return False
        op, operands = node.op, node.inputs
        if op.constructor in LONG_PRODUCTS:
            return True

        def has(operand: Variable, direction: bool = upwards) -> bool:
            return self.leaves_range(operand, direction, depth - 1)

        if isinstance(op, Elementwise):
            return (op.facts.overflows if upwards else op.facts.vanishes) or self._of_elementwise(
                node, upwards, has
            )
        if isinstance(op, Reduction):
            nonnegative = self.has_fact(operands[0], "nonnegative", _DEPTH)
            return (op.name in ("max", "min") or (op.name == "sum" and nonnegative)) and has(operands[0])
        if isinstance(op, Normalization):
            return op.name == "softmax" and not upwards
        if isinstance(op, Join):
            return any(map(has, operands))
        return is_view(node) and has(operands[0])

    def _of_elementwise(self, node: Apply, upwards: bool, has: Callable[..., bool]) -> bool:
        """Whether a result leaves the range as operands do."""
        operands = node.inputs
        match node.op.name:
            case "mul":
                return has(operands[0]) or has(operands[1])
            case "div":
                return has(operands[0]) or has(operands[1], not upwards)
            case "reciprocal":
                return has(operands[0], not upwards)
            case "sqr" | "sqrt" | "fill":
                return has(operands[-1])
            case "switch":
                return has(operands[1]) or has(operands[2])
            case "pow":
                base = value_of(operands[0])
                return (base is not None and base > 0) or has(operands[0]) or has(operands[0], not upwards)
            case "add":
                found = (has(operand) for operand in operands)
                nonnegative = all(self.has_fact(operand, "nonnegative", _DEPTH) for operand in operands)
                return nonnegative and (any(found) if upwards else all(found))
        return False
