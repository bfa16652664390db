"""The truth of each class: its value in the wide format, with a bound of its error.

Each e-node of a class is evaluated from the truths of its operands. Point by point the class takes the value
with the smallest bound, so the stable form among its e-nodes is the reference for the others, and no more
precision is needed than the wide format has. A finite value is preferred to Inf and NaN: where one form of a
class has a value, that is the class's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.accuracy.operations import UNFIT, fitted, leaf_of
from esat.accuracy.stacks import Group, Grouping, Numbering, Schedule
from esat.accuracy.units import Unit
from esat.accuracy.wide import COMPLEX, REAL, contradicts, settled
from esat.egraph.terms import TermGraph

Array = NDArray[Any]

_GOOD = REAL(2.0) ** -60
"""Relative bound below which it is not worth while to evaluate the users of a class again."""


class Truths:
    """Truths of all classes that can be computed.

    Parameters
    ----------
    terms
        What was loaded: its tables.
    numbering
        Where values lie.
    inputs
        Values of the inputs, by their numbers, and ``drawn`` those of classes that are taken as given.
    batch
        Number of points.

    Attributes
    ----------
    value, bound
        By stack, ``(classes, points, ...)``.
    known
        By stack, which classes have a truth.
    conflicts
        Classes of which two e-nodes contradict each other.
    """

    def __init__(
        self,
        terms: TermGraph,
        numbering: Numbering,
        inputs: Mapping[int, Array],
        drawn: Mapping[int, Array],
        batch: int,
    ) -> None:
        self._terms, self._numbering, self._inputs, self._batch = terms, numbering, inputs, batch
        self.value: list[Array] = []
        self.bound: list[Array] = []
        self.known: list[NDArray[np.bool_]] = []
        self.conflicts: set[int] = set()
        self._some_unknown = False
        for shape, dtype, count in zip(numbering.shapes, numbering.dtypes, numbering.counts, strict=True):
            kind = COMPLEX if dtype.kind == "c" else REAL
            self.value.append(np.zeros((count, batch, *shape), kind))
            self.bound.append(np.full((count, batch, *shape), np.inf, REAL))
            self.known.append(np.zeros(count, np.bool_))
        for klass, values in drawn.items():
            stack, row = numbering.stack[klass], numbering.row[klass]
            self.value[stack][row], self.bound[stack][row] = values, 0
            self.known[stack][row] = True

    def compute(self, units: Sequence[Unit], grouping: Grouping, levels: Sequence[int]) -> None:
        """Evaluate units until no truth becomes better."""
        schedule = Schedule(units, levels)
        with np.errstate(all="ignore"):
            for numbers in schedule:
                for group in grouping.groups(numbers):
                    for klass in self._evaluate(group):
                        schedule.changed(klass)

    def of(self, klass: int) -> tuple[Array, Array] | None:
        """Values and bounds of a class, ``(points, ...)``; None where they are unknown."""
        stack, row = self._numbering.stack[klass], self._numbering.row[klass]
        if stack < 0 or not self.known[stack][row]:
            return None
        return self.value[stack][row], self.bound[stack][row]

    def _evaluate(self, group: Group) -> Iterable[int]:
        """Evaluate the units of a group whose operands are known; the classes that have become better."""
        if self._some_unknown:
            ready = np.ones(len(group.units), np.bool_)
            for stack, rows in group.operands:
                ready &= self.known[stack][rows]
            if not ready.any():
                return []
            group = group if ready.all() else group.part(ready)
        try:
            found = self._computed(group)
        except UNFIT:
            found = None
        if found is None:
            self._some_unknown = True
            return []
        return self._take(group, *found)

    def _computed(self, group: Group) -> tuple[Array, Array] | None:
        shape = self._numbering.shapes[group.result]
        if group.operation is None:
            return self._leaves(group, shape)
        ts = [self.bound[stack][rows] for stack, rows in group.operands]
        xs = [self.value[stack][rows] for stack, rows in group.operands]
        if group.operation.rule is None:
            dtypes = (self._numbering.dtypes[stack] for stack, _ in group.operands)
            own = group.operation.own([x.astype(dtype) for x, dtype in zip(xs, dtypes, strict=True)])
            value = fitted(own.astype(REAL), shape)
            unknown = np.zeros(value.shape, np.bool_)
            for error in ts:
                uncertain = error.reshape(*error.shape[:2], -1).any(axis=2) > 0
                unknown |= uncertain.reshape(*uncertain.shape, *[1] * len(shape))
            return value, np.where(unknown, REAL(np.inf), REAL(0))
        value, bound = group.operation.rule(xs, ts)
        value, bound = settled(np.asarray(value), np.broadcast_to(bound, value.shape), ts)
        return fitted(value, shape), fitted(bound, shape)

    def _leaves(self, group: Group, shape: tuple[int, ...]) -> tuple[Array, Array] | None:
        found = leaf_of(group.example, shape, self._terms, self._inputs, self._batch)
        if found is None:
            return None
        kind = self.value[group.result].dtype
        value = fitted(found[0].astype(kind)[None], shape)
        value = np.broadcast_to(value, (len(group.units), *value.shape[1:]))
        unit = np.finfo(self._numbering.dtypes[group.result]).eps / 2 if found[1] else 0.0
        return value, np.abs(value) * REAL(unit)

    def _take(self, group: Group, value: Array, bound: Array) -> Iterable[int]:
        """Let classes take values that are better than theirs; the classes whose users gain by it."""
        number, rows = group.result, group.rows
        fresh = ~self.known[number][rows]
        values, bounds, known = self.value[number], self.bound[number], self.known[number]
        members = self._numbering.members[number]
        if fresh.all():
            values[rows], bounds[rows], known[rows] = value, bound, True
            return list(members[rows].tolist())
        old, error = values[rows], bounds[rows]
        axes = tuple(range(1, value.ndim))
        apart = (contradicts(value, bound, old, error)).any(axis=axes) & ~fresh
        self.conflicts.update(members[rows[apart]].tolist())
        finite, was_finite = np.isfinite(value), np.isfinite(old)
        better = finite & ~was_finite & (bound < np.inf)
        better |= (finite | ~was_finite) & (bound < 0.5 * error) & ~np.isnan(value)
        better[fresh] = True
        matters = better & ((error > _GOOD * np.abs(old)) | ~was_finite)
        matters[fresh] = True
        if better.any():
            values[rows] = np.where(better, value, old)
            bounds[rows] = np.where(better, bound, error)
            known[rows] = True
        return list(members[rows[matters.any(axis=axes)]].tolist())
