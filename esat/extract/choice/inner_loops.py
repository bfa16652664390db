"""The inner loops of extraction: tree cost, and what a choice needs.

Each function, here, in ``choices``, in ``moves`` and in ``thinning``, is of the subset that
:mod:`esat.base.native` compiles; as Python it does the same operations in the same order and gives the same
result (see ``compiled_loops``).
"""

from __future__ import annotations

from esat.base.native import Arrays, Floats, Integers
from esat.base.records import record

UNREACHED = -1.0
"""The cost of a class without a finite term."""
LARGEST_COST = 1e300
"""What costs are bounded by, so that sums of some of them are finite."""


@record(frozen=True, eq=False)
class Links(Arrays):
    """The edges of an e-graph: e-nodes by class, distinct operand classes by e-node, e-nodes by operand."""

    class_of: Integers
    class_start: Integers
    child_start: Integers
    children: Integers
    parent_start: Integers
    parents: Integers


@record(frozen=True, eq=False)
class Heap(Arrays):
    """A binary heap of e-nodes by value, then number, with room for all; ``waiting`` counts operands."""

    value: Floats
    node: Integers
    waiting: Integers


def settle(
    links: Links,
    cost: Floats,
    free: Integers,
    best: Floats,
    choice: Integers,
    order: Integers,
    heap: Heap,
    deepest: bool,
) -> int:
    """The cheapest tree of every class, in ascending order (Knuth, "A generalization of Dijkstra's
    algorithm", 1977); ``deepest``: the costliest path of a tree instead of the sum over it.

    Classes that are ``free`` cost nothing and keep their choice.
    ``best`` holds ``UNREACHED`` on entry and for classes without a finite term on return; a class that only
    doubles its operands for ever saturates at ``LARGEST_COST``. The classes that got a choice are listed in
    ``order``, operands first.

    Returns
    -------
    How many there are.
    """
    class_of, child_start, children = links.class_of, links.child_start, links.children
    parent_start, parents, waiting = links.parent_start, links.parents, heap.waiting
    for klass in range(len(free)):
        if free[klass] == 1:
            best[klass] = 0.0
    size = 0
    for node in range(len(class_of)):
        operands = 0
        for edge in range(child_start[node], child_start[node + 1]):
            operands += 1 - free[children[edge]]
        waiting[node] = operands
        if operands == 0 and free[class_of[node]] == 0 and cost[node] <= LARGEST_COST:
            push(heap, size, cost[node], node)
            size += 1
    count = 0
    while size > 0:
        value = heap.value[0]
        node = heap.node[0]
        size -= 1
        pop(heap, size)
        klass = class_of[node]
        if best[klass] >= 0.0:
            continue
        best[klass] = value
        choice[klass] = node
        order[count] = klass
        count += 1
        for index in range(parent_start[klass], parent_start[klass + 1]):
            parent = parents[index]
            waiting[parent] -= 1
            if waiting[parent] == 0 and best[class_of[parent]] < 0.0 and cost[parent] <= LARGEST_COST:
                below = 0.0
                for edge in range(child_start[parent], child_start[parent + 1]):
                    child_cost = best[children[edge]]
                    below = max(below, child_cost) if deepest else below + child_cost
                push(heap, size, min(cost[parent] + below, LARGEST_COST), parent)
                size += 1
    return count


def push(heap: Heap, size: int, value: float, node: int) -> None:
    """Add an e-node to a heap of this size."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if heap.value[above] < value or (heap.value[above] == value and heap.node[above] < node):
            break
        heap.value[place] = heap.value[above]
        heap.node[place] = heap.node[above]
        place = above
    heap.value[place] = value
    heap.node[place] = node


def pop(heap: Heap, size: int) -> None:
    """Take the first e-node out of a heap, which has this size afterwards."""
    value = heap.value[size]
    node = heap.node[size]
    place = 0
    while 2 * place + 1 < size:
        below = 2 * place + 1
        other = below + 1
        if other < size and (
            heap.value[other] < heap.value[below]
            or (heap.value[other] == heap.value[below] and heap.node[other] < heap.node[below])
        ):
            below = other
        if value < heap.value[below] or (value == heap.value[below] and node < heap.node[below]):
            break
        heap.value[place] = heap.value[below]
        heap.node[place] = heap.node[below]
        place = below
    heap.value[place] = value
    heap.node[place] = node


def keep_live(links: Links, choice: Integers, roots: Integers, kept: Integers, pending: Integers) -> int:
    """Copy the choice of the classes that the roots need to ``kept``, which holds -1 on entry.

    Returns
    -------
    A class that is needed and has no choice, else -1.
    """
    child_start, children = links.child_start, links.children
    count = 0
    for index in range(len(roots)):
        root: int = roots[index]
        if choice[root] < 0:
            return root
        if kept[root] < 0:
            kept[root] = choice[root]
            pending[count] = root
            count += 1
    while count > 0:
        count -= 1
        node = choice[pending[count]]
        for edge in range(child_start[node], child_start[node + 1]):
            child: int = children[edge]
            if choice[child] < 0:
                return child
            if kept[child] < 0:
                kept[child] = choice[child]
                pending[count] = child
                count += 1
    return -1


def drop_open(links: Links, choice: Integers, pending: Integers) -> None:
    """Take the choice of every class that needs a class without one."""
    class_of, parent_start, parents = links.class_of, links.parent_start, links.parents
    count = 0
    for klass in range(len(choice)):
        if choice[klass] < 0:
            pending[count] = klass
            count += 1
    while count > 0:
        count -= 1
        missing = pending[count]
        for index in range(parent_start[missing], parent_start[missing + 1]):
            user = class_of[parents[index]]
            if choice[user] == parents[index]:
                choice[user] = -1
                pending[count] = user
                count += 1


def spread_force(
    links: Links, candidate: Integers, forced: Integers, uses: Integers, pending: Integers, count: int
) -> None:
    """Mark as forced the operands that all candidates of a forced class have in common.

    The forced classes known so far are the first ``count`` of ``pending``. ``uses`` holds 0 before and after.
    """
    class_start, child_start, children = links.class_start, links.child_start, links.children
    while count > 0:
        count -= 1
        klass = pending[count]
        candidates = 0
        for node in range(class_start[klass], class_start[klass + 1]):
            if candidate[node] == 1:
                candidates += 1
                for edge in range(child_start[node], child_start[node + 1]):
                    uses[children[edge]] += 1
        for node in range(class_start[klass], class_start[klass + 1]):
            if candidate[node] == 1:
                for edge in range(child_start[node], child_start[node + 1]):
                    child = children[edge]
                    if uses[child] == candidates and forced[child] == 0:
                        forced[child] = 1
                        pending[count] = child
                        count += 1
                    uses[child] = 0
