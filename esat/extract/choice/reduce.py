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

from math import fsum

import numpy as np

from esat.base.records import record
from esat.egraph.analyses.distinct import distinct
from esat.extract.arrays import EGraphArrays, IntArray, starts_of
from esat.extract.choice.selection import Problem
from esat.extract.choice.thinning import BITS, EQUAL, RIVALS, Scratch, Thinning, Trees
from esat.extract.choice.tree import TreeChoice

LARGEST = 20_000
"""E-nodes up to which all that a class needs is found out; these sets are of quadratic size together."""
ROUNDS = 2
"""How often what is left is looked at again, unless next to nothing was left out."""


@record(frozen=True, eq=False)
class ReducedProblem:
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

    def expand(self, choice: IntArray, arrays: EGraphArrays) -> IntArray:
        """A choice of the smaller problem in the original one, int64 ``(classes,)``."""
        chosen = np.full(arrays.class_count, -1, np.int64)
        live = choice >= 0
        chosen[self.classes[live]] = self.nodes[choice[live]]
        chosen[arrays.class_of[self.fixed]] = self.fixed
        return chosen


def reduced(problem: Problem, tree: TreeChoice, upper_bound: float, rounds: int = ROUNDS) -> ReducedProblem:
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
    arrays, loops, links = problem.arrays, problem.loops, problem.arrays.links
    nodes, classes = arrays.node_count, arrays.class_count
    words = -(-classes // BITS) if nodes <= LARGEST else 0
    integers, floats = np.zeros((3, classes), np.int64), np.zeros((2, classes))
    thinning = Thinning(
        candidate=np.zeros(nodes, np.int64),
        total=np.zeros(nodes),
        needs=np.zeros(classes * words, np.int64),
        forced=integers[0],
        reached=integers[1],
        component=integers[2],
        least=floats[0],
        price=floats[1],
    )
    rows = np.zeros((2, words), np.int64)
    scratch = Scratch(*rows, *np.zeros((6, max(classes, RIVALS)), np.int64))
    trees = Trees(tree.choice, tree.cost, tree.rank, tree.order)
    bound = upper_bound * (1.0 + EQUAL)
    loops.thin_out(links, problem.costs, problem.roots, trees, bound, rounds, thinning, scratch)
    left, fixed = (np.flatnonzero(thinning.candidate == mark) for mark in (1, 2))
    return _restricted(problem, left, fixed, np.flatnonzero(thinning.forced == 1))


def _restricted(problem: Problem, nodes: IntArray, fixed: IntArray, roots: IntArray) -> ReducedProblem:
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
    inner = Problem(smaller, problem.costs[nodes], number[roots], problem.loops)
    return ReducedProblem(inner, nodes, classes, fixed, fsum(problem.costs[fixed].tolist()))
