"""The inner loops of extraction, in the subset that Python and numba share: tree cost and area flow.

Each function, here and in ``moves``, runs as it stands on lists, which is fastest for small e-graphs (no
compiler to load), and compiled by numba on int64 and float64 vectors, which is fastest for large ones (see
``backend``). Both do the same operations in the same order and give the same result.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

# list[int] or list[float] under Python, a one-dimensional int64 or float64 array under numba.
Integers = Any
Floats = Any

UNREACHED = -1.0
LARGEST_COST = 1e300


class Links(NamedTuple):
    """The edges of an e-graph: e-nodes by class, distinct operand classes by e-node, e-nodes by operand."""

    class_of: Integers
    class_start: Integers
    child_start: Integers
    children: Integers
    parent_start: Integers
    parents: Integers


class State(NamedTuple):
    """The current choice and what follows from it.

    ``rank`` numbers the classes so that every chosen e-node's operands have smaller ranks than its class;
    ``ranked`` lists the classes in this order. ``mark`` is 0 everywhere between the functions.
    ``trail``, ``mark`` and ``path`` are scratch space; ``saving[c]`` is the price of ``c``'s choice when
    last seen.
    """

    choice: Integers
    references: Integers
    rank: Integers
    ranked: Integers
    trail: Integers
    mark: Integers
    path: Integers
    saving: Integers


def settle(
    links: Links,
    cost: Floats,
    free: Integers,
    best: Floats,
    choice: Integers,
    order: Integers,
    pending: Integers,
    deepest: bool,
) -> int:
    """Cheapest tree of every class: Knuth's generalization of Dijkstra's algorithm (1977).

    With ``deepest`` an e-node costs its own cost and that of its most expensive operand only, which bounds
    the cost of any DAG from below. Classes with ``free[c] = 1`` cost nothing and keep their choice.
    ``pending`` counts the operands of each e-node that are not free on entry, and is changed.
    ``best`` holds ``UNREACHED`` on entry and for classes without a finite term on return; a class that only
    doubles its operands for ever saturates at ``LARGEST_COST``. The classes that got a choice are listed in
    ``order``, operands first.

    Returns
    -------
    How many there are.
    """
    class_of, child_start, children = links.class_of, links.child_start, links.children
    parent_start, parents = links.parent_start, links.parents
    heap = [(0.0, 0)]
    heap.pop()
    for klass in range(len(free)):
        if free[klass] == 1:
            best[klass] = 0.0
    for node in range(len(class_of)):
        if pending[node] == 0 and free[class_of[node]] == 0 and cost[node] <= LARGEST_COST:
            heappush(heap, (cost[node], node))
    count = 0
    while len(heap) > 0:
        value, node = heappop(heap)
        klass = class_of[node]
        if best[klass] >= 0.0:
            continue
        best[klass] = value
        choice[klass] = node
        order[count] = klass
        count += 1
        for index in range(parent_start[klass], parent_start[klass + 1]):
            parent = parents[index]
            pending[parent] -= 1
            if pending[parent] == 0 and best[class_of[parent]] < 0.0 and cost[parent] <= LARGEST_COST:
                below = 0.0
                for edge in range(child_start[parent], child_start[parent + 1]):
                    child_cost = best[children[edge]]
                    below = max(below, child_cost) if deepest else below + child_cost
                heappush(heap, (min(cost[parent] + below, LARGEST_COST), int(parent)))
    return count


def flow_pass(
    links: Links, cost: Floats, order: Integers, count: int, state: State, expected: Floats, flow: Floats
) -> None:
    """One pass of area flow: choose again, with each operand's cost divided by its expected number of users.

    ``order`` lists the classes by the ranks of the tree choice; an e-node is a candidate if its operands
    rank below its class, so that any mixture of candidates is acyclic. The expected number of users moves
    towards the references that the choice at hand has.
    """
    class_start, child_start, children = links.class_start, links.child_start, links.children
    rank, choice, references = state.rank, state.choice, state.references
    for klass in range(len(expected)):
        expected[klass] = (expected[klass] + 2.0 * references[klass]) / 3.0
    for position in range(count):
        klass = order[position]
        best_node = -1
        best_flow = 0.0
        for node in range(class_start[klass], class_start[klass + 1]):
            total = cost[node]
            if total > LARGEST_COST:
                continue
            allowed = True
            for edge in range(child_start[node], child_start[node + 1]):
                child = children[edge]
                if rank[child] < 0 or rank[child] >= position:
                    allowed = False
                    break
                total += flow[child]
            if allowed and (best_node < 0 or total < best_flow):
                best_node = node
                best_flow = total
        choice[klass] = best_node
        flow[klass] = min(best_flow, LARGEST_COST) / max(expected[klass], 1.0)
