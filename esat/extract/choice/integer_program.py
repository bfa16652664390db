"""Optimal choice by integer programming (HiGHS, through SciPy).

One binary variable per e-node and one per class: a root is computed; a computed class takes one of its
e-nodes; an e-node needs its operands. Cycles are cut off when they appear (a cutting-plane loop), so that
the program stays small; every relaxation bounds the optimum from below.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from time import perf_counter

import numpy as np

from esat.base.records import record
from esat.extract.arrays import IntArray
from esat.extract.choice.area import area_choice
from esat.extract.choice.selection import Problem, Selection
from esat.extract.choice.tree import tree_choice

# HiGHS has absolute tolerances of about 1e-6: costs are scaled so that the known selection costs this much.
_SCALE = 1.0e3
_RELATIVE_GAP = 1e-7
"""Of the solver's bound: below what differs between prices that are not equal, above its rounding."""
_SLACK = 1e-9
"""Share by which bounds are widened, for sums of the same prices in another order."""
_ALL_FORMS_UP_TO = 5  # classes on a cycle for which a cut is added in every form


def optimal_selection(problem: Problem, known: Selection, time_limit: float = inf) -> Selection:
    """The cheapest selection, or the best one found and how far it may be from the cheapest.

    Parameters
    ----------
    known
        A selection to beat; e-nodes that cannot be part of a cheaper one are dropped beforehand.
    time_limit
        Seconds.
    """
    deadline = perf_counter() + time_limit
    best = replace(known, method="optimal")
    if best.gap == 0.0:
        return best
    program = _Program(problem, known.cost)
    while True:
        solution = program.solve(deadline - perf_counter())
        bound = max(best.lower_bound, solution.bound)
        cycles = [] if solution.choice is None else program.cut_cycles(solution.choice)
        if solution.choice is not None and not cycles:
            found = problem.select(solution.choice, bound, "optimal")
            best = found if found.cost < best.cost else best
            if solution.proven:
                bound = best.cost
        best = replace(best, lower_bound=min(bound, best.cost))
        if not cycles or perf_counter() > deadline:
            break
    if best.gap == 0.0:
        return best
    return problem.select(area_choice(problem, best.chosen, 0.1 * time_limit), best.lower_bound, "optimal")


@record(frozen=True, eq=False)
class _Solution:
    """A choice, perhaps cyclic, or None; seconds no selection beats; whether the choice is optimal."""

    choice: IntArray | None
    bound: float
    proven: bool


