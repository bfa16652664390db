"""A first, coarse reduction of the problem, on arrays: many e-nodes go within milliseconds.

What may be left out, and why, is said in ``reduce``. Here the needs of an e-node are its operands, the forced
classes are those that follow from the roots by operands that all e-nodes of a class have in common, and what
is forced is trusted unless it may be on a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from esat.extract.arrays import BoolArray, EGraphArrays, FloatArray, IntArray, starts_of
from esat.extract.selection import Problem
from esat.extract.tree import TreeChoice, as_array

RIVALS = 2
"""E-nodes of a class that the others are compared with: those of the cheapest trees."""
EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class Sifted:
    """What is left of a problem.

    Attributes
    ----------
    nodes
        int64: e-nodes to choose from, ascending.
    fixed
        int64: e-nodes that are in every selection, ascending.
    roots
        int64: forced classes with a choice, ascending.
    """

    nodes: IntArray
    fixed: IntArray
    roots: IntArray


def sifted(problem: Problem, tree: TreeChoice) -> Sifted:
    """The e-nodes that a cheapest selection may need, by what is seen at a glance.

    Parameters
    ----------
    tree
        The cheapest trees of the problem.
    """
    edges = _Edges.of(problem, tree)
    arrays, candidate = problem.arrays, edges.usable.copy()
    forced = _forced(edges, candidate, problem.roots)
    candidate[_dominated(edges, candidate, forced & ~edges.may_be_cyclic)] = False
    forced = _forced(edges, candidate, problem.roots)
    settled = forced & (_by_class(arrays, candidate) == 1) & ~edges.may_be_cyclic
    roots = np.flatnonzero(forced & ~settled)
    left = _reached(edges, candidate, settled, roots)
    return Sifted(
        np.flatnonzero(candidate & left[arrays.class_of]),
        np.flatnonzero(candidate & settled[arrays.class_of]),
        roots,
    )


@dataclass(frozen=True, eq=False)
class _Edges:
    """The e-graph from e-nodes to distinct operands, with what the trees say of them.

    ``total``: the e-node's seconds with the trees of its operands. ``rank``: the place of a class in the
    order of the trees. ``key``: owner and operand in one number, ascending.
    """

    arrays: EGraphArrays
    costs: FloatArray
    start: IntArray
    owner: IntArray
    operand: IntArray
    key: IntArray
    tree_node: IntArray
    tree_cost: FloatArray
    rank: IntArray
    usable: BoolArray
    total: FloatArray
    may_be_cyclic: BoolArray

    @staticmethod
    def of(problem: Problem, tree: TreeChoice) -> _Edges:
        arrays, count = problem.arrays, problem.arrays.node_count
        start, operand = arrays.distinct_operands
        owner = np.repeat(np.arange(count), np.diff(start))
        tree_cost = np.array(tree.cost, np.float64)
        order = as_array(tree.order)[: tree.count]
        rank = np.full(arrays.class_count, -1, np.int64)
        rank[order] = np.arange(len(order))
        lacking = np.bincount(owner, weights=tree_cost[operand] < 0.0, minlength=count)
        usable = np.isfinite(problem.costs) & (lacking == 0)
        total = problem.costs + np.bincount(owner, weights=tree_cost[operand], minlength=count)
        lower, upper = rank[arrays.class_of[owner]], rank[operand]
        upwards = usable[owner] & (upper >= lower)
        return _Edges(
            arrays,
            problem.costs,
            start,
            owner,
            operand,
            owner * arrays.class_count + operand,
            as_array(tree.choice),
            tree_cost,
            rank,
            usable,
            total,
            _covered(lower[upwards], upper[upwards], rank),
        )


def _covered(lower: IntArray, upper: IntArray, rank: IntArray) -> BoolArray:
    """Which classes rank within one of the intervals, bounds included.

    All edges but those of the intervals lead down the ranks. So a cycle that passes a rank on its way down
    passes it, on its way up, by an edge: no class outside the intervals is on a cycle.
    """
    depth = np.zeros(len(rank) + 1, np.int64)
    np.add.at(depth, lower, 1)
    np.add.at(depth, upper + 1, -1)
    inside: BoolArray = (np.cumsum(depth)[rank] > 0) & (rank >= 0)
    return inside


def _by_class(arrays: EGraphArrays, candidate: BoolArray) -> IntArray:
    """Number of candidates of each class."""
    return np.bincount(arrays.class_of[candidate], minlength=arrays.class_count)


def _forced(edges: _Edges, candidate: BoolArray, roots: IntArray) -> BoolArray:
    """The roots, and the operands that all candidates of a forced class have in common."""
    arrays = edges.arrays
    present = candidate[edges.owner]
    pairs = arrays.class_of[edges.owner[present]] * arrays.class_count + edges.operand[present]
    pairs.sort()
    first = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)])
    uses = np.diff(np.append(first, len(pairs)))
    klass, operand = np.divmod(pairs[first], arrays.class_count)
    common = uses == _by_class(arrays, candidate)[klass]
    return _closure(klass[common], operand[common], roots, arrays.class_count)


def _closure(users: IntArray, operands: IntArray, roots: IntArray, class_count: int) -> BoolArray:
    """The roots and all classes that they use, themselves or through others; ``users`` are in order."""
    start = starts_of(users, class_count).tolist()
    used = operands.tolist()
    closed = [False] * class_count
    pending = roots.tolist()
    for root in pending:
        closed[root] = True
    while pending:
        klass = pending.pop()
        for below in used[start[klass] : start[klass + 1]]:
            if not closed[below]:
                closed[below] = True
                pending.append(below)
    return np.array(closed, np.bool_)


def _dominated(edges: _Edges, candidate: BoolArray, trusted: BoolArray) -> IntArray:
    """Candidates that cost no less than a rival of their class with all it needs besides them."""
    arrays = edges.arrays
    nodes = np.flatnonzero(candidate)
    nodes = nodes[np.lexsort((edges.total[nodes], arrays.class_of[nodes]))]
    start = starts_of(arrays.class_of[nodes], arrays.class_count)
    found = []
    for place in range(RIVALS):
        has = np.flatnonzero(np.diff(start) > max(place, 1))
        rival_of = np.full(arrays.class_count, -1, np.int64)
        rival_of[has] = nodes[start[has] + place]
        rivals = rival_of[arrays.class_of[nodes]]
        pairs = (rivals >= 0) & (rivals != nodes) & (edges.costs[rivals] <= edges.costs[nodes])
        found.append(_losers(edges, nodes[pairs], rivals[pairs], trusted))
    return np.concatenate(found)


def _losers(edges: _Edges, nodes: IntArray, rivals: IntArray, trusted: BoolArray) -> IntArray:
    """The e-nodes that their rivals dominate; ties fall to the e-node of the tree, then the lower number."""
    if not len(nodes):
        return nodes
    counts = (edges.start[rivals + 1]) - edges.start[rivals]
    pair = np.repeat(np.arange(len(nodes)), counts)
    edge = np.arange(len(pair)) + np.repeat(edges.start[rivals] - (np.cumsum(counts) - counts), counts)
    operand, user = edges.operand[edge], edges.arrays.class_of[nodes]
    wanted = nodes[pair] * edges.arrays.class_count + operand
    place = np.minimum(np.searchsorted(edges.key, wanted), len(edges.key) - 1)
    paid = trusted[operand] | (edges.key[place] == wanted)
    afresh = np.where(edges.rank[operand] < edges.rank[user][pair], edges.tree_cost[operand], inf)
    total = edges.costs[rivals] + np.bincount(pair, weights=np.where(paid, 0.0, afresh), minlength=len(nodes))
    cost, tree_node = edges.costs[nodes], edges.tree_node[user]
    favoured = (rivals == tree_node) | ((rivals < nodes) & (nodes != tree_node))
    losers: IntArray = nodes[(total < cost * (1.0 - EQUAL)) | ((total <= cost) & favoured)]
    return losers


def _reached(edges: _Edges, candidate: BoolArray, settled: BoolArray, roots: IntArray) -> BoolArray:
    """The classes that the roots may need, but for settled ones."""
    used = candidate[edges.owner] & ~settled[edges.operand]
    users = edges.arrays.class_of[edges.owner[used]]
    return _closure(users, edges.operand[used], roots, edges.arrays.class_count)
