"""What extraction takes and gives: the problem and the selection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import fsum, inf

import numpy as np

from esat.base.records import record
from esat.egraph.analyses.distinct import distinct
from esat.errors import CompileError
from esat.extract.arrays import EGraphArrays, FloatArray, IntArray
from esat.extract.choice.compiled_loops import ExtractionBackend, compiled


@record(frozen=True, eq=False)
class Selection:
    """One e-node for each class that the roots need.

    Attributes
    ----------
    chosen
        int64 ``(classes,)``: the chosen e-node of each live class, -1 for every other class.
    cost
        Seconds: the sum over the live classes, each once.
    lower_bound
        Seconds no selection can beat, as far as the method proved; 0 where it proved nothing.
    method
        How it was found.
    """

    chosen: IntArray
    cost: float
    lower_bound: float
    method: str

    @property
    def gap(self) -> float:
        """Largest possible saving, as a share of the cost; 0 for a proven optimum."""
        if self.cost <= self.lower_bound:
            return 0.0
        return (self.cost - self.lower_bound) / self.cost if self.cost < inf else 1.0

    @property
    def live_classes(self) -> IntArray:
        """Classes with a chosen e-node, ascending."""
        return np.flatnonzero(self.chosen >= 0)


@record(frozen=True, eq=False)
class Problem:
    """An e-graph to choose from.

    Attributes
    ----------
    costs
        float64 ``(nodes,)`` seconds, not negative; infinite for an e-node that must not be chosen.
    roots
        int64: classes that must be computed, each once, ascending.
    loops
        What searches it. The result does not depend on the backend.
    """

    arrays: EGraphArrays
    costs: FloatArray
    roots: IntArray
    loops: ExtractionBackend = field(default_factory=compiled)

    @staticmethod
    def of(
        arrays: EGraphArrays,
        costs: Sequence[float] | FloatArray,
        roots: Sequence[int] | IntArray,
        backend: ExtractionBackend | None = None,
    ) -> Problem:
        """A checked problem; the loops are compiled unless another backend is given.

        Raises
        ------
        CompileError
            Costs of the wrong number, negative or NaN; a root that is no class.
        """
        prices = np.ascontiguousarray(costs, np.float64)
        if prices.shape != (arrays.node_count,):
            raise CompileError(f"extraction: {arrays.node_count} e-nodes, but costs of shape {prices.shape}")
        wrong = np.flatnonzero(~(prices >= 0.0))
        if len(wrong):
            node = int(wrong[0])
            raise CompileError(f"extraction: e-node {arrays.describe(node)} has the cost {prices[node]}")
        classes, _number = distinct(np.asarray(roots, np.int64))
        if len(classes) and not 0 <= classes[0] <= classes[-1] < arrays.class_count:
            raise CompileError(
                f"extraction: roots {classes.tolist()} of an e-graph of {arrays.class_count} classes"
            )
        return Problem(arrays, prices, classes, compiled() if backend is None else backend)

    def live(self, choice: IntArray) -> IntArray:
        """Keep the choice of the classes that the roots need; -1 elsewhere.

        Raises
        ------
        CompileError
            A needed class has no choice.
        """
        arrays = self.arrays
        kept = np.full(arrays.class_count, -1, np.int64)
        pending = np.empty(arrays.class_count, np.int64)
        lacking = self.loops.keep_live(arrays.links, choice, self.roots, kept, pending)
        if lacking >= 0:
            nodes = ", ".join(arrays.describe(node) for node in arrays.nodes_of(lacking)[:8]) or "none"
            raise CompileError(
                f"extraction: class {lacking} is needed and has no usable e-node; e-nodes: {nodes}"
            )
        return kept

    def cost_of(self, chosen: IntArray) -> float:
        """Seconds of the chosen e-nodes, each class once; exactly rounded, hence independent of the order."""
        return fsum(self.costs[chosen[chosen >= 0]].tolist())

    def select(self, choice: IntArray, lower_bound: float, method: str) -> Selection:
        """The selection that a choice amounts to."""
        chosen = self.live(choice)
        cost = self.cost_of(chosen)
        return Selection(chosen, cost, min(lower_bound, cost), method)
