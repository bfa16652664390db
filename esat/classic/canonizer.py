"""Canonical sums and products: Theano's add and mul canonizers.

``(a + b + c + ...) - (z + x + y + ...)`` and ``(a * b * c * ...) / (z * x * y * ...)``: a chain is
flattened through inner nodes used only once, what stands on both sides cancels, constants are folded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from esat.classic.chains import PRODUCTS, SUMS, chain_of, follow, is_inner, plan
from esat.classic.graph_terms import fitted, is_tensor, same, with_rank
from esat.classic.local import LocalOptimizer, Transformed
from esat.egraph.terms import SCALAR
from esat.egraph.uniform import broadcast_of, value_of
from esat.graph import Apply, Op, Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named


class Canonizer(LocalOptimizer):
    """Rewrites chains of one kind to their canonical form if that is shorter.

    Parameters
    ----------
    kind
        ``add`` or ``mul``.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names = SUMS if kind == "add" else PRODUCTS
        self.unit = 0.0 if kind == "add" else 1.0
        self.name = f"local_{kind}_canonizer"

    def follows(self, op: Op) -> bool:
        return op.name in self.names

    def transform(self, node: Apply) -> Transformed:
        if not self.follows(node.op) or not is_tensor(node.outputs[0]):
            return False
        output = node.outputs[0]
        kind = output.tensor_type.kind
        if kind == "b" or (kind in "iu" and self.kind == "mul" and node.op.name in ("div", "reciprocal")):
            return False
        if is_inner(output, self.names):
            return False  # part of a longer chain, which is met later
        chain = chain_of(output, self.names)
        top, bottom = _cancelled(chain.above, chain.below)
        top, bottom = self._fold(top, bottom, output)
        if len(top) + len(bottom) >= len(chain.above) + len(chain.below):
            return False
        if not (top or bottom):
            top = [constant(np.asarray(self.unit).astype(output.tensor_type.dtype))]
        steps = plan(self.names, top, bottom)
        if len(steps) >= chain.nodes:
            return False
        result = _shaped(follow(steps, [*top, *bottom]), output, [*chain.above, *chain.below])
        return False if result is None else [result]

    def _fold(
        self, above: list[Variable], below: list[Variable], output: Variable
    ) -> tuple[list[Variable], list[Variable]]:
        """Scalar constants of the chain as one, and none at all where it changes nothing."""
        if output.tensor_type.dtype != "float64":
            return above, below
        totals, found = [self.unit, self.unit], 0
        terms: list[float] = []
        kept: tuple[list[Variable], list[Variable]] = ([], [])
        for side, operands in enumerate((above, below)):
            for operand in operands:
                value = value_of(operand)
                if value is None or broadcast_of(operand) != SCALAR or (self.kind == "mul" and value == 0):
                    kept[side].append(operand)
                    continue
                found += 1
                terms.append(-value if side else value)
                totals[side] = totals[side] + value if self.kind == "add" else totals[side] * value
        try:
            total = totals[0] - totals[1] if self.kind == "add" else totals[0] / totals[1]
        except (OverflowError, ZeroDivisionError):
            return above, below
        if found < 1 or (found == 1 and total != self.unit) or not (kept[0] or kept[1]):
            return above, below
        if self.kind == "add" and _is_lossy(terms, total):
            return above, below  # the smallest would be missing where the others cancel
        if not math.isfinite(total) or (self.kind == "mul" and abs(total) < _LEAST_NORMAL):
            return above, below  # one after the other they may all leave a result in range
        if self.kind == "mul" and _extent(total) > max(_MODERATE, *map(_extent, totals)):
            return above, below  # so may what is multiplied and divided by one and the other
        if total != self.unit:
            kept[0].append(constant(total))
        return kept


_LEAST_NORMAL = float(np.finfo(np.float64).smallest_normal)
_MODERATE = float(np.finfo(np.float64).max) ** 0.125
"""Constants up to it, and from its reciprocal on, are always made of others."""


def _is_lossy(terms: Sequence[float], total: float) -> bool:
    """Whether a sum of constants lost more than one unit in the last place of the smallest of them."""
    exact = sum(map(Fraction, terms)) - Fraction(total) if math.isfinite(total) else Fraction(0)
    least = min((abs(term) for term in terms if term), default=0.0)
    return abs(exact) > Fraction(np.finfo(np.float64).eps * least)


def _extent(number: float) -> float:
    """How far a number is from one, by a factor."""
    return max(abs(number), 1.0 / abs(number)) if number else math.inf


def _cancelled(above: Sequence[Variable], below: Sequence[Variable]) -> tuple[list[Variable], list[Variable]]:
    top, bottom = list(above), []
    for operand in below:
        match = next((index for index, other in enumerate(top) if same(other, operand)), None)
        if match is None:
            bottom.append(operand)
        else:
            del top[match]
    return top, bottom


def _shaped(result: Variable, output: Variable, operands: Sequence[Variable]) -> Variable | None:
    """The result; spread over the shape of an operand where none that is left has the shape of the output."""
    if broadcast_of(result) == broadcast_of(output):
        return fitted(result, output)
    shaping = next((one for one in operands if broadcast_of(one) == broadcast_of(output)), None)
    rank = output.tensor_type.ndim
    if shaping is None or (broadcast_of(result) != SCALAR and result.tensor_type.ndim != rank):
        return None
    return fitted(op_named("fill")(shaping, with_rank(result, rank)), output)
