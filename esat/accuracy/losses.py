"""What forms lose: bits of each value, in the program's format, that differ from the truth.

Every value is computed from the best forms of its operands, in :data:`TRIALS` trials: in the first as NumPy
computes, in the second with errors of one unit in the last place on results that were rounded, so that no
form looks good by luck. (Monte Carlo arithmetic: D. S. Parker, "Monte Carlo Arithmetic: exploiting
randomness in floating-point arithmetic", UCLA CSD-970002, 1997.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.accuracy.operations import UNFIT, aligned, fitted, leaf_of, stepped
from esat.accuracy.stacks import Group, Grouping, Numbering, Schedule
from esat.accuracy.truths import Truths
from esat.accuracy.units import Unit
from esat.accuracy.wide import REAL
from esat.egraph.terms import TermGraph
from esat.extract.verdicts import TOLERANCE

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

    The truth in the format (zero where it is infinite), what is missing to it, one over its last place, where
    it is known well enough, where it is infinite; of each class, whether all of it is known and finite; and
    how many bits of float64 one bit of the format stands for.
    """

    rounded: Array
    rest: Array
    scale: Array
    judged: NDArray[np.bool_]
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
        What their errors are measured by; see :func:`~esat.accuracy.scales.scales_of`.
    is_extreme
        Which points are extreme.
    """

    def __init__(
        self, truths: Truths, numbering: Numbering, scales: Sequence[Array], is_extreme: NDArray[np.bool_]
    ) -> None:
        self.is_extreme = is_extreme
        self._calm, self._wild = (~is_extreme).astype(np.float64), is_extreme.astype(np.float64)
        self._of: list[_Reference] = []
        with np.errstate(all="ignore"):
            for value, bound, scale, known, dtype in zip(
                truths.value, truths.bound, scales, truths.known, numbering.dtypes, strict=True
            ):
                judged = known.reshape(-1, *[1] * (value.ndim - 1)) & ~np.isnan(value)
                self._of.append(_reference(value, bound, scale, judged, dtype))

    def bits(self, stack: int, rows: Any, values: Array) -> FloatArray:
        """Bits that e-nodes lose at each point, ``(e-nodes, points)``: of the worst trial and element.

        Parameters
        ----------
        values
            ``(e-nodes, trials, points, ...)``
        """
        of = self._of[stack]
        rounded = of.rounded[rows]
        if values.dtype.kind in "biu":
            wrong = (values[:, 0] != rounded) & of.judged[rows]
            return np.where(wrong.reshape(*wrong.shape[:2], -1).any(axis=2), WORST, 0.0)
        difference = (values - rounded[:, None]).astype(of.rest.dtype, copy=False)
        difference += of.rest[rows][:, None]
        gap = np.abs(difference)
        gap *= of.scale[rows][:, None]
        if not of.is_plain[rows].all():
            infinite = of.infinite[rows][:, None]
            gap = np.where(infinite != 0, np.where(values == infinite, 0.0, np.inf), gap)
            gap = np.where(of.judged[rows][:, None], gap, 0.0)
        worst = gap.reshape(*gap.shape[:3], -1).max(axis=(1, 3))
        bits = np.log2(worst + 1.0)
        return np.where(bits < WORST, bits, WORST)  # what is no number is Inf or NaN instead of one

    def points(self, stack: int, row: int) -> NDArray[np.bool_]:
        """The moderate points at which all elements of a class are known."""
        judged = self._of[stack].judged[row]
        found: NDArray[np.bool_] = judged.reshape(len(judged), -1).all(axis=1) & ~self.is_extreme
        return found

    def loss(self, stack: int, bits: FloatArray) -> Loss:
        """The losses of e-nodes that lose so many bits at each point."""
        over = np.maximum(bits - DEAD_ZONE, 0.0)
        over = np.minimum(over, over * over * (1.0 / NOTICED)) * self._of[stack].weight
        over = np.minimum(over, WORST)
        return Loss(over @ self._calm, over @ self._wild)


def _reference(value: Array, bound: Array, scale: Array, judged: Array, dtype: np.dtype[Any]) -> _Reference:
    axes = tuple(range(1, value.ndim))
    if dtype.kind in "biu":
        judged = judged & (bound <= 0.1)
        rounded = np.where(judged, value, 0).real.astype(dtype)
        return _Reference(rounded, rounded, rounded, judged, rounded, np.asarray(judged.all(axis=axes)), 1.0)
    rounded = value.astype(dtype)
    finite = np.isfinite(rounded)
    most = np.finfo(dtype).max
    # What is not in range may overflow in one order of its additions, and in another not.
    in_range = np.isfinite(scale) & (scale <= np.maximum(np.abs(value), most))
    size = np.maximum(np.abs(np.where(finite, rounded, 1)), np.where(scale <= most, scale, 0))
    # What is smaller has no inverse.
    ulp = np.maximum(np.spacing(size.astype(most.dtype)).astype(np.float64), _LEAST)
    rest = (rounded - value).astype(np.complex128 if dtype.kind == "c" else np.float64)
    judged &= np.where(finite, bound <= 4 * ulp, (np.abs(value) - bound > most) | (bound == 0)) & in_range
    return _Reference(
        np.where(finite, rounded, 0).astype(dtype),
        np.where(finite, rest, 0),
        1 / ulp,
        judged,
        np.where(finite, 0, rounded).astype(dtype),
        (judged & finite).all(axis=axes),
        (52 - DEAD_ZONE) / (int(np.finfo(dtype).nmant) - DEAD_ZONE),
    )


class Losses:
    """Values of the best forms, and what each form loses.

    Parameters
    ----------
    terms, numbering, inputs, drawn, batch
        As of :class:`~esat.accuracy.truths.Truths`.
    references
        What is compared with.
    judged_as
        For values that are not those of classes: the stack and row of the class that each of them, by stack
        and row, is compared with; a row of -1 stands for none.
    is_contested
        By stack, which values are judged; all by default. Others count as right.
    """

    def __init__(
        self,
        terms: TermGraph,
        numbering: Numbering,
        inputs: Mapping[int, Array],
        drawn: Mapping[int, Array],
        batch: int,
        references: References,
        judged_as: Sequence[tuple[int, NDArray[np.int64]]] | None = None,
        is_contested: Sequence[NDArray[np.bool_]] | None = None,
    ) -> None:
        self._terms, self._numbering, self._inputs, self._batch = terms, numbering, inputs, batch
        self._references = references
        self._judged_as = judged_as or [(stack, np.arange(n)) for stack, n in enumerate(numbering.counts)]
        self._is_contested = is_contested or [np.ones(count, np.bool_) for count in numbering.counts]
        self._some_unknown = False
        self.value: list[Array] = []
        self.known: list[NDArray[np.bool_]] = []
        self._score: list[FloatArray] = []
        self._best: list[NDArray[np.int64]] = []
        for shape, dtype, count in zip(numbering.shapes, numbering.dtypes, numbering.counts, strict=True):
            self.value.append(np.zeros((count, TRIALS, batch, *shape), dtype))
            self.known.append(np.zeros(count, np.bool_))
            self._score.append(np.full(count, np.inf))
            self._best.append(np.full(count, -1))
        for klass, values in drawn.items():
            stack, row = numbering.stack[klass], numbering.row[klass]
            self.value[stack][row] = values
            self.known[stack][row] = True

    def bits_of(self, klass: int) -> FloatArray | None:
        """Bits that the best form of a class loses at each point, of its worst element; None if unknown."""
        stack, row = self._numbering.stack[klass], self._numbering.row[klass]
        if stack < 0 or not self.known[stack][row]:
            return None
        judge, rows = self._judged_as[stack]
        if rows[row] < 0:
            return None
        with np.errstate(all="ignore"):
            bits = self._references.bits(judge, rows[row : row + 1], self.value[stack][row : row + 1])
        found: FloatArray = bits[0]
        return found

    def compute(self, units: Sequence[Unit], grouping: Grouping, levels: Sequence[int]) -> UnitLosses:
        """What each unit loses, from the best forms of its operands; NaN where it is not known.

        Units are evaluated until no class has a form that is better by a share of the tolerance.
        """
        schedule = Schedule(units, levels)
        moderate, extreme = (np.full(len(units), np.nan) for _ in range(2))
        loss = UnitLosses(moderate, extreme, np.zeros((len(units), self._batch), np.float32))
        with np.errstate(all="ignore"):
            for numbers in schedule:
                for group in grouping.groups(numbers):
                    for klass in self._evaluate(group, loss):
                        schedule.changed(klass)
        return loss

    def _evaluate(self, group: Group, loss: UnitLosses) -> list[int]:
        if self._some_unknown:
            ready = np.ones(len(group.units), np.bool_)
            for stack, rows in group.operands:
                ready &= self.known[stack][rows]
            if not ready.any():
                return []
            group = group if ready.all() else group.part(ready)
        try:
            value = self._computed(group)
        except UNFIT:
            value = None
        if value is None:
            self._some_unknown = True
            return []
        number, rows = group.result, group.rows
        score, best = self._score[number], self._best[number]
        if not self._is_contested[number][rows].any():
            loss.moderate[group.units] = loss.extreme[group.units] = 0.0
            self.value[number][rows] = value
            score[rows], best[rows], self.known[number][rows] = 0.0, group.units, True
            return list(self._numbering.members[number][rows].tolist())
        judge, judge_rows = self._judged_as[number]
        against = judge_rows[rows]
        bits = self._references.bits(judge, against, value)
        found = self._references.loss(judge, bits)
        loss.bits[group.units] = bits
        loss.moderate[group.units] = np.where(against >= 0, found.moderate, np.nan)
        loss.extreme[group.units] = np.where(against >= 0, found.extreme, np.nan)
        is_best = best[rows] == group.units
        gain = score[rows] - found.moderate
        better = (gain > TOLERANCE / 4) | (best[rows] < 0)
        moved = better | (is_best & (np.abs(gain) > TOLERANCE / 4))
        taken = better | is_best
        if taken.any():
            chosen = rows[taken]
            self.value[number][chosen] = value[taken]
            score[chosen], best[chosen] = found.moderate[taken], group.units[taken]
            self.known[number][chosen] = True
        return list(self._numbering.members[number][rows[moved]].tolist())

    def _computed(self, group: Group) -> Array | None:
        """Values in all trials, ``(e-nodes, trials, points, ...)``."""
        shape, dtype = self._numbering.shapes[group.result], self._numbering.dtypes[group.result]
        count = len(group.units)
        if group.operation is None:
            found = leaf_of(group.example, shape, self._terms, self._inputs, self._batch)
            if found is None:
                return None
            leaf = fitted(found[0].astype(dtype)[None], shape)
            return np.broadcast_to(leaf, (count, TRIALS, *leaf.shape[1:]))
        xs = [
            self.value[stack][rows].reshape(count * TRIALS, self._batch, *self._numbering.shapes[stack])
            for stack, rows in group.operands
        ]
        if group.example.steps:
            value = stepped(group.example, aligned(xs), _disturbed)
        else:
            value = group.operation.own(xs)
            if group.operation.rounds:
                value = _disturbed(group.example.name, xs, value if value.flags.writeable else value.copy())
        value = fitted(value.astype(dtype, copy=False), shape)
        return value.reshape(count, TRIALS, self._batch, *shape)


def _disturbed(name: str, operands: Sequence[Array], value: Array) -> Array:
    """A result with errors on its second trials where it was rounded: at most one unit in the last place.

    The array may be changed: it is new.
    """
    if value.dtype.kind not in "fc":
        return value
    part = value[1::TRIALS]
    factor = _factors(np.empty(0, value.dtype).real.dtype, part.size).reshape(part.shape)
    exact = _EXACTNESS.get(name.capitalize())
    if exact is not None and value.dtype.kind == "f":
        factor = np.where(exact(*(_second(x, value.ndim) for x in operands), part), 1, factor)
    part *= factor
    return value


def _second(x: Array, rank: int) -> Array:
    part = x[1::TRIALS]
    return part if part.ndim == rank else part.reshape(*part.shape, *[1] * (rank - part.ndim))


def _factors(dtype: np.dtype[Any], count: int) -> Array:
    """One, or a number next to it, ``count`` times, as chance has it."""
    factors = _kept_factors(dtype)
    return factors[:count] if count <= len(factors) else np.resize(factors, count)


@cache
def _kept_factors(dtype: np.dtype[Any]) -> Array:
    errors = np.random.default_rng(7).integers(-1, 2, 1 << 15).astype(dtype)
    factors: Array = dtype.type(1) + np.finfo(dtype).eps * errors
    return factors


def _sum_is_exact(x: Array, y: Array, value: Array) -> Array:
    """Whether a sum of two numbers was not rounded (Knuth's two-sum)."""
    part = value - x
    found: Array = (x - (value - part)) + (y - part) == 0
    return found


def _product_is_exact(x: Array, y: Array, value: Array) -> Array:
    exact: Array = x.astype(REAL) * y.astype(REAL) == value
    return exact


_EXACTNESS: Mapping[str, Callable[..., Array]] = {
    "Add": _sum_is_exact,
    "Sub": lambda x, y, value: _sum_is_exact(x, -y, value),
    "Mul": _product_is_exact,
    "Sqr": lambda x, value: _product_is_exact(x, x, value),
}
