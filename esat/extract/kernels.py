"""The inner loops of extraction, in the subset that Python and numba share.

Each function runs as it stands on lists, which is fastest for small e-graphs (no compiler to load), and
compiled by numba on int64 and float64 vectors, which is fastest for large ones (see ``backend``). Both do
the same operations in the same order and give the same result. Costs to be compared exactly are integers
("units").

Vocabulary: a class is *live* if the current choice reaches it from a root; ``references[c]`` counts the
roots and live chosen e-nodes that use ``c``. To *acquire* an e-node is to count its operands in, bringing
dead ones to life; to *release* it is the reverse. The units of what comes to life, or dies, is the exact
price of a choice: the "exact area" of FPGA technology mapping (Mishchenko, Chatterjee, Brayton,
"Improvements to technology mapping for LUT-based FPGAs", 2007; the area flow there is ours too).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, NamedTuple

# list[int] or list[float] under Python, a one-dimensional int64 or float64 array under numba.
Integers = Any
Floats = Any

UNREACHED = -1.0
LARGEST_COST = 1e300
MANY_UNITS = 1 << 62


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

    ``rank`` numbers the classes so that every chosen e-node's operands have smaller ranks than its class.
    ``trail``, ``mark`` and ``path`` are scratch space; ``saving[c]`` is the price of ``c``'s choice when
    last seen.
    """

    choice: Integers
    references: Integers
    rank: Integers
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
        waiting = 0
        for edge in range(child_start[node], child_start[node + 1]):
            if free[children[edge]] == 0:
                waiting += 1
        pending[node] = waiting
        if waiting == 0 and free[class_of[node]] == 0 and cost[node] <= LARGEST_COST:
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


def count_references(links: Links, units: Integers, roots: Integers, state: State, order: Integers) -> int:
    """Count references from scratch, by the ranks; ``order`` is filled as by :func:`rank_order`.

    Returns
    -------
    Units of the whole choice.
    """
    choice, references, rank = state.choice, state.references, state.rank
    child_start, children = links.child_start, links.children
    for klass in range(len(references)):
        references[klass] = 0
    for index in range(len(roots)):
        references[roots[index]] += 1
    total = 0
    for position in range(rank_order(rank, order) - 1, -1, -1):
        klass = order[position]
        if references[klass] > 0:
            node = choice[klass]
            total += units[node]
            for edge in range(child_start[node], child_start[node + 1]):
                references[children[edge]] += 1
    return total


def rank_order(rank: Integers, order: Integers) -> int:
    """List the classes that have a rank in ascending order of it; return how many there are."""
    count = 0
    for klass in range(len(rank)):
        if rank[klass] >= 0:
            order[rank[klass]] = klass
            count += 1
    return count


def rank_classes(links: Links, state: State) -> bool:
    """Number the classes that have a choice, operands first; others get -1. False if there is a cycle."""
    choice, rank, path, trail, mark = state.choice, state.rank, state.path, state.trail, state.mark
    child_start, children = links.child_start, links.children
    for klass in range(len(choice)):
        rank[klass] = -1
        mark[klass] = 0
    count = 0
    for start in range(len(choice)):
        if choice[start] < 0 or mark[start] != 0:
            continue
        depth = 0
        path[0] = start
        trail[0] = child_start[choice[start]]
        mark[start] = 1
        while depth >= 0:
            klass = path[depth]
            edge = trail[depth]
            if edge == child_start[choice[klass] + 1]:
                mark[klass] = 2
                rank[klass] = count
                count += 1
                depth -= 1
                continue
            trail[depth] = edge + 1
            child = children[edge]
            if mark[child] == 1 or choice[child] < 0:
                return False
            if mark[child] == 0:
                mark[child] = 1
                depth += 1
                path[depth] = child
                trail[depth] = child_start[choice[child]]
    return True


def acquire(links: Links, units: Integers, state: State, node: int, limit: int) -> tuple[int, int]:
    """Count the operands of an e-node in, and the operands of those that come to life, and so on.

    Stops as soon as the price reaches ``limit``.

    Returns
    -------
    The price (the e-node's own units included) and the number of classes on the trail, for :func:`undo`.
    """
    choice, references, trail = state.choice, state.references, state.trail
    child_start, children = links.child_start, links.children
    total: int = units[node]
    end = 0
    for edge in range(child_start[node], child_start[node + 1]):
        child = children[edge]
        references[child] += 1
        if references[child] == 1:
            trail[end] = child
            end += 1
    done = 0
    while done < end and total < limit:
        below = choice[trail[done]]
        done += 1
        total += units[below]
        for edge in range(child_start[below], child_start[below + 1]):
            child = children[edge]
            references[child] += 1
            if references[child] == 1:
                trail[end] = child
                end += 1
    return total, done


def undo(links: Links, state: State, node: int, done: int) -> None:
    """Take back the :func:`acquire` that came immediately before."""
    choice, references, trail = state.choice, state.references, state.trail
    child_start, children = links.child_start, links.children
    for edge in range(child_start[node], child_start[node + 1]):
        references[children[edge]] -= 1
    for index in range(done):
        below = choice[trail[index]]
        for edge in range(child_start[below], child_start[below + 1]):
            references[children[edge]] -= 1


def release(links: Links, units: Integers, state: State, node: int) -> int:
    """Count the operands of an e-node out, and the operands of those that die; return the units set free."""
    choice, references, trail = state.choice, state.references, state.trail
    child_start, children = links.child_start, links.children
    total: int = units[node]
    end = 0
    for edge in range(child_start[node], child_start[node + 1]):
        child = children[edge]
        references[child] -= 1
        if references[child] == 0:
            trail[end] = child
            end += 1
    done = 0
    while done < end:
        below = choice[trail[done]]
        done += 1
        total += units[below]
        for edge in range(child_start[below], child_start[below + 1]):
            child = children[edge]
            references[child] -= 1
            if references[child] == 0:
                trail[end] = child
                end += 1
    return total


