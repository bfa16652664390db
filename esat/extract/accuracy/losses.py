"""What forms lose: bits of each value, in the program's format, that differ from the truth.

Every value is computed from the best forms of its operands, in :data:`TRIALS` trials: in the first as NumPy
computes, in the second with errors of one unit in the last place on results that were rounded, so that no
form looks good by luck. (Monte Carlo arithmetic: D. S. Parker, "Monte Carlo Arithmetic: exploiting
randomness in floating-point arithmetic", UCLA CSD-970002, 1997.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import cache
from math import prod
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.sample import Sample
from esat.extract.accuracy.stacks import IntArray, Numbering, UnitGroup, narrowed
from esat.extract.accuracy.truths import Truths
from esat.extract.accuracy.unit_evaluation import Evaluation, Found
from esat.extract.accuracy.unit_order import Order
from esat.extract.accuracy.units import Unit
from esat.extract.accuracy.wide_format.formats import widened
from esat.extract.accuracy.wide_format.operations import aligned, fitted, stepped
from esat.extract.verdicts import TOLERANCE
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]
FloatArray = NDArray[np.float64]

TRIALS = 2
DEAD_ZONE = 3.0
"""Bits at one point that nobody minds."""
NOTICED = 10.0
"""Bits beyond it from which on each counts fully; fewer count by their square, so that what the order of
operations gives or takes does not add up over the points."""
_LEAST = float(np.finfo(np.float64).tiny)
WORST = 60.0
"""Bits of Inf or NaN instead of a number."""
WRONG = 59.0
"""The most bits of any other number instead of one: Inf and NaN are worse."""
REFUSED = 1e6
"""Bits that are added to the losses of a form that is refused: more than any form can lose."""


HALF_KNOWN = 2.0**-26
"""Relative bound up to which a form is told to be no number where the value is one: functions that exist in
float64 only are not known to their last places."""


class Loss(NamedTuple):
    """Bits that values lose beyond the dead zone, summed over moderate and over extreme points."""

    moderate: FloatArray
    extreme: FloatArray


class UnitLosses(NamedTuple):
    """What units lose: the sums of :class:`Loss`, and the bits at each point, ``(units, points)``."""

    moderate: FloatArray
    extreme: FloatArray
    bits: NDArray[np.float32]


class _Reference(NamedTuple):
    """What the values of one stack are compared with.

    The truth in the format (zero where it is infinite), what is missing to it, one over its last place; where
    it is known well enough, where only so far that it is a number, and where it is infinite; of each class,
    whether all of it is known and finite; and how many bits of float64 one bit of the format stands for.
    """

    rounded: Array
    rest: Array
    scale: Array
    judged: NDArray[np.bool_]
    roughly: NDArray[np.bool_] | None
    infinite: Array
    is_plain: NDArray[np.bool_]
    weight: float


class References:
    """What the values of each class are compared with.

    Parameters
    ----------
    truths
        The truths.
    numbering
        Where they lie.
    scales
        What their errors are measured by; see :func:`~esat.extract.accuracy.scales.scales_of`.
    sample
        Which points are extreme, and which tell forms that fail only.
    wanted
        bool ``(classes,)``: the classes that something is compared with.
    """

    def __init__(
        self,
        truths: Truths,
        numbering: Numbering,
        scales: Sequence[Array],
        sample: Sample,
        wanted: NDArray[np.bool_],
    ) -> None:
        self._is_calm = ~sample.is_extreme & ~sample.is_exact
        self._calm = self._is_calm.astype(np.float64)
        self._wild = (sample.is_extreme & ~sample.is_exact).astype(np.float64)
        self._of: list[_Reference] = []
        self._place: list[IntArray] = []
        stacks = zip(
            truths.value, truths.bound, scales, truths.known, numbering.dtypes, numbering.members, strict=True
        )
        with quiet():
            for value, bound, scale, known, dtype, members in stacks:
                chosen = wanted[members]
                self._place.append(np.where(chosen, np.cumsum(chosen) - 1, -1))
                rows = narrowed(np.flatnonzero(chosen))
                judged = known[rows].reshape(-1, *[1] * (value.ndim - 1)) & ~np.isnan(value[rows])
                # Where all inputs are large, forms may differ in what is out of range.
                top = sample.is_topmost.reshape(-1, *[1] * (value.ndim - 2))
                if dtype.kind in "fc":
                    judged &= ~top | (np.abs(value[rows]) <= np.finfo(dtype).max)
                self._of.append(_reference(value[rows], bound[rows], scale[rows], judged, dtype))

    def bits(self, stack: int, rows: Any, values: Array) -> FloatArray:
        """Bits that e-nodes lose at each point, ``(e-nodes, points)``: of the worst trial and element.

        Parameters
        ----------
        rows
            Of classes that are wanted.
        values
            ``(e-nodes, trials, points, ...)``
        """
        of = self._of[stack]
        rows = narrowed(self._place[stack][rows])
        rounded = of.rounded[rows]
        if values.dtype.kind in "biu":
            wrong = (values[:, 0] != rounded) & of.judged[rows]
            return np.where(wrong.reshape(*wrong.shape[:2], -1).any(axis=2), WORST, 0.0)
        difference = (values - rounded[:, None]).astype(of.rest.dtype, copy=False)
        difference += of.rest[rows][:, None]
        gap = np.abs(difference)
        if of.roughly is not None:
            gap[of.roughly[rows][:, None] & np.isfinite(gap)] = 0
        gap *= of.scale[rows][:, None]
        if not of.is_plain[rows].all():
            infinite = of.infinite[rows][:, None]
            gap = np.where(infinite != 0, np.where(values == infinite, 0.0, np.inf), gap)
            gap = np.where(of.judged[rows][:, None], gap, 0.0)
        worst = gap.reshape(*gap.shape[:3], -1).max(axis=(1, 3))
        bits = np.log2(worst + 1.0)
        # What is no number is Inf or NaN instead of one.
        return np.where(np.isfinite(bits), np.minimum(bits, WRONG), WORST)

    def points(self, stack: int, row: int) -> NDArray[np.bool_]:
        """The moderate points at which all elements of a class are known."""
        judged = self._of[stack].judged[self._place[stack][row]]
        found: NDArray[np.bool_] = judged.reshape(len(judged), -1).all(axis=1) & self._is_calm
        return found

    def is_finite(self, stack: int, row: int) -> NDArray[np.bool_]:
        """The points at which all elements of a class are numbers of the format."""
        infinite = self._of[stack].infinite[self._place[stack][row]]
        found: NDArray[np.bool_] = (infinite.reshape(len(infinite), -1) == 0).all(axis=1)
        return found

    def over(self, stack: int, bits: FloatArray) -> FloatArray:
        """What counts of so many bits lost at each point: those beyond the dead zone, of few the square."""
        over = np.maximum(bits - DEAD_ZONE, 0.0)
        over = np.minimum(over, over * over * (1.0 / NOTICED)) * self._of[stack].weight
        return np.minimum(over, WORST)

    def loss(self, stack: int, bits: FloatArray) -> Loss:
        """The losses of e-nodes that lose so many bits at each point."""
        over = self.over(stack, bits)
        return Loss(over @ self._calm, over @ self._wild)

    def at(self, points: NDArray[np.bool_]) -> References:
        """The same, of which only some points count."""
        found = copy(self)
        found._calm, found._wild = self._calm * points, self._wild * points
        return found


def _reference(value: Array, bound: Array, scale: Array, judged: Array, dtype: np.dtype[Any]) -> _Reference:
    axes = tuple(range(1, value.ndim))
    if dtype.kind in "biu":
        judged = judged & (bound <= 0.1)
        rounded = np.where(judged, value, 0).real.astype(dtype)
        whole = np.asarray(judged.all(axis=axes))
        return _Reference(rounded, rounded, rounded, judged, None, rounded, whole, 1.0)
    rounded = value.astype(dtype)
    finite = np.isfinite(rounded)
    most = np.finfo(dtype).max
    # What is not in range may overflow in one order of its additions, and in another not.
    in_range = np.isfinite(scale) & (scale <= np.maximum(np.abs(value), most))
    size = np.maximum(np.abs(np.where(finite, rounded, 1)), np.where(scale <= most, scale, 0))
    # What is smaller has no inverse.
    ulp = np.maximum(np.spacing(size.astype(most.dtype)).astype(np.float64), _LEAST)
    rest = (rounded - value).astype(np.complex128 if dtype.kind == "c" else np.float64)
    known = bound <= np.maximum(4 * ulp, HALF_KNOWN * np.abs(value))
    judged &= np.where(finite, known, (np.abs(value) - bound > most) | (bound == 0)) & in_range
    roughly = judged & finite & (bound > 4 * ulp)
    return _Reference(
        np.where(finite, rounded, 0).astype(dtype),
        np.where(finite, rest, 0),
        1 / ulp,
        judged,
        roughly if roughly.any() else None,
        np.where(finite, 0, rounded).astype(dtype),
        (judged & finite).all(axis=axes),
        (52 - DEAD_ZONE) / (int(np.finfo(dtype).nmant) - DEAD_ZONE),
    )


@cache
def fails_beyond(dtype: np.dtype[Any]) -> float:
    """Bits beyond which a form fails at a point where another is right, however good it is elsewhere.

    An exponential of a rounded argument, as ``sigmoid(x - y)`` for ``exp(x) / (exp(x) + exp(y))``, loses as
    many as the largest argument has: 9.5 of float64's, 6.5 of float32's, 3.5 of float16's.
    """
    most = np.finfo(dtype).max if dtype.kind in "fc" else np.finfo(np.float64).max
    return float(np.log2(np.log(np.float64(most)))) + 0.5


class Losses(Evaluation):
    """Values of the best forms, and what each form loses.

    Parameters
    ----------
    terms, order, inputs, batch
        As of :class:`~esat.extract.accuracy.unit_evaluation.Evaluation`.
    drawn
        Values of the classes that are taken as given: at all points, and maybe in all trials.
    references
        What is compared with.
    judged_as
        For values that are not those of classes: the stack and row of the class that each of them, by stack
        and row, is compared with; a row of -1 stands for none.
    is_contested
        By stack, which values are judged. Others count as right.

    Attributes
    ----------
    value
        By stack, ``(classes, trials, points, ...)``.
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
        super().__init__(terms, order, inputs, batch)
        self._penalties = np.zeros(len(order.units))
        numbering = order.numbering
        self._references = references
        self._judged_as = judged_as or [(stack, np.arange(n)) for stack, n in enumerate(numbering.counts)]
        self._is_contested = is_contested
        self.value: list[Array] = []
        self._score: list[FloatArray] = []
        self._best: list[IntArray] = []
        for shape, dtype, count in zip(numbering.shapes, numbering.dtypes, numbering.counts, strict=True):
            self.value.append(np.zeros((count, TRIALS, batch, *shape), dtype))
            self._score.append(np.full(count, np.inf))
            self._best.append(np.full(count, -1))
        for klass, values in drawn.items():
            stack, row = numbering.stack[klass], numbering.row[klass]
            self.value[stack][row] = values
            self.known[stack][row] = True
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

    def value_of(self, klass: int) -> Array | None:
        """The value of the best form of a class, ``(trials, points, ...)``; None where it is unknown."""
        stack, row = self._numbering.stack[klass], self._numbering.row[klass]
        return self.value[stack][row] if stack >= 0 and self.known[stack][row] else None

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
        return self._compared(
            group, np.broadcast_to(values[:, None], (len(values), TRIALS, *values.shape[1:]))
        )

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
        return self._compared(group, value.reshape(count, TRIALS, self._batch, *shape))

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


_EXACTNESS: Mapping[str, Callable[..., Array]] = {
    "Add": _sum_is_exact,
    "Sub": lambda x, y, value: _sum_is_exact(x, -y, value),
    "Mul": _product_is_exact,
    "Sqr": lambda x, value: _product_is_exact(x, x, value),
}
