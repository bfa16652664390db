"""Regimes: outputs for which one form is accurate here, and another there.

A split has one form below a threshold of one input and one above it, after P. Panchekha, A. Sanchez-Stern,
J. R. Wilcox and Z. Tatlock, "Automatically improving accuracy for floating point expressions" (PLDI 2015),
section 4.7: the forms that lose least over parts of the points are candidates, the best pair and the best
place between two points follow from running sums, and the place is then sought more closely between these.
A split has to win at points that had no part in finding it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.extract.accuracy.judge import Evaluated, evaluated
from esat.extract.accuracy.losses import Losses
from esat.extract.accuracy.points import extreme_points
from esat.extract.accuracy.sample import Sample, sample_of
from esat.extract.accuracy.unit_order import order_of
from esat.extract.extraction import SaturatedGraph
from esat.extract.verdicts import TOLERANCE, Verdicts

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

BETWEEN = 64
"""Points between two others at which the threshold is sought."""
LEAST_SHARE = 0.25
"""Of what the best single form loses, that a split has to save."""
_OTHER_POINTS = 2026
"""Seed of the points at which splits have to win."""


@record(frozen=True, eq=False)
class RegimeSplit:
    """One form of an output where an input is below a threshold, and another elsewhere.

    Attributes
    ----------
    output, input
        Their numbers.
    threshold
        The number that the input is compared with.
    below, above
        What e-nodes lose where the input is below it, and elsewhere.
    bits, bits_of_one
        Bits lost in the mean at points that had no part in finding the split: with it, and by the best single
        form.
    """

    output: int
    input: int
    threshold: float
    below: Verdicts
    above: Verdicts
    bits: float
    bits_of_one: float


def splits_of(graph: SaturatedGraph) -> list[RegimeSplit]:
    """Splits of the outputs of a graph that joins no elements; none where one form suffices."""
    found = evaluated(graph)
    if found.sample.tiny != 1:
        return []
    single = found.losses(found.references)
    fresh = found.at(
        sample_of(
            graph.terms,
            found.places,
            found.order,
            found.sample.tiny,
            graph.arrays.term_class,
            _OTHER_POINTS,
        )
    )
    splits = (_Search(found, single, fresh, output).best() for output in range(len(graph.roots)))
    return [split for split in splits if split is not None]


class _Search:
    """The search for a split of one output."""

    def __init__(self, found: Evaluated, single: Losses, fresh: Evaluated, output: int) -> None:
        self._found, self._single, self._fresh, self._output = found, single, fresh, output
        self._klass = found.graph.roots[output]

    def best(self) -> RegimeSplit | None:
        """The best split; None where it gains nothing."""
        known, one = self._over(self._found, self._single)
        if one is None or one[known].sum() <= TOLERANCE:
            return None
        best: tuple[float, int, float] | None = None
        inputs = self._inputs()
        forms = list(self._candidates(inputs, known, one))
        for number, values in inputs.items():
            for left in forms:
                for right in forms:
                    lost, place = _cut(values[known], left[known], right[known])
                    if place is not None and (best is None or lost < best[0] - 1.0):
                        best = lost, number, place
        if best is None or best[0] > (1 - LEAST_SHARE) * one[known].sum() - TOLERANCE:
            return None
        return self._refined(best[1], best[2], inputs[best[1]], known)

    def _refined(self, number: int, threshold: float, values: Array, known: BoolArray) -> RegimeSplit | None:
        """The split of an input near a threshold, which is sought between the points beside it."""
        found, references = self._found, self._found.references
        sides = [found.losses(references.at(mask)) for mask in (values < threshold, values >= threshold)]
        place = self._closer(number, threshold, values[known], sides)
        if place is None:
            return None
        values = np.ravel(self._fresh.sample.inputs[number])
        known, one = self._over(self._fresh, self._fixed(self._fresh, self._single))
        _, below = self._over(self._fresh, self._fixed(self._fresh, sides[0]))
        _, above = self._over(self._fresh, self._fixed(self._fresh, sides[1]))
        if one is None or below is None or above is None:
            return None
        both = np.where(values < place, below, above)
        if both[known].sum() > (1 - LEAST_SHARE) * one[known].sum():
            return None
        verdicts = [self._verdicts(side) for side in sides]
        means = [float(lost[known].mean()) for lost in (both, one)]
        return RegimeSplit(self._output, number, place, verdicts[0], verdicts[1], means[0], means[1])

    def _over(self, at: Evaluated, losses: Losses) -> tuple[BoolArray, FloatArray | None]:
        """The points at which the output is known, and what counts of the bits it loses there."""
        numbering = at.order.numbering
        stack, row = numbering.stack[self._klass], int(numbering.row[self._klass])
        bits = losses.bits_of(self._klass)
        if bits is None or numbering.dtypes[stack].kind != "f":
            return np.zeros(at.sample.batch, np.bool_), None
        return at.references.points(stack, row), at.references.over(stack, bits)

    def _inputs(self) -> Mapping[int, Array]:
        """Values of the real inputs that the output depends on."""
        terms = self._found.graph.terms
        pending, below = [terms.roots[self._output]], set()
        while pending:
            term = pending.pop()
            if term not in below:
                below.add(term)
                pending += terms.terms[term].operands
        used = {
            int(terms.terms[term].attributes[0]) for term in below if terms.terms[term].constructor == "In"
        }
        inputs = self._found.sample.inputs
        return {
            number: np.ravel(values) for number, values in inputs.items()
            if number in used and values.dtype.kind == "f"
        }  # fmt: skip

    def _candidates(
        self, inputs: Mapping[int, Array], known: BoolArray, one: FloatArray
    ) -> Iterator[FloatArray]:
        """What the output loses by the forms that are best over parts of the points."""
        found = self._found
        parts = [known, one > 0.0, one == 0.0]
        for values in inputs.values():
            size = np.abs(values)
            parts += [values < 0, values >= 0, size < 1, size >= 1, values > 1, values < -1]
        seen = set()
        for part in parts:
            if not (part & known).any():
                continue
            _, over = self._over(found, found.losses(found.references.at(part)))
            if over is not None and over.tobytes() not in seen:
                seen.add(over.tobytes())
                yield over

    def _fixed(self, at: Evaluated, losses: Losses) -> Losses:
        """The forms that were best for some losses, at other points."""
        units = [at.order.units[number] for number in losses.chosen()]
        given = [klass for klass in at.sample.drawn if at.order.numbering.stack[klass] >= 0]
        order = order_of(units, at.places, given, [self._klass])
        numbering, own = at.order.numbering, order.numbering
        compared = [
            (numbering.stack[int(members[0])], numbering.row[members])
            for members in own.members
            if len(members)
        ]
        contested = [np.isin(members, [self._klass]) for members in own.members]
        sample, terms = at.sample, at.graph.terms
        drawn = {klass: sample.drawn[klass] for klass in given}
        found = Losses(terms, order, sample.inputs, drawn, sample.batch, at.references, contested, compared)
        found.run()
        return found

    def _closer(self, number: int, threshold: float, values: Array, sides: list[Losses]) -> float | None:
        """The threshold, sought at points between the two around it; None if it is no gain there."""
        lowest, highest = values[values < threshold].max(), values[values >= threshold].min()
        between = _between(float(lowest), float(highest), self._found.sample.inputs[number].dtype)
        sample = self._found.sample
        points = np.resize(np.flatnonzero(~sample.is_extreme), BETWEEN)
        inputs = {other: at[points] for other, at in sample.inputs.items()}
        inputs[number] = between.reshape(inputs[number].shape)
        drawn = {klass: at[points] for klass, at in sample.drawn.items()}
        extreme, nothing = extreme_points(inputs, BETWEEN), np.zeros(BETWEEN, np.bool_)
        near = self._found.at(Sample(inputs, drawn, BETWEEN, extreme, nothing, nothing, sample.tiny))
        known, one = self._over(near, self._fixed(near, self._single))
        below, above = (self._over(near, self._fixed(near, side))[1] for side in sides)
        if one is None or below is None or above is None or not known.any():
            return threshold
        ends = np.concatenate([[lowest], between[known], [highest]])
        lost = [np.concatenate([[0.0], over[known], [0.0]]) for over in (below, above)]
        total, place = _cut(ends, lost[0], lost[1])
        if place is None or total > one[known].sum() + TOLERANCE:
            return None
        return place

    def _verdicts(self, losses: Losses) -> Verdicts:
        (loss, far), strict = self._found.of_nodes(losses)
        nothing = np.full(self._found.graph.arrays.class_count, np.inf)
        return Verdicts(loss, far, nothing, nothing, strict, ())


def _cut(values: Array, left: FloatArray, right: FloatArray) -> tuple[float, float | None]:
    """The least that is lost with one form below a threshold and another above, and where; None: nowhere."""
    order = np.argsort(values, kind="stable")
    at = values[order].astype(np.float64)
    lost = np.cumsum(left[order])[:-1] + np.cumsum(right[order][::-1])[::-1][1:]
    lost = np.where(at[1:] > at[:-1], lost, np.inf)
    if not len(lost) or not np.isfinite(lost).any():
        return np.inf, None
    place = int(np.argmin(lost))
    return float(lost[place]), _middle(float(at[place]), float(at[place + 1]), values.dtype)


def _middle(low: float, high: float, dtype: np.dtype[Any]) -> float:
    """A number between two, above the lower one: zero if it is there, else of a size between theirs."""
    if low < 0 <= high:
        return 0.0
    size = float(np.sqrt(abs(low)) * np.sqrt(abs(high))) if low and high else (low + high) / 2
    middle = float(dtype.type(np.copysign(size, low if low else high)))
    return middle if low < middle <= high else high


def _between(low: float, high: float, dtype: np.dtype[Any]) -> Array:
    """Numbers between two, in ascending order: their sizes grow by a factor."""
    shares = np.arange(1, BETWEEN + 1) / (BETWEEN + 1)
    if low and high and (low < 0) == (high < 0):
        numbers = np.copysign(np.abs(low) ** (1 - shares) * np.abs(high) ** shares, low)
    else:
        numbers = low + (high - low) * shares
    found: Array = numbers.astype(dtype)
    return found
