"""Changing a selection: what other e-nodes would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from esat.errors import CompileError
from esat.extract.arrays import BoolArray, EGraphArrays, FloatArray, IntArray
from esat.extract.choice.area import Search, completed
from esat.extract.choice.selection import Problem, Selection
from esat.extract.choice.tree import tree_choice
from esat.extract.verify import topological_classes

Move = tuple[tuple[int, int], ...]
"""Classes and the e-nodes they are to take together."""


def single_moves(
    arrays: EGraphArrays,
    costs: Sequence[float] | FloatArray,
    roots: Sequence[int] | IntArray,
    selection: Selection,
    slack: float = inf,
) -> tuple[Move, ...]:
    """All changes of one live class that add at most ``slack`` seconds, most promising first."""
    changes = priced_moves(arrays, costs, roots, selection)
    return tuple(((klass, node),) for added, klass, node in changes if added <= slack)


def priced_moves(
    arrays: EGraphArrays,
    costs: Sequence[float] | FloatArray,
    roots: Sequence[int] | IntArray,
    selection: Selection,
) -> list[tuple[float, int, int]]:
    """What each other e-node of each live class would add: seconds, class and e-node, ascending.

    Operands that are not live are computed by the trees that add least. E-nodes that would close a cycle
    are left out.
    """
    problem = Problem.of(arrays, costs, roots)
    choice = completed(problem, selection.chosen)
    dearest = float(problem.costs[problem.costs < inf].max(initial=0.0))
    return Search(problem, problem.cost_of(selection.chosen) + dearest).changes(choice)


class Editor:
    """Applies moves to selections of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def apply(self, selection: Selection, move: Move) -> Selection | None:
        """The selection after a move, None where the move is impossible.

        Other live classes keep their e-nodes and the rest is completed by least tree cost; if that is
        cyclic, the users of the moved classes are chosen anew as well.
        """
        problem = self._problem
        moved = {klass for klass, _node in move}
        costs = problem.costs.copy()
        for klass, node in move:
            nodes = np.arange(problem.arrays.class_start[klass], problem.arrays.class_start[klass + 1])
            if node not in nodes or costs[node] == inf:
                return None
            costs[nodes[nodes != node]] = inf
        restricted = replace(problem, costs=costs)
        keep = selection.chosen >= 0
        keep[list(moved)] = False
        choice = self._complete(restricted, selection, keep)
        if choice is None:
            keep[self._users(selection, moved)] = False
            choice = self._complete(restricted, selection, keep)
        if choice is None or any(choice[klass] != node for klass, node in move):
            return None
        cost = problem.cost_of(choice)
        return Selection(choice, cost, min(selection.lower_bound, cost), selection.method)

    def _complete(self, problem: Problem, selection: Selection, keep: BoolArray) -> IntArray | None:
        choice = tree_choice(problem, np.where(keep, selection.chosen, -1)).choice
        try:
            needed = topological_classes(problem.arrays, choice, problem.roots)
        except CompileError:
            return None
        chosen = np.full(problem.arrays.class_count, -1, np.int64)
        chosen[needed] = choice[needed]
        return chosen

    def _users(self, selection: Selection, moved: set[int]) -> list[int]:
        """Live classes that depend on the moved ones, themselves included."""
        arrays = self._problem.arrays
        found = set(moved)
        pending = list(moved)
        while pending:
            for node in arrays.parents_of(pending.pop()).tolist():
                user = int(arrays.class_of[node])
                if selection.chosen[user] == node and user not in found:
                    found.add(user)
                    pending.append(user)
        return sorted(found)
