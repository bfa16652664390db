"""Leaving out e-nodes that some optimal selection does without.

Most classes of a saturated e-graph have one sensible e-node. What is left after the others are gone is
small, so that local search sees further and integer programs are solved sooner. Vocabulary: a class is
*forced* if every selection contains it; an e-node *needs* the classes that every selection with it contains.

Two reasons to leave an e-node out:

- *bound*: what it needs, and what is forced, costs more than a selection that is known;
- *dominance*: another e-node of the class costs less even if all it has beyond the needs of the first is
  computed afresh, as trees. Let S be a selection with the first; give all classes of those trees, which are
  closed, their e-nodes of the trees, and the class the other e-node: the new selection costs less. It is
  acyclic if no tree contains the class, and nothing that is shared depends on it. What the first needs
  ranks below the class in S; what is forced is trusted if it cannot reach the class at all. So no optimal
  selection contains an e-node that is dominated with a strict gain. If the costs are equal, e-nodes of the
  trees stay; then an exchange reduces the number of e-nodes left out, hence some optimal selection has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf

import numpy as np

from esat.extract.arrays import EGraphArrays, FloatArray, IntArray, distinct, starts_of
from esat.extract.bits import bits_of
from esat.extract.selection import Problem
from esat.extract.sift import EQUAL, sifted
from esat.extract.tree import TreeChoice, as_array

LARGEST = 20_000
"""E-nodes up to which a problem is reduced; sets of classes are bit strings, of quadratic size together."""
RIVALS = 4
"""E-nodes of a class that the others are compared with: those of the cheapest trees."""
_WORTH_ANOTHER_ROUND = 0.03  # share of the candidates that a round has to leave out


@dataclass(frozen=True, eq=False)
class Reduction:
    """A smaller problem with the same optimum, but for what every selection contains.

    Attributes
    ----------
    problem
        The problem; its arrays have no term numbers and no facts.
    nodes, classes
        int64: the e-node and the class of the original problem, by those of the smaller one.
    fixed
        int64: e-nodes of the original problem that every selection of the smaller one goes with.
    fixed_cost
        Seconds of these.
    """

    problem: Problem
    nodes: IntArray
    classes: IntArray
    fixed: IntArray
    fixed_cost: float

    def restrict(self, choice: IntArray) -> IntArray:
        """A choice of the original problem in the smaller one, -1 where its e-node was left out."""
        if len(self.nodes) == 0:
            return np.zeros(0, np.int64)
        found = np.searchsorted(self.nodes, choice[self.classes])
        found = np.minimum(found, len(self.nodes) - 1)
        kept: IntArray = np.where(self.nodes[found] == choice[self.classes], found, -1)
        return kept

    def restrict_trees(self, tree: TreeChoice) -> TreeChoice:
        """Trees of the original problem for the classes of the smaller one, what is fixed included."""
        order = np.searchsorted(self.classes, as_array(tree.order)[: tree.count])
        order = np.minimum(order, max(len(self.classes) - 1, 0))
        order = (
            order[self.classes[order] == as_array(tree.order)[: tree.count]]
            if len(self.classes)
            else order[:0]
        )
        costs = np.array(tree.cost, np.float64)[self.classes]
        return TreeChoice(self.restrict(as_array(tree.choice)), costs, order, len(order))

    def followed_by(self, other: Reduction) -> Reduction:
        """The reduction to what another one makes of the smaller problem."""
        fixed = np.sort(np.append(self.fixed, self.nodes[other.fixed]))
        nodes, classes = self.nodes[other.nodes], self.classes[other.classes]
        return Reduction(other.problem, nodes, classes, fixed, self.fixed_cost + other.fixed_cost)

    def expand(self, choice: IntArray, arrays: EGraphArrays) -> IntArray:
        """A choice of the smaller problem in the original one, int64 ``(classes,)``."""
        chosen = np.full(arrays.class_count, -1, np.int64)
        live = choice >= 0
        chosen[self.classes[live]] = self.nodes[choice[live]]
        chosen[arrays.class_of[self.fixed]] = self.fixed
        return chosen


def reduced(problem: Problem, tree: TreeChoice, upper_bound: float, rounds: int = 1) -> Reduction:
    """The problem without e-nodes that a cheapest selection can do without.

    Parameters
    ----------
    tree
        The cheapest trees of the problem.
    upper_bound
        Seconds of a known selection. The smaller problem has a selection that is as cheap as any of the
        original one, if that is cheaper than the bound; it has the tree choice or a cheaper one.
    rounds
        How often to start over with what is left, at most.
    """
    left = sifted(problem, tree)
    coarse = _restricted(problem, left.nodes, left.fixed, left.roots)
    if len(left.nodes) > LARGEST:
        return coarse
    reducer = _Reducer(coarse.problem, coarse.restrict_trees(tree), upper_bound - coarse.fixed_cost)
    kept, fixed, roots = (np.array(part, np.int64) for part in reducer.run(rounds))
    return coarse.followed_by(_restricted(coarse.problem, kept, fixed, roots))


class _Reducer:
    """The candidates of each class, getting fewer."""

    def __init__(self, problem: Problem, tree: TreeChoice, upper_bound: float) -> None:
        arrays = problem.arrays
        start, children = arrays.operand_lists
        self.children = [children[start[node] : start[node + 1]] for node in range(arrays.node_count)]
        self.costs: list[float] = problem.costs.tolist()
        self.roots: list[int] = problem.roots.tolist()
        self.limit = upper_bound * (1.0 + EQUAL)
        tree_cost = np.array(tree.cost, np.float64)
        self.tree_cost: list[float] = tree_cost.tolist()
        self.tree_node: list[int] = as_array(tree.choice).tolist()
        self.order: list[int] = as_array(tree.order)[: tree.count].tolist()
        self.rank = {klass: rank for rank, klass in enumerate(self.order)}
        usable, self.tree_total = _trees(problem, tree_cost)
        self.candidates: dict[int, list[int]] = {}
        class_start = arrays.class_start.tolist()
        for klass in self.order:
            nodes = range(class_start[klass], class_start[klass + 1])
            self.candidates[klass] = [node for node in nodes if usable[node]]
        self.need: dict[int, int] = {}
        self.must: dict[int, int] = {}
        self.outside: dict[int, int] = {}
        self.alone: dict[int, bool] = {}

    def run(self, rounds: int) -> tuple[list[int], list[int], list[int]]:
        """E-nodes to choose from, e-nodes that are in every selection, and forced classes with a choice."""
        self._reach()
        self._find_components()
        for _ in range(rounds):
            self._find_needs()
            before = sum(len(self.candidates[klass]) for klass in self.order)
            forced = 0
            for root in self.roots:
                forced |= self.must[root]
            self._leave_out(forced)
            self._reach()
            after = sum(len(self.candidates[klass]) for klass in self.order)
            if before - after <= _WORTH_ANOTHER_ROUND * before:
                break
        forced = self._forced_below(forced)
        # A class on a cycle stays, even without a choice: others may not depend on it both ways.
        settled = {
            klass
            for klass in self.order
            if forced >> klass & 1 and len(self.candidates[klass]) == 1 and self.alone[klass]
        }
        fixed = sorted(self.candidates[klass][0] for klass in settled)
        kept = sorted(node for klass in self.order if klass not in settled for node in self.candidates[klass])
        return kept, fixed, [klass for klass in bits_of(forced) if klass not in settled]

    def _forced_below(self, forced: int) -> int:
        """Forced classes, and the operands of those that have one candidate."""
        pending = list(bits_of(forced))
        while pending:
            nodes = self.candidates[pending.pop()]
            for child in self.children[nodes[0]] if len(nodes) == 1 else ():
                if not forced >> child & 1:
                    forced |= 1 << child
                    pending.append(child)
        return forced

    def _reach(self) -> None:
        """Forget the classes that no root reaches."""
        seen = set(self.roots)
        pending = list(self.roots)
        while pending:
            for node in self.candidates.get(pending.pop(), ()):
                for child in self.children[node]:
                    if child not in seen:
                        seen.add(child)
                        pending.append(child)
        self.order = [klass for klass in self.order if klass in seen]

    def _find_components(self) -> None:
        """For each class, the classes of other strongly connected components, as bits."""
        everything = (1 << (max(self.order, default=0) + 1)) - 1
        below = {
            klass: [child for node in self.candidates[klass] for child in self.children[node]]
            for klass in self.order
        }
        for component in strong_components(self.order, below):
            own = 0
            for klass in component:
                own |= 1 << klass
            for klass in component:
                self.outside[klass] = everything & ~own
                self.alone[klass] = len(component) == 1

    def _find_needs(self) -> None:
        """Which classes each candidate and each class needs, as bits; drops candidates that need themselves.

        Two passes, operands before users: what is found is true after each, and rarely grows in a third.
        """
        must = self.must = {klass: 1 << klass for klass in self.order}
        need, children = self.need, self.children
        for _ in range(2):
            for klass in self.order:
                bit = 1 << klass
                common = -1
                acyclic = []
                for node in self.candidates[klass]:
                    bits = 0
                    for child in children[node]:
                        bits |= must[child]
                    need[node] = bits
                    if not bits & bit:
                        acyclic.append(node)
                        common &= bits
                if acyclic:  # else no selection below the bound contains the class
                    self.candidates[klass] = acyclic
                    must[klass] = common | bit

    def _leave_out(self, forced: int) -> None:
        """Drop candidates by bound and by dominance."""
        least = {klass: min(self.costs[node] for node in self.candidates[klass]) for klass in self.order}
        optional = {klass: self.must[klass] & ~forced for klass in self.order}
        price = {klass: fsum(least[other] for other in bits_of(optional[klass])) for klass in self.order}
        spare = self.limit - fsum(least[klass] for klass in bits_of(forced))
        for klass in self.order:
            nodes = self.candidates[klass]
            if len(nodes) > 1:
                limit = spare + (least[klass] if forced >> klass & 1 else 0.0)
                affordable = [
                    node for node in nodes if self.costs[node] + self._beyond(node, optional, price) <= limit
                ]
                trusted = forced & self.outside[klass]
                self.candidates[klass] = self._undominated(klass, affordable or nodes, trusted)

    def _beyond(self, node: int, optional: dict[int, int], price: dict[int, float]) -> float:
        """Least seconds of what is not forced and the e-node needs; operands that overlap count once."""
        total, seen = 0.0, 0
        for child in self.children[node]:
            if not optional[child] & seen:
                seen |= optional[child]
                total += price[child]
        return total

    def _undominated(self, klass: int, nodes: list[int], trusted: int) -> list[int]:
        """The candidates of a class that no other one dominates."""
        cheapest = sorted((self.tree_total[node], node) for node in nodes)[:RIVALS]
        rivals = [(self.costs[node], node) for _total, node in cheapest]
        return [node for node in nodes if not self._dominated(klass, node, rivals, trusted)]

    def _dominated(self, klass: int, node: int, rivals: list[tuple[float, int]], trusted: int) -> bool:
        cost = self.costs[node]
        paid = 0
        for own_cost, rival in rivals:
            if rival == node or own_cost > cost:
                continue
            total = own_cost
            paid = paid or self.need[node] | trusted
            for child in self.children[rival]:
                if not paid >> child & 1:
                    total += self.tree_cost[child] if self.rank[child] < self.rank[klass] else inf
                    if total > cost:
                        break
            if total < cost * (1.0 - EQUAL):
                return True
            # Ties fall to the e-node of the tree, else to the lower number.
            favoured = rival == self.tree_node[klass] or rival < node != self.tree_node[klass]
            if total <= cost and favoured:
                return True
        return False


def _trees(problem: Problem, tree_cost: FloatArray) -> tuple[list[bool], list[float]]:
    """For each e-node whether it has a finite term, and what it costs with the trees of its operands."""
    start, children = problem.arrays.distinct_operands
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    count = len(start) - 1
    lacking = np.bincount(owner, weights=tree_cost[children] < 0.0, minlength=count)
    total = problem.costs + np.bincount(owner, weights=tree_cost[children], minlength=count)
    usable = np.isfinite(problem.costs) & (lacking == 0)
    return usable.tolist(), total.tolist()


def strong_components(classes: Sequence[int], below: Mapping[int, Sequence[int]]) -> Iterator[list[int]]:
    """Strongly connected components (Tarjan, "Depth-first search and linear graph algorithms", 1972)."""
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    done: set[int] = set()
    stack: list[int] = []
    for first in classes:
        path = [] if first in number else [(first, iter(below[first]))]
        if path:
            number[first] = lowest[first] = len(number)
            stack.append(first)
        while path:
            klass, children = path[-1]
            for child in children:
                if child not in number:
                    number[child] = lowest[child] = len(number)
                    stack.append(child)
                    path.append((child, iter(below[child])))
                    break
                if child not in done:
                    lowest[klass] = min(lowest[klass], number[child])
            else:
                path.pop()
                if path:
                    user = path[-1][0]
                    lowest[user] = min(lowest[user], lowest[klass])
                if lowest[klass] == number[klass]:
                    component: list[int] = []
                    while not component or component[-1] != klass:
                        component.append(stack.pop())
                    done.update(component)
                    yield component


def _restricted(problem: Problem, nodes: IntArray, fixed: IntArray, roots: IntArray) -> Reduction:
    """The problem of these e-nodes, in ascending order; operands that are fixed are no operands any more."""
    arrays = problem.arrays
    classes, class_of = distinct(arrays.class_of[nodes])
    number = np.full(arrays.class_count, -1, np.int64)
    number[classes] = np.arange(len(classes))
    counts = arrays.arity[nodes]
    edges = np.arange(counts.sum()) + np.repeat(
        arrays.operand_start[nodes] - (np.cumsum(counts) - counts), counts
    )
    operands = number[arrays.operands[edges]]
    owner = np.repeat(np.arange(len(nodes)), counts)[operands >= 0]
    smaller = EGraphArrays(
        operator_names=arrays.operator_names,
        operator=arrays.operator[nodes],
        class_of=class_of,
        operand_start=starts_of(owner, len(nodes)),
        operands=operands[operands >= 0],
        attribute=arrays.attribute[nodes],
        attribute_values=arrays.attribute_values,
        subsumed=arrays.subsumed[nodes],
        class_start=starts_of(class_of, len(classes)),
        term_class=np.zeros(0, np.int64),
        facts={},
    )
    inner = Problem(smaller, problem.costs[nodes], number[roots])
    return Reduction(inner, nodes, classes, fixed, fsum(problem.costs[fixed].tolist()))
