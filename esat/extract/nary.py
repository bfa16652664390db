"""How an n-ary sum or product is computed by binary ops.

Cost model and decoder share this plan, so that what is priced is what is built: operands of one shape
are combined first, then the two shapes with the smallest common one, and so on (scalars before arrays,
rows before matrices); repeated factors become powers by squaring, and where a result grows, what has
been divided by is divided by at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
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
    groups: dict[Shape, _Group] = {}
    for operand, shape in enumerate(shapes):
        part = (operand, None) if operand < positives else (None, operand)
        groups[shape] = _joined(plan, groups.get(shape, (None, None)), part, "add")
    total = _smallest_first(plan, groups, "add", "sub")
    if total[0] is None:
        assert total[1] is not None
        plan.add("neg", total[1], None)
    else:
        _resolved(plan, total, "sub")
    return tuple(plan.steps)


def plan_product(operands: Sequence[int], shapes: Sequence[Shape], numerators: int) -> tuple[Step, ...]:
    """Steps that multiply the first ``numerators`` operands and divide by the others.

    ``operands`` tells which operands are the same value.
    """
    plan = _Plan(list(shapes))
    top = _powers(plan, operands, range(numerators))
    bottom = _powers(plan, operands, range(numerators, len(operands)))
    groups: dict[Shape, _Group] = {}
    for part in [(factor, None) for factor in top] + [(None, factor) for factor in bottom]:
        shape = plan.shapes[next(factor for factor in part if factor is not None)]
        groups[shape] = _joined(plan, groups.get(shape, (None, None)), part, "mul")
    total = _smallest_first(plan, groups, "mul", "div")
    if total[0] is None:
        assert total[1] is not None
        plan.add("reciprocal", total[1], None)
    else:
        _resolved(plan, total, "div")
    return tuple(plan.steps)


_Group = tuple[int | None, int | None]
"""What has been added (or multiplied), and what is still to be subtracted (or divided by)."""


def _joined(plan: _Plan, left: _Group, right: _Group, op: str) -> _Group:
    above, below = (
        first if second is None else second if first is None else plan.add(op, first, second)
        for first, second in zip(left, right, strict=True)
    )
    return above, below


def _resolved(plan: _Plan, group: _Group, inverse: str) -> _Group:
    above, below = group
    return group if above is None or below is None else (plan.add(inverse, above, below), None)


def _smallest_first(plan: _Plan, groups: dict[Shape, _Group], op: str, inverse: str) -> _Group:
    """Combine the groups of all shapes, always the two whose common shape is smallest."""
    waiting = dict(groups)
    while len(waiting) > 1:
        pairs = combinations(waiting, 2)
        _size, left, right = min(
            ((prod(broadcast_shape(*pair)), *pair) for pair in pairs), key=lambda entry: entry[0]
        )
        shape = broadcast_shape(left, right)
        parts = [
            _resolved(plan, waiting.pop(part), inverse) if part != shape else waiting.pop(part)
            for part in (left, right)
        ]
        joined = _joined(plan, parts[0], parts[1], op)
        waiting[shape] = _joined(plan, waiting.pop(shape, (None, None)), joined, op)
    return next(iter(waiting.values()))


@dataclass(slots=True)
class _Plan:
    shapes: list[Shape]
    steps: list[Step] = field(default_factory=list)

    def add(self, op: str, left: int, right: int | None) -> int:
        shape = self.shapes[left] if right is None else broadcast_shape(self.shapes[left], self.shapes[right])
        self.steps.append(Step(op, left, right, shape))
        self.shapes.append(shape)
        return len(self.shapes) - 1


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
