"""The e-node of the smallest tree of each class: a loop that :mod:`esat.base.native` compiles."""

from __future__ import annotations

from esat.base.native import Arrays, Floats, Integers
from esat.base.records import record
from esat.egraph.algebra.finite_fields.coded import CONSTANT, FILL, POWER, SUM, Nodes
from esat.egraph.algebra.finite_fields.modular import mixed

_LARGEST_COST = 1e300
_HASH = 0x3FFFFFFFFFFFFFFF
_BELOW = 0x16A09E667F3BCC9
"""Tells what is subtracted from what is added in hashes."""


@record(frozen=True, eq=False)
class SmallestTrees(Arrays):
    """One e-node for each class, of the smallest tree.

    Attributes
    ----------
    chosen, hash, cost
        By class: the e-node (-1 for classes without a finite tree), a hash of its tree, the tree's size.
    order
        The classes that have one, operands first.
    node_hash, node_cost, waiting, heap
        Room, by e-node.
    """

    chosen: Integers
    hash: Integers
    cost: Floats
    order: Integers
    node_hash: Integers
    node_cost: Floats
    waiting: Integers
    heap: Integers


def choose(nodes: Nodes, choice: SmallestTrees) -> int:
    """Choose an e-node for every class; how many classes got one.

    By Knuth, "A generalization of Dijkstra's algorithm", 1977. Of trees of one size, one with a ring
    operation at its root comes first, so that ``1 - sigmoid(x)`` is not hidden by ``sigmoid(-x)``; then one
    with a smaller hash.
    """
    size = 0
    for node in range(len(nodes.class_of)):
        choice.waiting[node] = nodes.start[node + 1] - nodes.start[node]
        if choice.waiting[node] == 0:
            weigh(nodes, choice, node)
            push(choice, size, node)
            size += 1
    count = 0
    while size > 0:
        node = choice.heap[0]
        size -= 1
        pop(choice, size)
        klass = nodes.class_of[node]
        if choice.chosen[klass] >= 0:
            continue
        choice.chosen[klass] = node
        choice.hash[klass] = choice.node_hash[node]
        choice.cost[klass] = (
            float(int(choice.node_cost[node])) if choice.node_cost[node] < 1e15 else choice.node_cost[node]
        )
        choice.order[count] = klass
        count += 1
        for edge in range(nodes.parent_start[klass], nodes.parent_start[klass + 1]):
            parent = nodes.parents[edge]
            choice.waiting[parent] -= 1
            if choice.waiting[parent] == 0 and choice.chosen[nodes.class_of[parent]] < 0:
                weigh(nodes, choice, parent)
                push(choice, size, parent)
                size += 1
    return count


def weigh(nodes: Nodes, choice: SmallestTrees, node: int) -> None:
    """The size and the hash of an e-node's tree, whose operands are chosen."""
    first = nodes.start[node]
    last = nodes.start[node + 1]
    code = nodes.code[node]
    cost = 0.0
    if code == CONSTANT:
        cost = 0.0
    elif code >= FILL:
        cost = float(max(1, last - first - 1))
    elif first == last:
        cost = 1.25
    else:
        cost = 2.25
    value = nodes.seed[node]
    for edge in range(first, last):
        below = nodes.operands[edge]
        cost += choice.cost[below]
        if code >= SUM and code != POWER:
            side = 0 if edge - first < nodes.number[node] else _BELOW
            value = (value + mixed(choice.hash[below] ^ side)) & _HASH
        else:
            value = mixed(value ^ choice.hash[below])
    choice.node_hash[node] = mixed(value)
    choice.node_cost[node] = min(cost, _LARGEST_COST)


def before(choice: SmallestTrees, left: int, right: int) -> bool:
    """Whether one e-node comes before another."""
    if choice.node_cost[left] < choice.node_cost[right]:
        return True
    if choice.node_cost[left] > choice.node_cost[right]:
        return False
    return bool(choice.node_hash[left] < choice.node_hash[right])


def push(choice: SmallestTrees, size: int, node: int) -> None:
    """Add an e-node to a heap of this size."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if not before(choice, node, choice.heap[above]):
            break
        choice.heap[place] = choice.heap[above]
        place = above
    choice.heap[place] = node


def pop(choice: SmallestTrees, size: int) -> None:
    """Take the first e-node out of a heap, which has this size afterwards."""
    node = choice.heap[size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and before(choice, choice.heap[below + 1], choice.heap[below]):
            below += 1
        if not before(choice, choice.heap[below], node):
            break
        choice.heap[place] = choice.heap[below]
        place = below
    choice.heap[place] = node
