"""What is known of the accuracy of each e-node, as data beside the e-graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

import numpy as np

from esat.base.records import record
from esat.extract.arrays import BoolArray, FloatArray

Accuracy = Literal["best", "written", "ignore"]
"""What the choice of forms goes by before time: the most accurate form of each value, one that is no worse
than the graph as it was written, or nothing."""
ACCURACIES = ("best", "written", "ignore")

TOLERANCE = 16.0
"""Bits in the sum over the points, beyond the dead zone, up to which forms count as equal."""
TOLERANCE_OF_EXTREMES = 32.0
"""The same over points near the ends of a format's range, where they have to be no worse than written."""


@record(frozen=True)
class OutputAccuracy:
    """What one output loses at the sample points.

    Attributes
    ----------
    written, best
        Bits lost in the mean: by the graph as it was written, and by the most accurate forms that were found.
    worst_written, worst_best
        The same at the worst point.
    points
        Points at which its true value is known; 0 where it is not judged.
    """

    written: float
    best: float
    worst_written: float
    worst_best: float
    points: int


@record(frozen=True, eq=False)
class Verdicts:
    """What e-nodes lose in digits at the sample points.

    Attributes
    ----------
    loss, far
        float64 ``(nodes,)``: bits lost beyond what nobody minds, summed over moderate and over extreme
        points; NaN for an e-node that is not judged.
    written, written_far
        float64 ``(classes,)``: the same of the terms that were loaded; inf where there are none.
    strict
        Sums and products of which everything that was written together has to stay together.
    outputs
        Of each output.
    given
        Classes that nothing can compute at points, of which values are drawn.
    places
        Of an e-node that loses much: at which inputs it does.
    """

    loss: FloatArray
    far: FloatArray
    written: FloatArray
    written_far: FloatArray
    strict: frozenset[int]
    outputs: tuple[OutputAccuracy, ...]
    given: frozenset[int] = frozenset()
    places: Mapping[int, str] = field(default_factory=dict)

    @property
    def judged(self) -> BoolArray:
        """The e-nodes of which something is known, bool ``(nodes,)``."""
        return ~np.isnan(self.loss)

    def bits_too_many(
        self, accuracy: Accuracy, class_of: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> FloatArray:
        """float64 ``(nodes,)``: by how much an e-node is worse than its class allows; 0 for one that is not.

        Parameters
        ----------
        accuracy
            What is asked for.
        class_of
            Class of each e-node.
        """
        count = len(self.written)
        least, least_far = (_least(values, class_of, count) for values in (self.loss, self.far))
        allowed = (
            least
            if accuracy == "best"
            else np.where(np.isfinite(self.written), np.maximum(self.written, least), np.inf)
        )
        allowed_far = np.where(
            np.isfinite(self.written_far), np.maximum(self.written_far, least_far), least_far
        )
        over = np.nan_to_num(self.loss) - allowed[class_of]
        over_far = np.nan_to_num(self.far) - allowed_far[class_of]
        bad = self.judged & ((over > TOLERANCE) | (over_far > TOLERANCE_OF_EXTREMES))
        return np.where(bad, np.maximum(over, 0.0) + np.maximum(over_far, 0.0), 0.0)


def _least(
    values: FloatArray, class_of: np.ndarray[tuple[int], np.dtype[np.int64]], count: int
) -> FloatArray:
    """The least of the values of each class; inf where there is none."""
    least = np.full(count, np.inf)
    known = ~np.isnan(values)
    np.minimum.at(least, class_of[known], values[known])
    return least
