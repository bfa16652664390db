"""What values of forms are compared with: the truth of each class, and the bits that differ from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esat.extract.accuracy.sample import Sample
from esat.extract.accuracy.stacks import IntArray, Numbering, narrowed
from esat.extract.accuracy.truths import Truths
from esat.extract.accuracy.wide_format.formats import UNKNOWN
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]
FloatArray = NDArray[np.float64]

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
HALF_KNOWN = 2.0**-26
"""Relative bound up to which a form is told to be no number where the value is one: functions that exist in
float64 only are not known to their last places."""


class Loss(NamedTuple):
    """Bits that values lose beyond the dead zone, summed over moderate and over extreme points."""

    moderate: FloatArray
    extreme: FloatArray


class _Reference(NamedTuple):
    """What the values of one stack are compared with.

    The truth in the format (zero where it is infinite), what is missing to it, one over its last place; where
    it is known well enough, where only so far that it is a number, and where it is infinite; of each class,
    whether all of it is known and finite; how many bits of float64 one bit of the format stands for; and
    where a value is unknown, and should be a number at least.
    """

    rounded: Array
    rest: Array
    scale: Array
    judged: NDArray[np.bool_]
    roughly: NDArray[np.bool_] | None
    infinite: Array
    is_plain: NDArray[np.bool_]
    weight: float
    unknown: NDArray[np.bool_] | None = None


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
    poles
        Class -> values that it has by poles, see :meth:`~esat.extract.accuracy.truths.Truths.take_poles`.
    """

    def __init__(
        self,
        truths: Truths,
        numbering: Numbering,
        scales: Sequence[Array],
        sample: Sample,
        wanted: NDArray[np.bool_],
        poles: Mapping[int, Array],
    ) -> None:
        self._poles = {(numbering.stack[klass], int(numbering.row[klass])): at for klass, at in poles.items()}
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
                found = _reference(value[rows], bound[rows], scale[rows], judged, dtype)
                # Of what is not known there, a form that is a number is preferred to others.
                extreme = (sample.is_extreme & ~sample.is_topmost).reshape(top.shape)
                unknown = (bound[rows] >= UNKNOWN) & extreme & (dtype.kind in "fc")
                self._of.append(found._replace(unknown=unknown if unknown.any() else None))

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
        signs = self._signs(stack, rows)
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
        if of.unknown is not None:
            gap[of.unknown[rows][:, None] & ~np.isfinite(values)] = np.inf
        if signs is not None:
            gap[(values == 0) & (np.copysign(1, values) == -signs[:, None])] = np.inf
        worst = gap.reshape(*gap.shape[:3], -1).max(axis=(1, 3))
        bits = np.log2(worst + 1.0)
        # What is no number is Inf or NaN instead of one.
        return np.where(np.isfinite(bits), np.minimum(bits, WRONG), WORST)

    def points(self, stack: int, row: int) -> NDArray[np.bool_]:
        """The moderate points at which all elements of a class are known."""
        judged = self._of[stack].judged[self._place[stack][row]]
        found: NDArray[np.bool_] = judged.reshape(len(judged), -1).all(axis=1) & self._is_calm
        return found

    def is_finite_or_pole(self, stack: int, row: int) -> NDArray[np.bool_]:
        """The points at which all elements of a class are numbers of the format, or infinite by poles."""
        is_known = self._of[stack].infinite[self._place[stack][row]] == 0
        poles = self._poles.get((stack, row))
        if poles is not None:
            is_known = is_known | np.isinf(poles)
        found: NDArray[np.bool_] = is_known.reshape(len(is_known), -1).all(axis=1)
        return found

    def _signs(self, stack: int, rows: Any) -> Array | None:
        """1 or -1 for zeros that have such a sign by which others divide, ``(e-nodes, points, ...)``."""
        if not any(of == stack for of, _ in self._poles):
            return None
        found = None
        for place, row in enumerate(np.arange(len(self._place[stack]))[rows].tolist()):
            poles = self._poles.get((stack, row))
            if poles is not None and (poles == 0).any():
                if found is None:
                    found = np.zeros((len(rows), *poles.shape))
                found[place] = np.where(poles == 0, np.copysign(1, poles), 0)
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
