"""The truth of each class: its value in the wide format, with a bound of its error.

Each e-node of a class is evaluated from the truths of its operands. Point by point the class takes the value
with the smallest bound, so the stable form among its e-nodes is the reference for the others, and no more
precision is needed than the wide format has. A finite value is preferred to Inf and NaN: where one form of a
class has a value, that is the class's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.stacks import IntArray, UnitGroup
from esat.extract.accuracy.unit_evaluation import Evaluation, Found
from esat.extract.accuracy.unit_order import Order
from esat.extract.accuracy.wide_format.formats import PAIRS, REAL, UNKNOWN, widened, zeros
from esat.extract.accuracy.wide_format.operations import STRUCTURAL, fitted
from esat.extract.accuracy.wide_format.wide import SELECTING, applied, contradicts

Array = NDArray[Any]

_GOOD = REAL(2.0) ** -60
"""Relative bound below which it is not worth while to evaluate the users of a class again."""
_FEW = 0.125
"""Share of the points; an operation that is another at tiny sizes contradicts others at most of them."""


class Truths(Evaluation):
    """Truths of all classes that can be computed.

    Parameters
    ----------
    terms, order, inputs, batch
        As of :class:`~esat.extract.accuracy.unit_evaluation.Evaluation`.
    drawn
        Values of the classes that are taken as given.

    Attributes
    ----------
    value, bound
        By stack, ``(classes, points, ...)``.
    conflicts
        Classes of which two e-nodes contradict each other.
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
        self.value: list[Array] = []
        self.bound: list[Array] = []
        self.conflicts: set[int] = set()
        self._apart: dict[int, Array] = {}
        for shape, dtype, count in zip(numbering.shapes, numbering.dtypes, numbering.counts, strict=True):
            self.value.append(zeros((count, batch, *shape), dtype))
            self.bound.append(np.full((count, batch, *shape), UNKNOWN))
        for klass, values in drawn.items():
            if PAIRS and values.dtype.kind == "c":
                self._some_unknown = True
                continue
            stack, row = numbering.stack[klass], numbering.row[klass]
            self.value[stack][row], self.bound[stack][row] = values, 0
            self.known[stack][row] = True

    def forget(self, classes: Collection[int]) -> None:
        """Take what contradicts itself at few points, in some classes, for unknown at these points."""
        numbering = self._numbering
        for klass in self.conflicts.intersection(classes):
            apart = self._apart[klass]
            if apart.reshape(len(apart), -1).any(axis=1).mean() <= _FEW:
                self.bound[numbering.stack[klass]][numbering.row[klass]][apart] = UNKNOWN
                self.conflicts.remove(klass)

    def take_poles(self, poles: Mapping[int, Array], term_class: IntArray) -> dict[int, Array]:
        """Let classes have the infinities that their terms have by poles.

        Parameters
        ----------
        poles
            Of terms, see :class:`~esat.extract.accuracy.poles.Poles`.
        term_class
            The class of each term.

        Returns
        -------
        Class -> those values, and zeros with their signs, ``(points, ...)``, NaN at all other points: nothing
        where terms differ, or another form of a class is a number.
        """
        found: dict[int, Array] = {}
        for term, values in poles.items():
            klass = int(term_class[term]) if term < len(term_class) else -1
            if klass < 0 or not self.is_known(klass):
                continue
            own = fitted(values[None], self._numbering.shapes[self._numbering.stack[klass]])[0]
            before = found.get(klass, own)
            agrees = (own == before) & (np.signbit(own) == np.signbit(before))
            found[klass] = np.where(np.isnan(before), own, np.where(agrees | np.isnan(own), before, np.nan))
        for klass, values in found.items():
            stack, row = self._numbering.stack[klass], self._numbering.row[klass]
            value, bound = self.value[stack][row], self.bound[stack][row]
            is_number = np.isfinite(value) & (bound < UNKNOWN)
            values[np.isinf(values) & is_number] = np.nan
            is_pole = np.isinf(values)
            self.value[stack][row] = np.where(is_pole, widened(values), value)
            self.bound[stack][row] = np.where(is_pole, REAL(0), bound)
        return found

    def value_of(self, klass: int) -> Array:
        """The value of a class that has one, ``(points, ...)``."""
        value: Array = self.value[self._numbering.stack[klass]][self._numbering.row[klass]]
        return value

    def is_known(self, klass: int) -> bool:
        """Whether a class has a value."""
        stack = self._numbering.stack[klass]
        return bool(stack >= 0 and self.known[stack][self._numbering.row[klass]])

    def _computed(self, group: UnitGroup) -> Found:
        shape = self._numbering.shapes[group.result]
        assert group.operation is not None
        ts = [self.bound[stack][rows] for stack, rows in group.operands]
        xs = [self.value[stack][rows] for stack, rows in group.operands]
        if group.operation.rule is None:
            dtypes = (self._numbering.dtypes[stack] for stack, _ in group.operands)
            own = group.operation.own([x.astype(dtype) for x, dtype in zip(xs, dtypes, strict=True)])
            value = fitted(widened(own), shape)
            unknown = np.zeros(value.shape, np.bool_)
            for error in ts:
                uncertain = error.reshape(*error.shape[:2], -1).any(axis=2) > 0
                unknown |= uncertain.reshape(*uncertain.shape, *[1] * len(shape))
            return value, np.where(unknown, UNKNOWN, REAL(0))
        selects = group.example.name in SELECTING or group.example.name in STRUCTURAL
        value, bound = applied(group.operation.rule, xs, ts, selects)
        return fitted(value, shape), fitted(bound, shape)

    def _leaves(self, group: UnitGroup, values: Array, rounded: NDArray[np.bool_]) -> Found:
        value = widened(values)
        unit = np.finfo(self._numbering.dtypes[group.result]).eps / 2 if rounded.any() else 0.0
        units = np.where(rounded, unit, 0.0).astype(REAL).reshape(-1, *[1] * (value.ndim - 1))
        return value, np.where(units > 0, np.abs(values), 0) * units  # infinite ones are exact

    def _take(self, group: UnitGroup, found: Found) -> IntArray:
        """Let classes take values that are better than theirs; the classes whose users gain by it."""
        value, bound = found
        number, rows = group.result, group.rows
        fresh = ~self.known[number][rows]
        values, bounds, known = self.value[number], self.bound[number], self.known[number]
        members = self._numbering.members[number][rows]
        if fresh.all():
            values[rows], bounds[rows], known[rows] = value, bound, True
            return members
        old, error = values[rows], bounds[rows]
        axes = tuple(range(1, value.ndim))
        apart = contradicts(value, bound, old, error)
        for place in np.flatnonzero(apart.any(axis=axes) & ~fresh).tolist():
            klass = int(members[place])
            self.conflicts.add(klass)
            self._apart[klass] = self._apart.get(klass, False) | apart[place]
        was_finite = np.isfinite(old) & (error < UNKNOWN)
        finite = np.isfinite(value) & (bound < UNKNOWN)
        better = (finite & ~was_finite) | ((finite | ~was_finite) & (bound < 0.5 * error))
        better[fresh] = True
        if not better.any():
            return members[:0]
        matters = better & ((error > _GOOD * np.abs(old)) | ~was_finite)
        matters[fresh] = True
        values[rows] = np.where(better, value, old)
        bounds[rows] = np.where(better, bound, error)
        known[rows] = True
        changed: IntArray = members[matters.any(axis=axes)]
        return changed
