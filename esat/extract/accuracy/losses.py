"""What forms lose: bits of each value, in the program's format, that differ from the truth.

Every value is computed from the best forms of its operands, in :data:`TRIALS` trials: in the first as NumPy
computes, in the second with errors of one unit in the last place on results that were rounded, so that no
form looks good by luck. (Monte Carlo arithmetic: D. S. Parker, "Monte Carlo Arithmetic: exploiting
randomness in floating-point arithmetic", UCLA CSD-970002, 1997.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.references import References
from esat.extract.accuracy.stacks import IntArray, UnitGroup, narrowed
from esat.extract.accuracy.unit_evaluation import Evaluation, Found
from esat.extract.accuracy.unit_order import Order
from esat.extract.accuracy.units import Unit
from esat.extract.accuracy.wide_format.formats import widened
from esat.extract.accuracy.wide_format.operations import EXACT_AT, aligned, fitted, stepped
from esat.extract.verdicts import TOLERANCE
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]
FloatArray = NDArray[np.float64]

TRIALS = 2
REFUSED = 1e6
"""Bits that are added to the losses of a form that is refused: more than any form can lose."""


class UnitLosses(NamedTuple):
    """What units lose: the sums of :class:`Loss`, and the bits at each point, ``(units, points)``."""

    moderate: FloatArray
    extreme: FloatArray
    bits: NDArray[np.float32]


class FormValues(Evaluation):
    """Values of classes that have one form each, in the program's format.

    Parameters
    ----------
    terms, order, inputs, batch
        As of :class:`~esat.extract.accuracy.unit_evaluation.Evaluation`.
    drawn
        Values of the classes that are taken as given: at all points, and maybe in all trials.

    Attributes
    ----------
    value
        By stack, ``(classes, trials, points, ...)``.
    """

    def __init__(
        self,
        terms: TermGraph,
        order: Order,
        inputs: Mapping[int, Array],
        drawn: Mapping[int, Array],
        batch: int,
    ) -> None:
        super().__init__(terms, order, inputs, drawn, batch)
        numbering = order.numbering
        self.value: list[Array] = [
            np.zeros((count, TRIALS, batch, *shape), dtype)
            for shape, dtype, count in zip(numbering.shapes, numbering.dtypes, numbering.counts, strict=True)
        ]
        for klass, values in drawn.items():
            stack, row = numbering.stack[klass], numbering.row[klass]
            self.value[stack][row] = values
            self.known[stack][row] = True

    def value_of(self, klass: int) -> Array | None:
        """The value of a class, ``(trials, points, ...)``; None where it is unknown."""
        stack, row = self._numbering.stack[klass], self._numbering.row[klass]
        return self.value[stack][row] if stack >= 0 and self.known[stack][row] else None

    def _leaves(self, group: UnitGroup, values: Array, rounded: NDArray[np.bool_]) -> Found:
        return (np.broadcast_to(values[:, None], (len(values), TRIALS, *values.shape[1:])),)

    def _computed(self, group: UnitGroup) -> Found:
        shape, dtype = self._numbering.shapes[group.result], self._numbering.dtypes[group.result]
        count, example, operation = len(group.units), group.example, group.operation
        assert operation is not None
        xs = [
            self.value[stack][rows].reshape(count * TRIALS, self._batch, *self._numbering.shapes[stack])
            for stack, rows in group.operands
        ]
        if example.steps:
            value = _stepped(group.members, aligned(xs))
        else:
            value = operation.own(xs)
            if operation.rounds:
                value = _disturbed(example.name, xs, value if value.flags.owndata else value.copy())
        value = fitted(value.astype(dtype, copy=False), shape)
        return (value.reshape(count, TRIALS, self._batch, *shape),)

    def _take(self, group: UnitGroup, found: Found) -> IntArray:
        self.value[group.result][group.rows], self.known[group.result][group.rows] = found[0], True
        members: IntArray = self._numbering.members[group.result][group.rows]
        return members


class Losses(FormValues):
    """Values of the best forms, and what each form loses.

    Parameters
    ----------
    terms, order, inputs, drawn, batch
        As of :class:`FormValues`.
    references
        What is compared with.
    judged_as
        For values that are not those of classes: the stack and row of the class that each of them, by stack
        and row, is compared with; a row of -1 stands for none.
    is_contested
        By stack, which values are judged. Others count as right.

    Attributes
    ----------
    loss
        What each unit loses, from the best forms of its operands; NaN where it is not known.
    """

    def __init__(
        self,
        terms: TermGraph,
        order: Order,
        inputs: Mapping[int, Array],
        drawn: Mapping[int, Array],
        batch: int,
        references: References,
        is_contested: Sequence[NDArray[np.bool_]],
        judged_as: Sequence[tuple[int, IntArray]] | None = None,
    ) -> None:
        super().__init__(terms, order, inputs, drawn, batch)
        self._penalties = np.zeros(len(order.units))
        numbering = order.numbering
        self._references = references
        self._judged_as = judged_as or [(stack, np.arange(n)) for stack, n in enumerate(numbering.counts)]
        self._is_contested = is_contested
        self._score: list[FloatArray] = [np.full(count, np.inf) for count in numbering.counts]
        self._best: list[IntArray] = [np.full(count, -1) for count in numbering.counts]
        count = len(order.units)
        moderate, extreme = (np.full(count, np.nan) for _ in range(2))
        self.loss = UnitLosses(moderate, extreme, np.zeros((count, batch), np.float32))

    def refuse(self, units: Collection[int]) -> None:
        """Let units be the best of their classes only where all of these are refused."""
        self._penalties[list(units)] = REFUSED
        classes = {self.order.units[number].result for number in units}
        for klass in classes:
            stack, row = self._numbering.stack[klass], self._numbering.row[klass]
            self._score[stack][row], self._best[stack][row] = np.inf, -1
        self.run_again(
            number
            for number, unit in enumerate(self.order.units)
            if unit.result in classes and self.order.levels[number] >= 0
        )

    def chosen(self) -> list[int]:
        """The units that compute the best forms, of each class that has one."""
        return [int(unit) for best in self._best for unit in best if unit >= 0]

    def bits_of(self, klass: int) -> FloatArray | None:
        """Bits that the best form of a class loses at each point, of its worst element; None if unknown."""
        value = self.value_of(klass)
        if value is None:
            return None
        stack, row = self._numbering.stack[klass], self._numbering.row[klass]
        judge, rows = self._judged_as[stack]
        if rows[row] < 0:
            return None
        with quiet():
            bits = self._references.bits(judge, rows[row : row + 1], value[None])
        found: FloatArray = bits[0]
        return found

    def _leaves(self, group: UnitGroup, values: Array, rounded: NDArray[np.bool_]) -> Found:
        return self._compared(group, *super()._leaves(group, values, rounded))

    def _computed(self, group: UnitGroup) -> Found:
        return self._compared(group, *super()._computed(group))

    def _compared(self, group: UnitGroup, value: Array) -> Found:
        """Values, and unless none of them is judged, their losses at moderate and at extreme points."""
        contested = self._is_contested[group.result][group.rows]
        if not contested.any():
            return (value,)
        judge, judge_rows = self._judged_as[group.result]
        against = judge_rows[group.rows]
        moderate, extreme = (np.where(contested & (against < 0), np.nan, 0.0) for _ in range(2))
        places = np.flatnonzero(contested & (against >= 0))
        bits = self._references.bits(judge, against[places], value[narrowed(places)])
        moderate[places], extreme[places] = self._references.loss(judge, bits)
        self.loss.bits[group.units[places]] = bits
        return value, moderate, extreme

    def _take(self, group: UnitGroup, found: Found) -> IntArray:
        """Let classes have the values of forms that lose less than theirs, as far as that matters."""
        number, rows = group.result, group.rows
        score, best = self._score[number], self._best[number]
        members: IntArray = self._numbering.members[number][rows]
        if len(found) == 1:
            self.loss.moderate[group.units] = self.loss.extreme[group.units] = 0.0
            best[rows], score[rows] = group.units, 0.0
            self.value[number][rows], self.known[number][rows] = found[0], True
            return members
        value, moderate, extreme = found
        moderate = moderate + self._penalties[group.units]
        self.loss.moderate[group.units], self.loss.extreme[group.units] = moderate, extreme
        lost = np.where(np.isnan(moderate), np.inf, moderate)
        is_best, is_first = best[rows] == group.units, best[rows] < 0
        gain = score[rows] - lost
        better = (gain > TOLERANCE / 4) | is_first
        # What is not judged has but one form: its users see another value whenever it is computed anew.
        moved = better | (is_best & ((np.abs(gain) > TOLERANCE / 4) | ~self._is_contested[number][rows]))
        taken = better | is_best
        if not taken.any():
            return members[:0]
        if not taken.all():
            places = np.flatnonzero(taken)
            rows, value, lost = self._numbering.row[members[places]], value[places], lost[places]
            best[rows] = group.units[places]
        else:
            best[rows] = group.units
        self.value[number][rows], score[rows], self.known[number][rows] = value, lost, True
        changed: IntArray = members[moved]
        return changed


def _stepped(members: Sequence[Unit], xs: Sequence[Array]) -> Array:
    """Sums or products by their steps, those with the same ones together."""
    places: dict[object, list[int]] = {}
    for place, unit in enumerate(members):
        places.setdefault(unit.steps, []).append(place)
    if len(places) == 1:
        return stepped(members[0], xs, _disturbed)
    stacks = [x.reshape(len(members), TRIALS, *x.shape[1:]) for x in xs]
    found: list[Array] = [np.empty(0)] * len(members)
    for some in places.values():
        parts = [stack[some].reshape(-1, *stack.shape[2:]) for stack in stacks]
        value = stepped(members[some[0]], parts, _disturbed)
        for place, one in zip(some, value.reshape(-1, TRIALS, *value.shape[1:]), strict=True):
            found[place] = one
    return np.concatenate(found)


def _disturbed(name: str, operands: Sequence[Array], value: Array) -> Array:
    """A result with errors on its second trials where it was rounded: at most one unit in the last place.

    The array may be changed: it is new.
    """
    if value.dtype.kind not in "fc":
        return value
    part = value[1::TRIALS]
    name = name.capitalize()  # an op within a sum of several operands has the errors of the op alone
    factor = _factors(name, part)
    exact = _EXACTNESS.get(name)
    if exact is not None and value.dtype.kind == "f":
        factor = np.where(exact(*(_second(x, value.ndim) for x in operands), part), 1, factor)
    part *= factor
    return value


def _second(x: Array, rank: int) -> Array:
    part = x[1::TRIALS]
    return part if part.ndim == rank else part.reshape(*part.shape, *[1] * (rank - part.ndim))


def _factors(name: str, value: Array) -> Array:
    """For each number one, or a number next to it.

    Which of them follows from the number, the operation, and the place among points and elements, by a
    multiplicative hash (D. E. Knuth, "The Art of Computer Programming", volume 3, section 6.4): so an error
    does not depend on what is evaluated beside it, and those of two numbers are not alike.

    Parameters
    ----------
    value
        ``(e-nodes, points, ...)``
    """
    dtype = np.empty(0, value.dtype).real.dtype
    size = dtype.itemsize
    bits = np.ascontiguousarray(value).view(dtype).view(f"u{size}")
    if value.dtype.kind == "c":
        bits = bits[..., ::2] + bits[..., 1::2]
    wide = bits.astype(np.uint64)
    wide += _places(name, prod(wide.shape[1:])).reshape(wide.shape[1:])
    wide *= _SCATTERING
    factors: Array = _kept_factors(dtype)[(wide >> np.uint64(54)).astype(np.intp)]
    return factors


@cache
def _places(name: str, count: int) -> Array:
    """What tells the places of an operation from others."""
    return np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B1) + np.uint64(crc32(name.encode()) << 24)


_SCATTERING = np.uint64(0x9E3779B97F4A7C15)
"""2**64 by the golden ratio, odd."""


@cache
def _kept_factors(dtype: np.dtype[Any]) -> Array:
    errors = np.resize([-1, 0, 1], 1024).astype(dtype)
    factors: Array = dtype.type(1) + np.finfo(dtype).eps * errors
    return factors


def _sum_is_exact(x: Array, y: Array, value: Array) -> Array:
    """Whether a sum of two numbers was not rounded (Knuth's two-sum)."""
    part = value - x
    found: Array = (x - (value - part)) + (y - part) == 0
    return found


def _product_is_exact(x: Array, y: Array, value: Array) -> Array:
    exact: Array = widened(x) * widened(y) == value
    return exact


def _is_at(numbers: tuple[float, ...]) -> Callable[..., Array]:
    def is_at(x: Array, *_: Array) -> Array:
        found: Array = np.logical_or.reduce([x == number for number in numbers])
        return found

    return is_at


_EXACTNESS: Mapping[str, Callable[..., Array]] = {
    "Add": _sum_is_exact,
    "Sub": lambda x, y, value: _sum_is_exact(x, -y, value),
    "Mul": _product_is_exact,
    "Sqr": lambda x, value: _product_is_exact(x, x, value),
    **{name: _is_at(numbers) for name, numbers in EXACT_AT.items()},
}
