"""Choice by area: area flow, then local search on the exact cost of the whole DAG.

Every shared class is paid once. Starts from the cheapest of the tree choice, the area flows and the initial
selection, and only ever takes strict improvements, so the result is never worse than any of them. The work is
bounded by counts, not by the clock, unless a time limit breaks it off; ties go to the choice already made and
then to the lower e-node number, so the result depends on nothing but the e-graph, the costs and the roots.
"""

from __future__ import annotations

from dataclasses import replace
from math import frexp, inf, ldexp
from time import perf_counter

import numpy as np

from esat.extract import moves
from esat.extract.arrays import IntArray
from esat.extract.backend import Backend
from esat.extract.bits import bits_of
from esat.extract.kernels import Links, State
from esat.extract.selection import Problem
from esat.extract.tree import TreeChoice, as_array, links_of, tree_choice

FLOW_PASSES = 2
EXACT_PASSES = 16
ROUNDS = 8
EVICTIONS = 3
"""Classes that the search tries to do without, at most."""
EVICTED_NODES = 1500
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


def area_choice(
    problem: Problem, backend: Backend, initial: IntArray | None = None, deadline: float = inf
) -> IntArray:
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
    links = links_of(problem, backend)
    tree = tree_choice(problem, links, backend)
    starts = [as_array(tree.choice)]
    if initial is not None:
        starts.insert(0, completed(problem, links, backend, initial))
    costs = [problem.cost_of(problem.live(start)) for start in starts]
    search = Search(problem, links, backend, min(costs))
    starts[-1] = search.flows(tree, starts[-1], deadline)
    count = max(problem.arrays.node_count, 1)
    if count > LARGE:
        starts = [min(starts, key=lambda start: problem.cost_of(problem.live(start)))]
    states = [search.descended(start, deadline) for start in starts]
    best = min(states, key=lambda state: problem.cost_of(problem.live(as_array(state.choice))))
    search.shake(best, deadline, rounds=max(1, min(ROUNDS, ROUND_NODES // count)))
    return search.without(as_array(best.choice), deadline)


def completed(problem: Problem, links: Links, backend: Backend, initial: IntArray) -> IntArray:
    """The initial selection, and for every class outside it the tree that adds least to it.

    Classes that need a class without an e-node are counted as outside.
    """
    chosen = closed(problem, initial)
    paid = backend.vector((chosen >= 0).astype(np.int64))
    return as_array(tree_choice(problem, links, backend, paid, backend.vector(chosen)).choice)


def closed(problem: Problem, choice: IntArray) -> IntArray:
    """The choice of the classes that need no class without an e-node; -1 elsewhere."""
    arrays = problem.arrays
    kept = choice.copy()
    start, parents = (vector.tolist() for vector in arrays.parents)
    pending = np.flatnonzero(choice < 0).tolist()
    while pending:
        missing = pending.pop()
        for node in parents[start[missing] : start[missing + 1]]:
            user = arrays.class_of[node]
            if kept[user] == node:
                kept[user] = -1
                pending.append(int(user))
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


def _alike(left: int, right: int) -> bool:
    """Whether two sets, as bits, have most of their elements in common."""
    return 5 * (left & right).bit_count() > 4 * (left | right).bit_count()


def _chosen_classes(state: State) -> int:
    return int(np.count_nonzero(as_array(state.choice) >= 0))


class Search:
    """One search: its vectors, and what it does with them."""

    def __init__(self, problem: Problem, links: Links, backend: Backend, upper_bound: float) -> None:
        self._problem = problem
        self._links = links
        self._backend = backend
        units, self._unit = integer_units(problem, upper_bound)
        self._units = backend.vector(units)
        self._roots = backend.vector(problem.roots)
        large = problem.arrays.node_count > LARGE
        self._negligible = int(upper_bound / self._unit) // NEXT_TO_NOTHING if large else 0
        self._costs = np.where(units >= 0, units.astype(np.float64), inf)

    def _state(self, choice: IntArray) -> State:
        """The choice with references and ranks."""
        vectors = [self._backend.integers(len(choice), 0) for _ in range(7)]
        state = State(self._backend.vector(choice), *vectors)
        self._backend.rank_classes(self._links, state)
        return state

    def _count(self, state: State, count: int) -> int:
        return self._backend.count_references(self._links, self._units, self._roots, state, count)

    def flows(self, tree: TreeChoice, known: IntArray, deadline: float) -> IntArray:
        """The cheapest of the known choice and those of some passes of area flow."""
        backend, links, count = self._backend, self._links, tree.count
        best, best_units = known, self._count(self._state(known), count)
        rank = np.full(len(known), -1, np.int64)
        rank[as_array(tree.order)[:count]] = np.arange(count)
        state = self._state(as_array(tree.choice))
        state = state._replace(rank=backend.vector(rank), ranked=tree.order)
        costs = backend.vector(self._problem.costs)
        expected = backend.floats(len(known), 1.0)
        flow = backend.vector(np.array(tree.cost, np.float64))
        self._count(state, count)
        for _ in range(FLOW_PASSES):
            backend.flow_pass(links, costs, tree.order, count, state, expected, flow)
            units = self._count(state, count)
            if units < best_units:
                best, best_units = as_array(state.choice), units
            if perf_counter() > deadline:
                break
        return best

    def descended(self, choice: IntArray, deadline: float) -> State:
        """A choice improved by one class after the other until no such move helps."""
        state = self._state(choice)
        count = _chosen_classes(state)
        self._count(state, count)
        self._exact(state, count, deadline)
        return state

    def shake(self, state: State, deadline: float, rounds: int) -> None:
        """Improve a choice that no move of one class helps by moves of many, in so many rounds."""
        count = _chosen_classes(state)
        for _ in range(rounds):
            if perf_counter() > deadline:
                break
            region, changed = self._choose_dead_anew(state)
            gained = self._backend.share_pass(self._links, self._units, state, region)
            if not changed and gained == 0:
                break
            if self._exact(state, count, deadline) + gained == 0:
                break

    def without(self, choice: IntArray, deadline: float) -> IntArray:
        """Try to do without one class, and all that it serves, at a time; keep what is cheaper.

        Where a whole chain of classes can be had in two forms, every single step from one to the other
        is a loss. The classes that most of the cost hangs on are tried, one of each chain.
        """
        allowed = min(EVICTIONS, EVICTED_NODES // max(self._problem.arrays.node_count, 1))
        if allowed == 0:
            return choice
        best, best_cost = choice, self._problem.cost_of(self._problem.live(choice))
        tried: list[int] = []
        candidates = self._by_dependents(best)
        while candidates and len(tried) < allowed and perf_counter() < deadline:
            klass, dependents = candidates.pop()
            if any(_alike(dependents, other) for other in tried):
                continue
            tried.append(dependents)
            other = self._evicted(best, klass, dependents)
            if other is None or self._problem.cost_of(self._problem.live(other)) > HOPELESS * best_cost:
                continue
            state = self.descended(other, deadline)
            self.shake(state, deadline, rounds=1)
            other = as_array(state.choice)
            cost = self._problem.cost_of(self._problem.live(other))
            if cost < best_cost:
                best, best_cost, candidates = other, cost, self._by_dependents(other)
        return best

    def _by_dependents(self, choice: IntArray) -> list[tuple[int, int]]:
        """Live classes that are no roots, with those that depend on them, as bits; those with most last."""
        state = self._state(choice)
        count = int(np.count_nonzero(choice >= 0))
        self._count(state, count)
        start, children = self._links.child_start, self._links.children
        dependents = [0] * len(choice)
        found = []
        roots = set(self._problem.roots.tolist())
        for klass in reversed([int(klass) for klass in state.ranked[:count]]):
            if state.references[klass] > 0:
                dependents[klass] |= 1 << klass
                node = state.choice[klass]
                for edge in range(start[node], start[node + 1]):
                    dependents[children[edge]] |= dependents[klass]
                if klass not in roots:
                    found.append((dependents[klass].bit_count(), klass, dependents[klass]))
        return [(klass, users) for _count, klass, users in sorted(found)]

    def _evicted(self, choice: IntArray, klass: int, dependents: int) -> IntArray | None:
        """The choice with the trees that add least in place of a class and all that depends on it."""
        problem, backend = self._problem, self._backend
        kept = problem.live(choice)
        kept[list(bits_of(dependents))] = -1
        costs = self._costs.copy()
        costs[problem.arrays.class_start[klass] : problem.arrays.class_start[klass + 1]] = inf
        paid = backend.vector((kept >= 0).astype(np.int64))
        tree = tree_choice(replace(problem, costs=costs), self._links, backend, paid, backend.vector(kept))
        found = as_array(tree.choice)
        return found if (found[problem.roots] >= 0).all() else None

    def changes(self, choice: IntArray) -> list[tuple[float, int, int]]:
        """What every other e-node of every live class adds to the cost, if it alone is changed.

        Returns
        -------
        Seconds, class and e-node, ascending. E-nodes that would close a cycle are left out.
        """
        links, units = self._links, self._units
        state = self._state(choice)
        self._count(state, int(np.count_nonzero(choice >= 0)))
        found: list[tuple[float, int, int]] = []
        for klass in np.flatnonzero(as_array(state.references)).tolist():
            old = state.choice[klass]
            price = moves.release(links, units, state, old)
            for node in self._problem.arrays.nodes_of(klass):
                if node != old and units[node] >= 0 and moves.fits(links, state, klass, node):
                    total, done = moves.acquire(links, units, state, node, moves.MANY_UNITS)
                    moves.undo(links, state, node, done)
                    found.append(((total - price) * self._unit, klass, node))
            moves.acquire(links, units, state, old, moves.MANY_UNITS)
        return sorted(found)

    def _exact(self, state: State, count: int, deadline: float) -> int:
        gained = 0
        for number in range(EXACT_PASSES):
            order = self._backend.copy(state.ranked)
            step = self._backend.exact_pass(self._links, self._units, state, order, count, number % 2 == 1)
            gained += step
            if step <= self._negligible or perf_counter() > deadline:
                break
        return gained

    def _choose_dead_anew(self, state: State) -> tuple[moves.Region, bool]:
        """Give every dead class the tree that adds least to what is live.

        Returns
        -------
        The prices of these trees, and whether any choice changed.
        """
        backend, nodes = self._backend, self._problem.arrays.node_count
        before = as_array(state.choice)
        live = backend.vector((as_array(state.references) > 0).astype(np.int64))
        problem = replace(self._problem, costs=self._costs)
        tree = tree_choice(problem, self._links, backend, live, state.choice)
        backend.rank_classes(self._links, state)
        region = moves.Region(
            value=tree.cost,
            member=backend.integers(moves.LARGEST_REGION, 0),
            node=backend.integers(moves.LARGEST_REGION, 0),
            former=backend.floats(moves.LARGEST_REGION, 0.0),
            inside=backend.integers(len(before), 0),
            log=backend.integers(2 * (nodes + moves.LARGEST_REGION), 0),
        )
        return region, not np.array_equal(before, as_array(state.choice))