class _Program:
    """The integer program of one problem, growing by cuts.

    Variables: x, one for each candidate e-node, binary; then y, one for each class they belong to or use.
    """

    def __init__(self, problem: Problem, upper_bound: float) -> None:
        self._arrays = problem.arrays
        self._scale = _SCALE / upper_bound
        by_class = _candidates(problem, upper_bound)
        self._nodes = np.array([node for nodes in by_class.values() for node in nodes], np.int64)
        self._x = {int(node): index for index, node in enumerate(self._nodes)}
        self._y = {klass: len(self._nodes) + index for index, klass in enumerate(by_class)}
        self._rows: list[tuple[list[int], list[float]]] = []
        self._upper: list[float] = []
        self._lower: list[float] = []
        start, children = problem.arrays.distinct_operands
        # uses[c, d]: the candidates of class c that have d as an operand.
        self._uses: dict[tuple[int, int], list[int]] = {}
        for klass, nodes in by_class.items():
            columns = [self._x[node] for node in nodes]
            self._add([*columns, self._y[klass]], [1.0] * len(columns) + [-1.0], 0.0, 0.0)
            for node in nodes:
                for child in children[start[node] : start[node + 1]].tolist():
                    self._uses.setdefault((klass, child), []).append(self._x[node])
        for (_klass, child), columns in self._uses.items():
            # Summed over the class: tighter than one row for each e-node, as a class takes one e-node only.
            self._add([*columns, self._y[child]], [1.0] * len(columns) + [-1.0], -inf, 0.0)
        for klass, child in self._uses:
            if klass < child and (child, klass) in self._uses:
                self._cut([klass, child])
        count = len(self._nodes) + len(self._y)
        self._objective = np.zeros(count)
        self._objective[: len(self._nodes)] = problem.costs[self._nodes] * self._scale
        self._integral = np.zeros(count, np.int64)
        self._integral[: len(self._nodes)] = 1
        self._least = np.zeros(count)
        self._least[[self._y[klass] for klass in problem.roots.tolist()]] = 1.0

    def _add(self, columns: list[int], values: list[float], lower: float, upper: float) -> None:
        self._rows.append((columns, values))
        self._lower.append(lower)
        self._upper.append(upper)

    def _cut(self, cycle: list[int]) -> None:
        """Forbid a cycle of classes, each using the next.

        At least one of its edges is absent, and if any of its classes is absent then one more edge than
        classes is; so the edges number at most the present classes other than any one of them.
        """
        edges = [
            column
            for klass, child in zip(cycle, cycle[1:] + cycle[:1], strict=True)
            for column in self._uses[klass, child]
        ]
        for left_out in range(len(cycle) if len(cycle) <= _ALL_FORMS_UP_TO else 1):
            others = [self._y[klass] for position, klass in enumerate(cycle) if position != left_out]
            self._add(edges + others, [1.0] * len(edges) + [-1.0] * len(others), -inf, 0.0)

    def solve(self, time_limit: float) -> _Solution:
        """Solve the program as it stands."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        if time_limit <= 0.0:
            return _Solution(None, 0.0, False)
        starts = np.cumsum([0] + [len(columns) for columns, _values in self._rows])
        columns = np.concatenate([columns for columns, _values in self._rows])
        values = np.concatenate([values for _columns, values in self._rows])
        matrix = csr_array((values, columns, starts), shape=(len(self._rows), len(self._objective)))
        result = milp(
            self._objective,
            constraints=LinearConstraint(matrix, np.array(self._lower), np.array(self._upper)),
            bounds=Bounds(self._least, np.ones(len(self._objective))),
            integrality=self._integral,
            options={"mip_rel_gap": _RELATIVE_GAP, "time_limit": time_limit},
        )
        bound = result.get("mip_dual_bound")
        seconds = 0.0 if bound is None or not bound > 0.0 else float(bound) / self._scale * (1.0 - _SLACK)
        if result.x is None:
            return _Solution(None, seconds, False)
        taken = self._nodes[result.x[: len(self._nodes)] > 0.5]
        choice = np.full(self._arrays.class_count, -1, np.int64)
        choice[self._arrays.class_of[taken]] = taken
        return _Solution(choice, seconds, result.status == 0)

    def cut_cycles(self, choice: IntArray) -> list[list[int]]:
        """Find disjoint cycles in a choice and cut them off."""
        start, children = self._arrays.distinct_operands
        color: dict[int, int] = {}
        cycles: list[list[int]] = []
        for root in np.flatnonzero(choice >= 0).tolist():
            path: list[int] = []
            pending = [root]
            while pending:
                klass = pending[-1]
                if klass not in color:
                    color[klass] = 1
                    path.append(klass)
                    node = choice[klass]
                    for child in children[start[node] : start[node + 1]].tolist():
                        if child not in color:
                            pending.append(child)
                        elif color[child] == 1:
                            cycles.append(path[path.index(child) :])
                else:
                    pending.pop()
                    if color[klass] == 1:
                        color[klass] = 2
                        path.pop()
        for cycle in cycles:
            self._cut(cycle)
        return cycles


def _candidates(problem: Problem, upper_bound: float) -> dict[int, list[int]]:
    """E-nodes of each class reachable from the roots that a selection below the upper bound may contain."""
    arrays = problem.arrays
    start, children = arrays.operand_lists
    costs = problem.costs.tolist()
    deepest = tree_choice(problem, deepest=True).cost.tolist()
    limit = upper_bound * (1.0 + _SLACK)
    by_class: dict[int, list[int]] = {}
    pending = problem.roots.tolist()
    while pending:
        klass = pending.pop()
        if klass in by_class:
            continue
        usable: list[tuple[float, int, set[int]]] = []
        for node in arrays.nodes_of(klass):
            below = children[start[node] : start[node + 1]]
            if klass in below or any(deepest[child] < 0.0 for child in below):
                continue
            if costs[node] + max((deepest[child] for child in below), default=0.0) <= limit:
                usable.append((costs[node], node, set(below)))
        kept = _undominated(usable)
        by_class[klass] = [node for _cost, node, _below in kept]
        pending.extend(
            child for _cost, _node, below in kept for child in sorted(below) if child not in by_class
        )
    return by_class


def _undominated(nodes: list[tuple[float, int, set[int]]]) -> list[tuple[float, int, set[int]]]:
    """Leave out e-nodes that cost no less than another one of the class and need all that it needs."""
    kept: list[tuple[float, int, set[int]]] = []
    for cost, node, below in sorted(nodes, key=lambda entry: (entry[0], len(entry[2]), entry[1])):
        if not any(other <= below for _cost, _node, other in kept):
            kept.append((cost, node, below))
    return kept
