"""Choice by tree cost: every class takes the e-node of its cheapest tree, shared parts paid at every use."""

from __future__ import annotations

import numpy as np

from esat.base.records import record
from esat.extract.arrays import FloatArray, IntArray
from esat.extract.choice.inner_loops import UNREACHED, Heap
from esat.extract.choice.selection import Problem


@record(frozen=True, eq=False)
class TreeChoice:
    """The cheapest tree of every class.

    Attributes
    ----------
    choice
        int64 ``(classes,)``: e-node of each class, -1 for a class without a usable finite term.
    cost
        float64 ``(classes,)``: tree cost of each class in seconds, negative where there is none.
    order
        int64: the classes that have one and were not paid, in ascending tree cost, operands before users.
    """

    choice: IntArray
    cost: FloatArray
    order: IntArray

    @property
    def rank(self) -> IntArray:
        """int64 ``(classes,)``: the place of each class in the order, -1 for those that are not in it."""
        rank = np.full(len(self.choice), -1, np.int64)
        rank[self.order] = np.arange(len(self.order))
        return rank


def tree_choice(problem: Problem, known: IntArray | None = None, deepest: bool = False) -> TreeChoice:
    """The cheapest tree of every class.

    Parameters
    ----------
    known
        int64 ``(classes,)``: e-nodes of classes that cost nothing because they are computed anyway; -1 for
        the others.
    deepest
        A tree costs what its costliest path does, instead of the sum of all e-nodes.
    """
    arrays = problem.arrays
    classes, nodes = arrays.class_count, arrays.node_count
    chosen = np.full(classes, -1, np.int64) if known is None else known.copy()
    free = (chosen >= 0).astype(np.int64)
    best = np.full(classes, UNREACHED)
    order = np.empty(classes, np.int64)
    heap = Heap(np.empty(nodes), np.empty(nodes, np.int64), np.empty(nodes, np.int64))
    count = problem.loops.settle(arrays.links, problem.costs, free, best, chosen, order, heap, deepest)
    return TreeChoice(chosen, best, order[:count])
