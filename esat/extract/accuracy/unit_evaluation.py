"""Evaluation of units group by group: what truths and losses have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.egraph.language.terms import TermGraph
from esat.extract.accuracy.stacks import IntArray, UnitGroup
from esat.extract.accuracy.unit_order import Order
from esat.extract.accuracy.wide_format.operations import UNFIT, fitted, leaf_of
from esat.ops.elementwise.records.scipy_functions import quiet

Array = NDArray[Any]
Found = tuple[Array, ...]
"""What was computed of the units of a group, each an array whose first axis is theirs."""


class Evaluation(ABC):
    """Evaluates the units of an order.

    Parameters
    ----------
    terms
        What was loaded: its tables.
    order
        What is evaluated when.
    inputs
        Values of the inputs, by their numbers.
    drawn
        Values of the classes that are taken as given.
    batch
        Number of points.

    Attributes
    ----------
    order
        What is evaluated when.
    known
        By stack, which classes have values.
    """

    def __init__(
        self,
        terms: TermGraph,
        order: Order,
        inputs: Mapping[int, Array],
        drawn: Mapping[int, Array],
        batch: int,
    ) -> None:
        self.order = order
        self._terms, self._inputs, self._batch = terms, inputs, batch
        self._numbering = order.numbering
        self._some_unknown = not order.given <= drawn.keys()
        self.known = [np.zeros(count, np.bool_) for count in order.numbering.counts]

    def run(self) -> None:
        """Evaluate all units, until no class becomes better."""
        with quiet():
            self.order.run(self._evaluate)

    def run_again(self, numbers: Iterable[int]) -> None:
        """Evaluate some units again, and the users of what becomes better by it."""
        with quiet():
            self.order.run_again(self._evaluate, numbers)

    @abstractmethod
    def _leaves(self, group: UnitGroup, values: Array, rounded: NDArray[np.bool_]) -> Found:
        """What leaves have, of their values ``(units, points, ...)``, and whether those were rounded."""

    @abstractmethod
    def _computed(self, group: UnitGroup) -> Found:
        """What the units of a group have, from their operands."""

    @abstractmethod
    def _take(self, group: UnitGroup, found: Found) -> IntArray:
        """Let classes have what is better than what they have; the classes whose users gain by it.

        No class has two units in the group.
        """

    def _evaluate(self, group: UnitGroup) -> list[int]:
        ready = self._ready(group)
        if ready is None:
            return []
        try:
            if ready.operation is None:
                ready, leaves = self._with_leaves(ready)
                found = self._leaves(ready, *leaves)
            else:
                found = self._computed(ready)
        except UNFIT:
            self._some_unknown = True
            return []
        if not ready.repeats:
            changed: list[int] = self._take(ready, found).tolist()
            return changed
        changed = []
        for places in ready.rounds():
            changed += self._take(ready.part(places), tuple(part[places] for part in found)).tolist()
        return changed

    def _ready(self, group: UnitGroup) -> UnitGroup | None:
        """The units of a group whose operands are known; None if there are none."""
        if not self._some_unknown:
            return group
        ready = np.ones(len(group.units), np.bool_)
        for stack, rows in group.operands:
            ready &= self.known[stack][rows]
        return group if ready.all() else group.part(np.flatnonzero(ready)) if ready.any() else None

    def _with_leaves(self, group: UnitGroup) -> tuple[UnitGroup, tuple[Array, NDArray[np.bool_]]]:
        """Those of a group of leaves that have values, these, and whether they were rounded.

        Raises
        ------
        ValueError
            If none has.
        """
        shape, dtype = self._numbering.shapes[group.result], self._numbering.dtypes[group.result]
        found = [leaf_of(unit, shape, self._terms, self._inputs, self._batch) for unit in group.members]
        known = [leaf for leaf in found if leaf is not None]
        values = np.stack([fitted(value[None], shape)[0] for value, _ in known]).astype(dtype, copy=False)
        if len(known) < len(found):
            self._some_unknown = True
            group = group.part(np.flatnonzero([leaf is not None for leaf in found]))
        return group, (values, np.array([rounded for _, rounded in known]))
