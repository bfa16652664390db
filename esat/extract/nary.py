"""How an n-ary sum or product is computed by binary ops.

Cost model and decoder share this plan, so that what is priced is what is built: operands that
are small are combined first (scalars before arrays), repeated factors become powers by squaring,
and a product divides at most once at each size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

Shape = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One op of a plan. ``left`` and ``right`` count operands first and then earlier steps."""

    op: str
    left: int
    right: int | None
    shape: Shape


def broadcast_shape(left: Shape, right: Shape) -> Shape:
    """Shape of an elementwise result; a scalar has the empty shape and fits any rank."""
    if not left or not right:
        return left or right
    return tuple(max(pair) if 0 not in pair else 0 for pair in zip(left, right, strict=True))


def plan_sum(shapes: Sequence[Shape], positives: int) -> tuple[Step, ...]:
    """Steps that add the first ``positives`` operands and subtract the others."""
    plan = _Plan(list(shapes))
    order = sorted(range(len(shapes)), key=lambda index: (prod(shapes[index]), index))
    total = order[0]
    positive = total < positives
    for operand in order[1:]:
        if (operand < positives) == positive:
            total = plan.add("add", total, operand)
        elif positive:
            total = plan.add("sub", total, operand)
        else:
            total = plan.add("sub", operand, total)
            positive = True
    if not positive:
        plan.add("neg", total, None)
    return tuple(plan.steps)


def plan_product(operands: Sequence[int], shapes: Sequence[Shape], numerators: int) -> tuple[Step, ...]:
    """Steps that multiply the first ``numerators`` operands and divide by the others.

    ``operands`` tells which operands are the same value.
    """
    plan = _Plan(list(shapes))
    top = _powers(plan, operands, range(numerators))
    bottom = _powers(plan, operands, range(numerators, len(operands)))
    sizes = sorted({prod(plan.shapes[index]) for index in (*top, *bottom)})
    numerator: int | None = None
    denominator: int | None = None
    for size in sizes:
        if numerator is not None and denominator is not None:
            numerator, denominator = plan.add("div", numerator, denominator), None
        numerator = _multiply(plan, numerator, [i for i in top if prod(plan.shapes[i]) == size])
        denominator = _multiply(plan, denominator, [i for i in bottom if prod(plan.shapes[i]) == size])
    if denominator is not None:
        if numerator is None:
            plan.add("reciprocal", denominator, None)
        else:
            plan.add("div", numerator, denominator)
    return tuple(plan.steps)


@dataclass(slots=True)
class _Plan:
    shapes: list[Shape]
    steps: list[Step] = field(default_factory=list)

    def add(self, op: str, left: int, right: int | None) -> int:
        shape = self.shapes[left] if right is None else broadcast_shape(self.shapes[left], self.shapes[right])
        self.steps.append(Step(op, left, right, shape))
        self.shapes.append(shape)
        return len(self.shapes) - 1


def _multiply(plan: _Plan, start: int | None, factors: Sequence[int]) -> int | None:
    for factor in factors:
        start = factor if start is None else plan.add("mul", start, factor)
    return start


def _powers(plan: _Plan, operands: Sequence[int], positions: range) -> list[int]:
    counts = Counter(operands[position] for position in positions)
    first = {operands[position]: position for position in reversed(positions)}
    return [_power(plan, first[value], count) for value, count in counts.items()]


def _power(plan: _Plan, base: int, exponent: int) -> int:
    """``base ** exponent`` by repeated squaring."""
    result: int | None = None
    square = base
    while True:
        if exponent & 1:
            result = square if result is None else plan.add("mul", result, square)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = plan.add("sqr", square, None)
