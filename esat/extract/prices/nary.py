"""How an n-ary sum or product is computed by binary ops.

Cost model and decoder share this plan, so that what is priced is what is built: operands of one shape
are combined first, then the two shapes with the smallest common one, and so on (scalars before arrays,
rows before matrices); repeated factors become powers by squaring, or by ``pow`` where squaring would round
often; and where a result grows, what has been divided by is divided by at once. Operands that the user had
put together stay together, in the order they were written in, where that takes no more work; differences
always do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import fsum, prod
from typing import NamedTuple

from esat.egraph.language.terms import Joins
from esat.graph.registry import op_named
from esat.ops.elementwise.whole_power import whole_power_flops

Shape = tuple[float, ...]
Counts = tuple[tuple[tuple[Shape, int], int], ...]
"""How many different factors there are of each shape and exponent; the exponent of a term is 1."""


LARGEST_SQUARED = 8
"""Largest exponent of a power that is made of squares and products, each of which rounds."""

LARGEST_POWER = 127
"""Largest exponent of a power that ``pow`` computes: every dtype can hold it."""


class PlanStep(NamedTuple):
    """One op of a plan. ``left`` and ``right`` count operands first and then earlier steps.

    The right operand of ``pow`` is the number ``exponent``.
    """

    op: str
    left: int
    right: int | None
    shape: Shape
    exponent: int = 0


def broadcast_shape(left: Shape, right: Shape) -> Shape:
    """Shape of an elementwise result; a scalar has the empty shape and fits any rank."""
    if left == right or not left or not right:
        return left or right
    return tuple(max(pair) if 0 not in pair else 0 for pair in zip(left, right, strict=True))


def plan_sum(shapes: Sequence[Shape], positives: int) -> tuple[PlanStep, ...]:
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


def plan_product(operands: Sequence[int], shapes: Sequence[Shape], numerators: int) -> tuple[PlanStep, ...]:
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


def plan_divisions(shapes: Sequence[Shape], numerators: int) -> tuple[PlanStep, ...]:
    """Steps that divide by one divisor after another, a numerator by each as long as there are some.

    ``a * b / (c * d)`` is ``(a / c) * (b / d)``: in range where the divisors are as large as the numerators.
    """
    plan = _Plan(list(shapes))
    above, below = list(range(numerators)), list(range(numerators, len(shapes)))
    pairs = min(len(above), len(below))
    quotients = [plan.add("div", *pair) for pair in zip(above, below, strict=False)]
    rest = below[pairs:]
    first, *others = [*quotients, *above[pairs:]] or [plan.add("reciprocal", rest.pop(0), None)]
    for other in others:
        first = plan.add("mul", first, other)
    for divisor in rest:
        first = plan.add("div", first, divisor)
    return tuple(plan.steps)


def plan_written(
    constructor: str,
    operands: Sequence[int],
    shapes: Sequence[Shape],
    positives: int,
    joins: Joins,
    *,
    strict: bool = False,
) -> tuple[PlanStep, ...]:
    """As :func:`plan_sum` and :func:`plan_product`, with operands put together as the user did.

    A join that would take more work than there is without it is refused, and so are those it is part of. Of
    sums, a join that is a difference is never refused: what cancels has to cancel before something small is
    added, so that ``(x - max(x)) + 1`` keeps the 1 where ``x`` is huge. A strict plan refuses none, and
    divides by one divisor after another what nobody put together: ``x / y / y`` does not become
    ``x / (y * y)``, which may overflow.
    """
    first: dict[int, int] = {}
    same = tuple([first.setdefault(operand, place) for place, operand in enumerate(operands)])
    return _plan_of(constructor, same, tuple(shapes), positives, tuple(joins), strict)


@lru_cache(maxsize=4096)
def _plan_of(
    constructor: str,
    operands: tuple[int, ...],
    shapes: tuple[Shape, ...],
    positives: int,
    joins: tuple[tuple[int, int], ...],
    strict: bool,
) -> tuple[PlanStep, ...]:
    """A plan for operands that go by the first place of each: sums and products of a graph are much alike."""
    if not joins and not (strict and constructor == "NaryProd"):
        if constructor == "NarySum":
            return plan_sum(shapes, positives)
        return plan_product(operands, shapes, positives)
    if positives == len(operands) == 2 and operands[0] != operands[1]:
        left, right = joins[0]
        op = "add" if constructor == "NarySum" else "mul"
        return (PlanStep(op, left, right, broadcast_shape(shapes[left], shapes[right])),)
    plan = _WrittenPlan(constructor, operands, shapes, positives, strict)
    for left, right in joins:
        plan.join(left, right)
    return plan.finish()


def plan_with_numbers_last(
    constructor: str,
    operands: Sequence[int],
    shapes: Sequence[Shape],
    positives: int,
    numbers: Sequence[int],
) -> tuple[PlanStep, ...]:
    """As :func:`plan_sum` and :func:`plan_product`, where all but the operands at ``numbers`` come first.

    For numbers, of one element each, that could not be made one: their product is outside of the range of
    their dtype, as ``x * 1e-200 * 1e-200`` need not be, or their sum loses one of them, as ``x - 1e17 + 1``
    does not at ``x = 1e17``. Factors that are as often there as a number are scaled by it first:
    ``(x * 1e200)**2`` is in range where ``x**2`` is not.
    """
    plan = _Plan(list(shapes))
    is_sum = constructor == "NarySum"
    powers, scaled = ({}, set[int]()) if is_sum else _scaled_powers(plan, operands, positives, numbers)
    others = [place for place in range(len(operands)) if place not in scaled and place not in numbers]
    values = sorted((*others, *powers), key=lambda value: not powers.get(value, value < positives))
    above = sum(powers.get(value, value < positives) for value in values)
    of_values = [plan.shapes[value] for value in values]
    if is_sum:
        first, add, subtract = plan_sum(of_values, above), "add", "sub"
    else:
        names = [value if value in powers else -1 - operands[value] for value in values]
        first = plan_product(names, of_values, above)
        add, subtract = "mul", "div"
    for step in first:
        right = None if step.right is None else values[step.right]
        values.append(plan.add(step.op, values[step.left], right, step.exponent))
    last = values[-1]
    for place in numbers:
        if place not in scaled:
            last = plan.add(add if place < positives else subtract, last, place)
    return tuple(plan.steps)


def _scaled_powers(
    plan: _Plan, operands: Sequence[int], positives: int, numbers: Sequence[int]
) -> tuple[dict[int, bool], set[int]]:
    """Powers of factors times a number, whether each is a numerator, and the places of what is in them."""
    powers: dict[int, bool] = {}
    scaled: set[int] = set()
    for is_above, side in ((True, range(positives)), (False, range(positives, len(operands)))):
        places: dict[int, list[int]] = {}
        for place in side:
            places.setdefault(operands[place], []).append(place)
        factors = [found for found in places.values() if found[0] not in numbers]
        for number in (found for found in places.values() if found[0] in numbers and len(found) > 1):
            factor = next((one for one in factors if len(one) == len(number)), None)
            if factor is not None:
                factors.remove(factor)
                base = plan.add("mul", factor[0], number[0])
                powers[_power(plan, base, len(number))] = is_above
                scaled.update(factor, number)
    return powers, scaled


def joins_numbers(steps: Sequence[PlanStep], numbers: Collection[int], operands: int) -> bool:
    """Whether steps put numbers together, which are among so many operands."""
    known = set(numbers)
    for place, step in enumerate(steps, operands):
        if step.left in known and (step.right is None or step.right in known):
            known.add(place)
            if step.right is not None:
                return True
    return False


def plan_counts(
    constructor: str, operands: Sequence[int], shapes: Sequence[Shape], positives: int
) -> tuple[Counts, Counts]:
    """All that the ops of a plan depend on: what is added (or multiplied), and what is subtracted."""
    parts = slice(positives), slice(positives, None)
    above, below = (_counts(constructor, operands[part], shapes[part]) for part in parts)
    return above, below


def _counts(constructor: str, operands: Sequence[int], shapes: Sequence[Shape]) -> Counts:
    counts: dict[tuple[Shape, int], int] = {}
    exponents = dict.fromkeys(operands, 0)
    if constructor == "NarySum" or len(exponents) == len(operands):
        for shape in shapes:
            counts[shape, 1] = counts.get((shape, 1), 0) + 1
    else:
        for operand in operands:
            exponents[operand] += 1
        for operand, shape in dict(zip(operands, shapes, strict=True)).items():
            key = shape, exponents[operand]
            counts[key] = counts.get(key, 0) + 1
    return tuple(sorted(counts.items()))


def plan_ops(constructor: str, above: Counts, below: Counts) -> Iterator[tuple[str, Shape, int, int]]:
    """The ops of a plan, each with the shape of its results, how often it is done, and its exponent."""
    op = "add" if constructor == "NarySum" else "mul"
    present = []
    for counts in (above, below):
        factors: dict[Shape, int] = {}
        for (shape, exponent), count in counts:
            factors[shape] = factors.get(shape, 0) + count
            if is_pow(exponent):
                yield "pow", shape, count, exponent
            elif exponent > 1:
                yield "sqr", shape, count * (exponent.bit_length() - 1), 0
                yield "mul", shape, count * (exponent.bit_count() - 1), 0
        present.append(tuple(factors))
        for shape, count in factors.items():
            yield op, shape, count - 1, 0
    for step in meetings(constructor, *present):
        yield step.op, step.shape, 1, 0


def is_pow(exponent: int) -> bool:
    """Whether ``pow`` computes a power with this exponent, and not squares and products."""
    return LARGEST_SQUARED < exponent <= LARGEST_POWER


@lru_cache(maxsize=4096)
def meetings(constructor: str, above: tuple[Shape, ...], below: tuple[Shape, ...]) -> tuple[PlanStep, ...]:
    """Steps that are left once all operands of one shape and sign are one."""
    shapes = above + below
    if constructor == "NarySum":
        return plan_sum(shapes, len(above))
    return plan_product(range(len(shapes)), shapes, len(above))


_Group = tuple[int | None, int | None]
"""What has been added (or multiplied), and what is still to be subtracted (or divided by)."""


def _joined(plan: _Plan, left: _Group, right: _Group, op: str) -> _Group:
    return _together(plan, left[0], right[0], op), _together(plan, left[1], right[1], op)


def _together(plan: _Plan, left: int | None, right: int | None, op: str) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return plan.add(op, left, right)


def _resolved(plan: _Plan, group: _Group, inverse: str) -> _Group:
    above, below = group
    return group if above is None or below is None else (plan.add(inverse, above, below), None)


def _smallest_first(plan: _Plan, groups: dict[Shape, _Group], op: str, inverse: str) -> _Group:
    """Combine the groups of all shapes, always the two whose common shape is smallest.

    Ties do not depend on the order of the operands, so what is priced is known from how many there are of
    each shape.
    """
    waiting = {shape: groups[shape] for shape in sorted(groups, reverse=True)}
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
    steps: list[PlanStep] = field(default_factory=list)

    def add(self, op: str, left: int, right: int | None, exponent: int = 0) -> int:
        shape = self.shapes[left] if right is None else broadcast_shape(self.shapes[left], self.shapes[right])
        self.steps.append(PlanStep(op, left, right, shape, exponent))
        self.shapes.append(shape)
        return len(self.shapes) - 1


def _powers(plan: _Plan, operands: Sequence[int], positions: range) -> list[int]:
    counts = Counter(operands[position] for position in positions)
    first = {operands[position]: position for position in reversed(positions)}
    return [_power(plan, first[value], count) for value, count in counts.items()]


def _power(plan: _Plan, base: int, exponent: int) -> int:
    """``base ** exponent`` by repeated squaring, or by ``pow``, which does the same and rounds once."""
    if is_pow(exponent):
        return plan.add("pow", base, None, exponent)
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


class _Part(NamedTuple):
    """A value that is still to be combined. ``name`` tells which values are the same."""

    value: int
    above: bool
    name: int


class _WrittenPlan:
    """A plan under construction: parts, which are operands first and then what joins made of them."""

    def __init__(
        self,
        constructor: str,
        operands: Sequence[int],
        shapes: Sequence[Shape],
        positives: int,
        strict: bool = False,
    ) -> None:
        self._is_sum = constructor == "NarySum"
        self._strict = strict
        self._plan = _Plan(list(shapes))
        self._parts: list[_Part | None] = [
            _Part(value, value < positives, name) for value, name in enumerate(operands)
        ]
        self._all_differ = len(set(operands)) == len(operands)
        self._one_shape = len(set(shapes)) == 1

    def join(self, left: int, right: int) -> None:
        """Put two parts together, which makes a new part, unless that is refused."""
        first, second = self._parts[left], self._parts[right]
        if first is None or second is None:
            self._parts.append(None)
            return
        pays = self._pays(first, second)
        before = work_of(self._rest()) if pays is None else 0.0
        self._parts[left] = self._parts[right] = None
        if second.above and not first.above and not any(part and part.above for part in self._parts):
            first, second = second, first  # turned around, the difference needs no change of its sign
        self._parts.append(self._joined(first, second))
        if pays is None:
            step = self._plan.steps[-1]
            pays = step.op == "sub" or work_of([step, *self._rest()]) <= before * (1.0 + _ROUNDING)
        if not pays:
            self._plan.steps.pop()
            self._plan.shapes.pop()
            self._parts[left], self._parts[right], self._parts[-1] = first, second, None

    def finish(self) -> tuple[PlanStep, ...]:
        """The whole plan: what is left is combined as if it had not been written."""
        values = [part.value for part in self._ordered()]
        rest = self._rest()
        values += range(len(self._plan.shapes), len(self._plan.shapes) + len(rest))
        renumbered = (
            step._replace(left=values[step.left], right=None if step.right is None else values[step.right])
            for step in rest
        )
        return (*self._plan.steps, *renumbered)

    def _pays(self, first: _Part, second: _Part) -> bool | None:
        """Whether a join is to be, where that is seen at once: it takes no more work; else None."""
        if self._strict:
            return True
        if self._shape(first) != self._shape(second):
            return None
        if self._is_sum or (self._all_differ and first.above == second.above):
            return True  # every plan joins such parts
        if self._all_differ and self._one_shape:
            # One division is enough. There is none after this one if this is the last divisor.
            return sum(not part.above for part in self._parts if part) == 1
        return None

    def _joined(self, first: _Part, second: _Part) -> _Part:
        if first.above != second.above:
            value = self._plan.add("sub" if self._is_sum else "div", first.value, second.value)
        elif self._is_sum or first.name != second.name:
            value = self._plan.add("add" if self._is_sum else "mul", first.value, second.value)
        else:
            value = self._plan.add("sqr", first.value, None)
        return _Part(value, first.above, -value)

    def _shape(self, part: _Part) -> Shape:
        return self._plan.shapes[part.value]

    def _ordered(self) -> list[_Part]:
        """The parts that are left, those to be subtracted last."""
        return sorted((part for part in self._parts if part), key=lambda part: not part.above)

    def _rest(self) -> tuple[PlanStep, ...]:
        """Steps that combine what is left, with its own numbers."""
        parts = self._ordered()
        shapes, above = [self._shape(part) for part in parts], sum(part.above for part in parts)
        if self._is_sum:
            return plan_sum(shapes, above)
        if self._strict and len(parts) - above > 1:
            return plan_divisions(shapes, above)
        return plan_product([part.name for part in parts], shapes, above)


_ROUNDING = 1e-9
"""Share by which sums of the same prices may differ, added in another order."""


def work_of(steps: Sequence[PlanStep]) -> float:
    """Additions that a plan takes as long as."""
    return fsum(step_flops(step.op, step.exponent) * prod(step.shape) for step in steps)


def step_flops(op: str, exponent: int) -> float:
    """Additions an element that a step takes as long as."""
    return whole_power_flops(exponent) if exponent else float(getattr(op_named(op), "flops", 1.0))
