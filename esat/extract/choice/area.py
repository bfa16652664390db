"""Choice by area: area flow, then local search on the exact cost of the whole DAG.

Every shared class is paid once. Starts from the cheapest of the tree choice, the area flows and the initial
selection, and only ever takes strict improvements, so the result is never worse than any of them. The work is
bounded by counts, not by the clock, unless a time limit breaks it off; ties go to the choice already made and
then to the lower e-node number, so the result depends on nothing but the e-graph, the costs and the roots.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp, inf, ldexp
from time import perf_counter

import numpy as np

from esat.extract.arrays import BoolArray, FloatArray, IntArray
from esat.extract.choice.choices import Area, State
from esat.extract.choice.moves import LARGEST_REGION, MANY_UNITS, Region
from esat.extract.choice.selection import Problem
from esat.extract.choice.tree import TreeChoice, tree_choice

ROUNDS = 8
EVICTIONS = 6
"""Classes that the search tries to do without, at most."""
EVICTED_NODES = 3000
"""E-nodes that the starts without these classes may have together: large problems get few, or none."""
ROUND_NODES = 1500
"""E-nodes that the rounds of moves of many classes may look at together, but for the first round."""
LARGE = 500
"""E-nodes from which on work is saved: one start is improved, and until passes gain next to nothing."""
NEXT_TO_NOTHING = 1 << 13
"""The cost over such a gain."""
HOPELESS = 1.05
"""Cost of a start, against the best known, from which on it is not improved."""
# The units of all e-nodes together stay below this power of two, far from the limits of int64.
_UNIT_BITS = 56


def area_choice(problem: Problem, initial: IntArray | None = None, deadline: float = inf) -> IntArray:
    """A cheap DAG for all roots.

    Parameters
    ----------
    initial
        int64 ``(classes,)``: e-nodes of a known selection, as far as they are in the problem; -1 elsewhere. A
        second start of the search: the result costs at most as much.
    deadline
        Time of ``perf_counter`` after which the best choice so far is returned.

    Returns
    -------
    int64 ``(classes,)``: an e-node for each class the roots need; classes they do not need may have one too.
    """
    if problem.arrays.node_count == 0:
        return np.full(problem.arrays.class_count, -1, np.int64)
    tree = tree_choice(problem)
    starts = [tree.choice]
    if initial is not None:
        starts.insert(0, completed(problem, initial))
    search = Search(problem, min(problem.cost_of(problem.live(start)) for start in starts))
    starts[-1] = search.flows(tree, starts[-1])
    count = problem.arrays.node_count
    if count > LARGE:
        starts = [min(starts, key=search.units_of)]
    found = min((search.descended(start) for start in starts), key=lambda found: found.units)
    search.shake(found, deadline, rounds=max(1, min(ROUNDS, ROUND_NODES // count)))
    best: IntArray = search.without(found, deadline).state.choice
    return best


def completed(problem: Problem, initial: IntArray) -> IntArray:
    """The initial selection, and for every class outside it the tree that adds least to it.

    Classes that need a class without an e-node are counted as outside.
    """
    return tree_choice(problem, closed(problem, initial)).choice


def closed(problem: Problem, choice: IntArray) -> IntArray:
    """The choice of the classes that need no class without an e-node; -1 elsewhere."""
    kept = choice.copy()
    problem.loops.drop_open(problem.arrays.links, kept, np.empty(len(kept), np.int64))
    return kept


def integer_units(problem: Problem, upper_bound: float) -> tuple[IntArray, float]:
    """Costs as integers, so that sums are exact and sums of any order are equal; -1 for an infinite cost.

    A unit is a power of two seconds, about 2**-55 of the upper bound for each e-node. An e-node that costs
    more than twice the upper bound, the cost of a known selection, counts as twice: no better selection
    contains it.

    Returns
    -------
    int64 ``(nodes,)``, and the seconds of one unit.
    """
    highest = 2.0 * upper_bound
    finite = problem.costs < inf
    capped = np.where(finite, np.minimum(problem.costs, highest), 0.0)
    _mantissa, exponent = frexp(highest * max(len(capped), 1))
    units = np.rint(np.ldexp(capped, _UNIT_BITS - exponent)).astype(np.int64)
    units = np.where(finite, np.maximum(units, (problem.costs > 0.0) & (upper_bound == 0.0)), -1)
    return units, ldexp(1.0, exponent - _UNIT_BITS)


def _alike(left: BoolArray, right: BoolArray) -> bool:
    """Whether two sets have most of their elements in common."""
    return bool(5 * np.count_nonzero(left & right) > 4 * np.count_nonzero(left | right))


@dataclass(slots=True)
class Found:
    """A choice, with what follows from it, and its units."""

    state: State
    units: int


class Search:
    """One search: its vectors, and what it does with them."""

    def __init__(self, problem: Problem, upper_bound: float) -> None:
        self._problem, self._loops, self._links = problem, problem.loops, problem.arrays.links
        self._units, self._unit = integer_units(problem, upper_bound)
        large = problem.arrays.node_count > LARGE
        self._negligible = int(upper_bound / self._unit) // NEXT_TO_NOTHING if large else 0
        self._costs = np.where(self._units >= 0, self._units.astype(np.float64), inf)

    def _found(self, choice: IntArray) -> Found:
        """A choice, with references and ranks."""
        state = State(choice.copy(), *np.zeros((7, len(choice)), np.int64))
        return Found(state, self._loops.prepare(self._links, self._units, self._problem.roots, state))

    def units_of(self, choice: IntArray) -> int:
        """Units of a choice."""
        return self._found(choice).units

    def flows(self, tree: TreeChoice, known: IntArray) -> IntArray:
        """The cheapest of the known choice and those of some passes of area flow."""
        zeros = np.zeros((5, len(known)), np.int64)
        state = State(tree.choice.copy(), zeros[0], tree.rank, tree.order, *zeros[1:])
        area = Area(np.ones(len(known)), tree.cost.copy(), known.copy())
        units, problem = self.units_of(known), self._problem
        self._loops.flow(self._links, problem.costs, self._units, problem.roots, state, area, units)
        best: IntArray = area.best
        return best

    def descended(self, choice: IntArray) -> Found:
        """A choice improved by one class after the other until no such move helps."""
        found = self._found(choice)
        self._descend(found)
        return found

    def _descend(self, found: Found) -> None:
        order = np.empty(np.count_nonzero(found.state.choice >= 0), np.int64)
        found.units -= self._loops.descend(self._links, self._units, found.state, order, self._negligible)

    def shake(self, found: Found, deadline: float, rounds: int) -> None:
        """Improve a choice that no move of one class helps by moves of many, in so many rounds."""
        for _ in range(rounds):
            if perf_counter() > deadline:
                break
            value, changed = self._choose_dead_anew(found.state)
            region = Region(
                value=value,
                member=np.zeros(LARGEST_REGION, np.int64),
                node=np.zeros(LARGEST_REGION, np.int64),
                former=np.zeros(LARGEST_REGION),
                inside=np.zeros(len(value), np.int64),
                log=np.zeros(2 * (len(self._units) + LARGEST_REGION), np.int64),
            )
            order = np.empty(np.count_nonzero(found.state.choice >= 0), np.int64)
            gained = self._loops.shake(
                self._links, self._units, found.state, region, order, self._negligible, changed
            )
            found.units -= gained
            if gained == 0:
                break

    def _choose_dead_anew(self, state: State) -> tuple[FloatArray, bool]:
        """Give every dead class the tree that adds least to what is live; ranks have to be made anew.

        Returns
        -------
        The prices of these trees, and whether any choice changed.
        """
        problem = replace(self._problem, costs=self._costs)
        tree = tree_choice(problem, np.where(state.references > 0, state.choice, -1))
        changed = not np.array_equal(state.choice, tree.choice)
        state.choice[:] = tree.choice
        return tree.cost, changed

    def without(self, found: Found, deadline: float) -> Found:
        """Try to do without one class, and all that it serves, at a time; keep what is cheaper.

        Where a whole chain of classes can be had in two forms, every single step from one to the other
        is a loss. The classes that most of the cost hangs on are tried, one of each chain.
        """
        allowed = min(EVICTIONS, EVICTED_NODES // max(self._problem.arrays.node_count, 1))
        best, tried = found, list[BoolArray]()
        candidates = self._by_dependents(best.state) if allowed else []
        while candidates and len(tried) < allowed and perf_counter() < deadline:
            klass = candidates.pop()
            dependents = self._dependents(best.state, klass)
            if any(_alike(dependents, other) for other in tried):
                continue
            tried.append(dependents)
            evicted = self._evicted(best.state, klass, dependents)
            other = None if evicted is None else self._found(evicted)
            if other is None or other.units > HOPELESS * best.units:
                continue
            self._descend(other)
            self.shake(other, deadline, rounds=1)
            if other.units < best.units:
                best = other
                candidates = self._by_dependents(best.state)
        return best

    def _by_dependents(self, state: State) -> list[int]:
        """Live classes that are no roots, those that most others depend on last."""
        scratch, counts = np.zeros((2, len(state.choice)), np.int64)
        self._loops.count_dependents(self._links, state, scratch, counts)
        counts[self._problem.roots] = 0
        order = np.argsort(counts, kind="stable")
        classes: list[int] = order[counts[order] > 0].tolist()
        return classes

    def _dependents(self, state: State, klass: int) -> BoolArray:
        """Which live classes depend on a class, itself included."""
        marked = np.zeros(len(state.choice), np.int64)
        self._loops.mark_dependents(self._links, state, klass, marked)
        dependents: BoolArray = marked == 1
        return dependents

    def _evicted(self, state: State, klass: int, dependents: BoolArray) -> IntArray | None:
        """The choice with the trees that add least in place of a class and all that depends on it."""
        problem = self._problem
        kept = np.where((state.references > 0) & ~dependents, state.choice, -1)
        costs = self._costs.copy()
        costs[problem.arrays.class_start[klass] : problem.arrays.class_start[klass + 1]] = inf
        found = tree_choice(replace(problem, costs=costs), kept).choice
        return found if (found[problem.roots] >= 0).all() else None

    def changes(self, choice: IntArray) -> list[tuple[float, int, int]]:
        """What every other e-node of every live class adds to the cost, if it alone is changed.

        Returns
        -------
        Seconds, class and e-node, ascending. E-nodes that would close a cycle are left out.
        """
        added = np.empty(len(self._units), np.int64)
        self._loops.price_changes(self._links, self._units, self._found(choice).state, added)
        nodes = np.flatnonzero(added > -MANY_UNITS)
        classes = self._problem.arrays.class_of[nodes]
        return sorted(
            zip((added[nodes] * self._unit).tolist(), classes.tolist(), nodes.tolist(), strict=True)
        )
