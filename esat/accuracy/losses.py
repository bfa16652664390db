"""What forms lose: bits of each value, in the program's format, that differ from the truth.

Every value is computed from the best forms of its operands, in :data:`TRIALS` trials: in the first as NumPy
computes, in the second with errors of one unit in the last place on results that were rounded, so that no
form looks good by luck. (Monte Carlo arithmetic: D. S. Parker, "Monte Carlo Arithmetic: exploiting
randomness in floating-point arithmetic", UCLA CSD-970002, 1997.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.accuracy.operations import aligned, fitted, leaf_of, stepped
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
"""Bits beyond it from which on each counts fully; fewer count by their square, so that what order of operations
gives or takes does not add up over the points."""
WORST = 60.0
"""Bits of Inf or NaN instead of a number."""
_NOISE = np.random.default_rng(7).integers(-1, 2, 1 << 14).astype(np.int8)


class Loss(NamedTuple):
    """Bits that values lose beyond the dead zone, summed over moderate and over extreme points."""

    moderate: FloatArray
    extreme: FloatArray


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
        self._parts: list[tuple[Array, Array, Array, Array]] = []
        with np.errstate(all="ignore"):
            for value, bound, scale, known, dtype in zip(
                truths.value, truths.bound, scales, truths.known, numbering.dtypes, strict=True
            ):
                judged = known.reshape(-1, *[1] * (value.ndim - 1)) & (value == value)
                self._parts.append(_reference(value, bound, scale, judged, dtype))

    def bits(self, stack: int, rows: Any, values: Array) -> FloatArray:
        """Bits lost at each element, ``(e-nodes, points, ...)``: of the worst trial; 0 where nothing is known.

        Parameters
        ----------
        values
            ``(e-nodes, trials, points, ...)``
        """
        rounded, rest, scale, judged = (part[rows] for part in self._parts[stack])
        if values.dtype.kind in "biu":
            wrong = (values[:, 0] != rounded) & judged
            return np.where(wrong, WORST, 0.0)
        difference = (values - rounded[:, None]).astype(rest.dtype) + rest[:, None]
        gap = np.abs(difference) * scale[:, None]
        bits = np.log2(gap + 1).max(axis=1)
        right = (values == rounded[:, None]).all(axis=1)
        # A difference that is no number is Inf or NaN on one side.
        bits = np.where(bits < WORST, bits, WORST)
        return np.where(judged & ~right, bits, 0.0)

    def points(self, stack: int, row: int) -> NDArray[np.bool_]:
        """The moderate points at which all elements of a class are known."""
        judged = self._parts[stack][3][row]
        found: NDArray[np.bool_] = judged.reshape(len(judged), -1).all(axis=1) & ~self.is_extreme
        return found

    def loss(self, bits: FloatArray) -> Loss:
        """The losses of e-nodes; at a point the worst element counts."""
        over = np.maximum(bits - DEAD_ZONE, 0.0)
        over = np.minimum(over, over * over * (1.0 / NOTICED))
        worst = over.reshape(*over.shape[:2], -1).max(axis=2)
        return Loss(worst @ self._calm, worst @ self._wild)


def _reference(
    value: Array, bound: Array, scale: Array, judged: Array, dtype: np.dtype[Any]
) -> tuple[Array, Array, Array, Array]:
    """The truth in the format, what is missing to it, one over its last place, and where it is known so far."""
    if dtype.kind in "biu":
        rounded = np.where(judged, value, 0).real.astype(dtype)
        return rounded, rounded, rounded, judged & (bound <= 0.1)
    rounded = value.astype(dtype)
    finite = np.isfinite(rounded)
    most = np.finfo(dtype).max
    # What is not in range may overflow in one order of its additions, and in another not.
    in_range = np.isfinite(scale) & (scale <= np.maximum(np.abs(value), most))
    size = np.maximum(np.abs(np.where(finite, rounded, 1)), np.where(scale <= most, scale, 0)).astype(most.dtype)
    ulp = np.spacing(size).astype(np.float64)
    rest = (rounded - value).astype(np.complex128 if dtype.kind == "c" else np.float64)
    sure = np.where(finite, bound <= 4 * ulp, (np.abs(value) - bound > most) | (bound == 0)) & in_range
    return rounded, np.where(finite, rest, 0), 1 / ulp, judged & sure


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
    ) -> None:
        self._terms, self._numbering, self._inputs, self._batch = terms, numbering, inputs, batch
        self._references = references
        self._judged_as = judged_as or [(stack, np.arange(n)) for stack, n in enumerate(numbering.counts)]
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
        worst: FloatArray = bits.reshape(self._batch, -1).max(axis=1)
        return worst

    def compute(self, units: Sequence[Unit], grouping: Grouping, levels: Sequence[int]) -> Loss:
        """What each unit loses, from the best forms of its operands; NaN where it is not known.

        Units are evaluated until no class has a form that is better by a share of the tolerance.
        """
        schedule = Schedule(units, levels)
        loss = Loss(np.full(len(units), np.nan), np.full(len(units), np.nan))
        with np.errstate(all="ignore"):
            for numbers in schedule:
                for group in grouping.groups(numbers):
                    for klass in self._evaluate(group, loss):
                        schedule.changed(klass)
        return loss

    def _evaluate(self, group: Group, loss: Loss) -> list[int]:
        ready = np.ones(len(group.units), np.bool_)
        for stack, rows in group.operands:
            ready &= self.known[stack][rows]
        if not ready.all():
            if not ready.any():
                return []
            group = group.part(ready)
        value = self._computed(group)
        if value is None:
            return []
        number, rows = group.result, group.rows
        judge, judge_rows = self._judged_as[number]
        against = judge_rows[rows]
        found = self._references.loss(self._references.bits(judge, against, value))
        loss.moderate[group.units] = np.where(against >= 0, found.moderate, np.nan)
        loss.extreme[group.units] = np.where(against >= 0, found.extreme, np.nan)
        score, best = self._score[number], self._best[number]
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
        gained: list[int] = self._numbering.members[number][rows[moved]].tolist()
        return gained

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
                value = _disturbed(group.example.name, xs, value)
        value = fitted(value.astype(dtype, copy=False), shape)
        return value.reshape(count, TRIALS, self._batch, *shape)


def _disturbed(name: str, operands: Sequence[Array], value: Array) -> Array:
    """A result with an error of at most one unit in the last place on its second trials, where it was rounded."""
    if value.dtype.kind not in "fc":
        return value
    part = np.array(value[1::TRIALS])
    eps = np.finfo(value.dtype).eps
    factor = 1 + eps * np.resize(_NOISE, part.shape).astype(np.empty(0, value.dtype).real.dtype)
    exact = _EXACTNESS.get(name.capitalize())
    if exact is not None and value.dtype.kind == "f":
        xs = [_second(x, value.ndim) for x in operands]
        factor = np.where(exact(*xs, part), factor.dtype.type(1), factor)
    value = np.array(value)
    value[1::TRIALS] = part * factor
    return value


def _second(x: Array, rank: int) -> Array:
    part = x[1::TRIALS]
    return part if part.ndim == rank else part.reshape(*part.shape, *[1] * (rank - part.ndim))


def _sum_is_exact(x: Array, y: Array, value: Array) -> Array:
    """Whether a sum of two numbers was not rounded (Knuth's two-sum)."""
    part = value - x
    rest: Array = (x - (value - part)) + (y - part)
    return rest == 0


def _product_is_exact(x: Array, y: Array, value: Array) -> Array:
    exact: Array = x.astype(REAL) * y.astype(REAL) == value
    return exact


_EXACTNESS = {
    "Add": _sum_is_exact,
    "Sub": lambda x, y, value: _sum_is_exact(x, -y, value),
    "Mul": _product_is_exact,
    "Sqr": lambda x, value: _product_is_exact(x, x, value),
}