def fits(links: Links, state: State, klass: int, node: int) -> int:
    """Whether ``klass`` may choose ``node``.

    Returns
    -------
    0 if an operand has no choice or depends on the class, 1 if all operands rank below the class, 2 if the
    choice is acyclic but classes must be ranked anew.
    """
    choice, rank, path, mark = state.choice, state.rank, state.path, state.mark
    child_start, children = links.child_start, links.children
    limit = rank[klass]
    depth = 0
    for edge in range(child_start[node], child_start[node + 1]):
        child = children[edge]
        if choice[child] < 0 or child == klass:
            return 0
        if rank[child] > limit:
            path[depth] = child
            depth += 1
    if depth == 0:
        return 1
    acyclic = 2
    seen = depth
    for index in range(depth):
        mark[path[index]] = -1
    done = 0
    while done < seen and acyclic == 2:
        below = choice[path[done]]
        done += 1
        for edge in range(child_start[below], child_start[below + 1]):
            child = children[edge]
            if child == klass:
                acyclic = 0
                break
            if rank[child] > limit and mark[child] != -1:
                mark[child] = -1
                path[seen] = child
                seen += 1
    for index in range(seen):
        mark[path[index]] = 0
    return acyclic


def switch(links: Links, units: Integers, state: State, klass: int) -> int:
    """Give a live class the choice with the lowest exact price; return the units gained."""
    choice, class_start = state.choice, links.class_start
    old = choice[klass]
    price = release(links, units, state, old)
    best_price = price
    best_node = old
    best_fit = 1
    for node in range(class_start[klass], class_start[klass + 1]):
        if node == old or units[node] < 0 or units[node] >= best_price:
            continue
        fit = fits(links, state, klass, node)
        if fit == 0:
            continue
        total, done = acquire(links, units, state, node, best_price)
        undo(links, state, node, done)
        if total < best_price:
            best_price = total
            best_node = node
            best_fit = fit
    choice[klass] = best_node
    acquire(links, units, state, best_node, MANY_UNITS)
    state.saving[klass] = best_price
    if best_fit == 2:
        rank_classes(links, state)
    return price - best_price


def exact_pass(links: Links, units: Integers, state: State, order: Integers, count: int, upward: bool) -> int:
    """Switch every live class once, users first or (``upward``) operands first; return the units gained."""
    class_start, references = links.class_start, state.references
    gained = 0
    for step in range(count):
        klass = order[step] if upward else order[count - 1 - step]
        if references[klass] > 0 and class_start[klass + 1] - class_start[klass] > 1:
            gained += switch(links, units, state, klass)
    return gained


def worth_sharing(links: Links, units: Integers, state: State, shared: int) -> bool:
    """Whether the users of a dead class could together save more than its own units, at most."""
    class_of, parent_start, parents = links.class_of, links.parent_start, links.parents
    own = units[state.choice[shared]]
    hope = 0
    users = 0
    for index in range(parent_start[shared], parent_start[shared + 1]):
        user = class_of[parents[index]]
        price = units[parents[index]]
        if state.references[user] > 0 and price >= 0 and state.saving[user] > price:
            hope += state.saving[user] - price
            users += 1
            if users >= 2 and hope > own:
                return True
    return False


def share(links: Links, units: Integers, state: State, shared: int, log: Integers) -> int:
    """Try to bring a dead class to life for several users at once; return the units gained, 0 if it is no gain.

    No single user would pay for the class, but together they may: the move that :func:`switch` cannot see.
    """
    class_of, parent_start, parents = links.class_of, links.parent_start, links.parents
    choice, references = state.choice, state.references
    references[shared] += 1
    spent, done = acquire(links, units, state, choice[shared], MANY_UNITS)
    logged = 0
    gained = 0
    for index in range(parent_start[shared], parent_start[shared + 1]):
        node = parents[index]
        user = class_of[node]
        old = choice[user]
        if references[user] == 0 or node == old or units[node] < 0:
            continue
        fit = fits(links, state, user, node)
        if fit == 0:
            continue
        price = release(links, units, state, old)
        total, done = acquire(links, units, state, node, price)
        if total >= price:
            undo(links, state, node, done)
            acquire(links, units, state, old, MANY_UNITS)
            continue
        choice[user] = node
        log[2 * logged] = user
        log[2 * logged + 1] = old
        logged += 1
        gained += price - total
        if fit == 2:
            rank_classes(links, state)
    if gained <= spent:
        revert(links, units, state, log, logged)
        gained = 0
        spent = 0
    references[shared] -= 1
    if references[shared] == 0:
        freed = release(links, units, state, choice[shared])
        if spent > 0:
            gained += freed
    return gained - spent


def revert(links: Links, units: Integers, state: State, log: Integers, logged: int) -> None:
    """Take back the switches in the log, the last one first."""
    choice, references = state.choice, state.references
    for index in range(logged - 1, -1, -1):
        user = log[2 * index]
        if references[user] > 0:
            release(links, units, state, choice[user])
            acquire(links, units, state, log[2 * index + 1], MANY_UNITS)
        choice[user] = log[2 * index + 1]
    if logged > 0:
        rank_classes(links, state)


def share_pass(links: Links, units: Integers, state: State, log: Integers) -> int:
    """:func:`share` for every dead class that has a choice; return the units gained."""
    choice, references = state.choice, state.references
    gained = 0
    for klass in range(len(choice)):
        if references[klass] == 0 and choice[klass] >= 0 and worth_sharing(links, units, state, klass):
            gained += share(links, units, state, klass, log)
    return gained
