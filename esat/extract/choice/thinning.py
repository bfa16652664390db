"""The loops of leaving out e-nodes; what may be left out, and why, is said in ``reduce``.

Sets of classes are rows of ``words`` integers, of which each holds ``BITS`` classes. Without words a class is
known to need nothing but itself, and an e-node its operands.
"""

from __future__ import annotations

from math import inf

from esat.base.native import Arrays, Floats, Integers
from esat.base.records import record
from esat.extract.choice.inner_loops import Links, spread_force

BITS = 62
"""Classes to a word: fewer than it has bits, so that no sign is in the way."""
RIVALS = 4
"""E-nodes of a class that the others are compared with: those of the cheapest trees."""
EQUAL = 1e-12
WORTH_ANOTHER_ROUND = 0.03
"""Share of the candidates that a round has to leave out."""
_PASSES = 2
"""Passes in the order of trees: what a class needs by way of a later one is seen in the second."""


@record(frozen=True, eq=False)
class Trees(Arrays):
    """The cheapest trees: e-node, seconds and place in the order of each class; that order."""

    choice: Integers
    cost: Floats
    rank: Integers
    order: Integers


@record(frozen=True, eq=False)
class Thinning(Arrays):
    """What is known of a problem while e-nodes are left out.

    ``candidate`` is 1 for e-nodes that are left, ``total`` their seconds with the trees of their operands.
    ``needs`` holds a row for each class: the classes that every selection with it contains. Of each class,
    ``forced`` says whether every selection contains it, ``reached`` whether any may, ``component`` is its
    strongly connected component, ``least`` the seconds of its cheapest candidate, and ``price`` the least
    seconds of all it needs that is not forced.
    """

    candidate: Integers
    total: Floats
    needs: Integers
    forced: Integers
    reached: Integers
    component: Integers
    least: Floats
    price: Floats


@record(frozen=True, eq=False)
class Scratch(Arrays):
    """Room for the loops: rows of words, and integers for each class, but at least ``RIVALS`` of them."""

    row: Integers
    common: Integers
    number: Integers
    lowest: Integers
    path: Integers
    node: Integers
    edge: Integers
    stack: Integers


def thin_out(
    links: Links,
    cost: Floats,
    roots: Integers,
    trees: Trees,
    upper_bound: float,
    rounds: int,
    thinning: Thinning,
    scratch: Scratch,
) -> None:
    """Leave out e-nodes, in so many rounds at most.

    On return ``candidate`` is 1 for e-nodes to choose from and 2 for those that are in every selection,
    ``forced`` is 1 for forced classes with a choice and 2 for those without.
    """
    before = find_candidates(links, cost, trees, thinning)
    for _ in range(rounds):
        for index in range(len(roots)):
            scratch.stack[index] = roots[index]
        reach(links, thinning, scratch.stack, len(roots))
        find_components(links, thinning, scratch)
        find_needs(links, trees, thinning, scratch)
        force_needs(links, roots, thinning, scratch)
        left = leave_out(links, cost, trees, upper_bound, thinning, scratch)
        if before - left <= WORTH_ANOTHER_ROUND * before:
            break
        before = left
    force_needs(links, roots, thinning, scratch)
    set_apart(links, thinning, scratch)


def find_candidates(links: Links, cost: Floats, trees: Trees, thinning: Thinning) -> int:
    """Candidates are e-nodes of finite cost that have a finite term, their own class not among the operands.

    Returns
    -------
    How many there are.
    """
    count = 0
    for node in range(len(cost)):
        usable = cost[node] < inf
        total = cost[node]
        for edge in range(links.child_start[node], links.child_start[node + 1]):
            child = links.children[edge]
            if trees.cost[child] < 0.0 or child == links.class_of[node]:
                usable = False
            total += trees.cost[child]
        thinning.candidate[node] = 1 if usable else 0
        thinning.total[node] = total
        count += thinning.candidate[node]
    return count


def reach(links: Links, thinning: Thinning, pending: Integers, count: int) -> None:
    """Mark the classes that the first ``count`` pending ones may need, and these themselves."""
    candidate, reached = thinning.candidate, thinning.reached
    for klass in range(len(reached)):
        reached[klass] = 0
    for index in range(count):
        reached[pending[index]] = 1
    while count > 0:
        count -= 1
        klass = pending[count]
        for node in range(links.class_start[klass], links.class_start[klass + 1]):
            if candidate[node] == 1:
                for edge in range(links.child_start[node], links.child_start[node + 1]):
                    child = links.children[edge]
                    if reached[child] == 0:
                        reached[child] = 1
                        pending[count] = child
                        count += 1


def set_apart(links: Links, thinning: Thinning, scratch: Scratch) -> None:
    """Tell forced classes with one candidate from those with a choice, and forget what these do not need.

    A class on a cycle stays, even without a choice: others may not depend on it both ways.
    """
    candidate, forced = thinning.candidate, thinning.forced
    count = 0
    for klass in range(len(forced)):
        only = -1
        candidates = 0
        for node in range(links.class_start[klass], links.class_start[klass + 1]):
            if candidate[node] == 1:
                only = node
                candidates += 1
        if forced[klass] == 1 and candidates == 1 and thinning.component[klass] == 0:
            forced[klass] = 2
            candidate[only] = 2
        elif forced[klass] == 1:
            scratch.stack[count] = klass
            count += 1
    reach(links, thinning, scratch.stack, count)
    for node in range(len(candidate)):
        if candidate[node] == 1 and thinning.reached[links.class_of[node]] == 0:
            candidate[node] = 0


def find_components(links: Links, thinning: Thinning, scratch: Scratch) -> None:
    """Strongly connected components (Tarjan, "Depth-first search and linear graph algorithms", 1972).

    A component of several classes has a number from 1; a class alone has the number 0.
    """
    number, lowest, component = scratch.number, scratch.lowest, thinning.component
    path, stack = scratch.path, scratch.stack
    at_node, at_edge = scratch.node, scratch.edge
    for klass in range(len(component)):
        number[klass] = 0
        component[klass] = -1
    visited = 0
    waiting = 0
    components = 0
    for start in range(len(component)):
        if thinning.reached[start] == 0 or number[start] > 0:
            continue
        depth = 0
        path[0] = start
        entered = True
        while depth >= 0:
            klass = path[depth]
            if entered:
                visited += 1
                number[klass] = visited
                lowest[klass] = visited
                stack[waiting] = klass
                waiting += 1
                at_node[depth] = links.class_start[klass]
                at_edge[depth] = links.child_start[links.class_start[klass]]
                entered = False
            end = links.class_start[klass + 1]
            while at_node[depth] < end and not entered:
                node = at_node[depth]
                if thinning.candidate[node] == 0 or at_edge[depth] == links.child_start[node + 1]:
                    at_node[depth] = node + 1
                    at_edge[depth] = links.child_start[node + 1]
                    continue
                child = links.children[at_edge[depth]]
                at_edge[depth] += 1
                if number[child] == 0:
                    depth += 1
                    path[depth] = child
                    entered = True
                elif component[child] < 0:
                    lowest[klass] = min(lowest[klass], number[child])
            if entered:
                continue
            if lowest[klass] == number[klass]:
                alone = stack[waiting - 1] == klass
                components += 0 if alone else 1
                waiting = close_component(component, stack, waiting, klass, 0 if alone else components)
            depth -= 1
            if depth >= 0:
                lowest[path[depth]] = min(lowest[path[depth]], lowest[klass])


def close_component(component: Integers, stack: Integers, waiting: int, first: int, number: int) -> int:
    """Give a component's number to the classes that wait from ``first`` on; how many wait still."""
    while component[first] < 0:
        waiting -= 1
        component[stack[waiting]] = number
    return waiting


def find_needs(links: Links, trees: Trees, thinning: Thinning, scratch: Scratch) -> None:
    """Which classes each class needs; drops candidates that need their own class.

    Passes with operands before users: what is found is true after each, and rarely grows after the second.
    """
    needs, words = thinning.needs, len(scratch.row)
    if words == 0:
        return
    for index in range(len(needs)):
        needs[index] = 0
    for klass in range(len(thinning.reached)):
        needs[klass * words + klass // BITS] = 1 << klass % BITS
    for _ in range(_PASSES):
        for position in range(len(trees.order)):
            if thinning.reached[trees.order[position]] == 1:
                find_needs_of(links, trees.order[position], thinning, scratch)


def find_needs_of(links: Links, klass: int, thinning: Thinning, scratch: Scratch) -> None:
    """What all candidates of a class need; drops those that need the class itself.

    If all do, no selection below the bound contains the class, and they stay.
    """
    candidate, row, common = thinning.candidate, scratch.row, scratch.common
    words, own, bit = len(row), klass // BITS, 1 << klass % BITS
    acyclic = 0
    for word in range(words):
        common[word] = -1
    for node in range(links.class_start[klass], links.class_start[klass + 1]):
        if candidate[node] == 1:
            collect(links, thinning.needs, row, node)
            if row[own] & bit == 0:
                acyclic += 1
                for word in range(words):
                    common[word] &= row[word]
            else:
                candidate[node] = 2
    for node in range(links.class_start[klass], links.class_start[klass + 1]):
        if candidate[node] == 2:
            candidate[node] = 0 if acyclic > 0 else 1
    if acyclic > 0:
        for word in range(words):
            thinning.needs[klass * words + word] = common[word]
        thinning.needs[klass * words + own] |= bit


def collect(links: Links, needs: Integers, row: Integers, node: int) -> None:
    """What the operands of an e-node need."""
    words = len(row)
    for word in range(words):
        row[word] = 0
    for edge in range(links.child_start[node], links.child_start[node + 1]):
        start = links.children[edge] * words
        for word in range(words):
            row[word] |= needs[start + word]


def force_needs(links: Links, roots: Integers, thinning: Thinning, scratch: Scratch) -> None:
    """Mark what every selection contains: what the roots need, and what all forms of that have in common."""
    needs, forced, row = thinning.needs, thinning.forced, scratch.row
    for word in range(len(row)):
        row[word] = 0
        for index in range(len(roots)):
            row[word] |= needs[roots[index] * len(row) + word]
    count = 0
    for klass in range(len(forced)):
        forced[klass] = row[klass // BITS] >> klass % BITS & 1 if len(row) > 0 else 0
        if forced[klass] == 1:
            scratch.path[count] = klass
            count += 1
        scratch.node[klass] = 0
    for index in range(len(roots)):
        if forced[roots[index]] == 0:
            forced[roots[index]] = 1
            scratch.path[count] = roots[index]
            count += 1
    spread_force(links, thinning.candidate, forced, scratch.node, scratch.path, count)


def leave_out(
    links: Links,
    cost: Floats,
    trees: Trees,
    upper_bound: float,
    thinning: Thinning,
    scratch: Scratch,
) -> int:
    """Drop candidates by bound and by dominance; how many are left of reached classes."""
    candidate, forced, least = thinning.candidate, thinning.forced, thinning.least
    for word in range(len(scratch.common)):
        scratch.common[word] = 0
    spare = upper_bound
    for klass in range(len(least)):
        least[klass] = inf
        for node in range(links.class_start[klass], links.class_start[klass + 1]):
            if candidate[node] == 1:
                least[klass] = min(least[klass], cost[node])
        if forced[klass] == 1:
            spare -= least[klass]
            if len(scratch.common) > 0:
                scratch.common[klass // BITS] |= 1 << klass % BITS
    for klass in range(len(least)):
        thinning.price[klass] = price_of(thinning, scratch, klass) if thinning.reached[klass] == 1 else 0.0
    left = 0
    for position in range(len(trees.order)):
        klass = trees.order[position]
        if thinning.reached[klass] == 1:
            limit = spare + (least[klass] if forced[klass] == 1 else 0.0)
            left += thin(links, cost, trees, klass, limit, thinning, scratch)
    return left


def thin(
    links: Links,
    cost: Floats,
    trees: Trees,
    klass: int,
    limit: float,
    thinning: Thinning,
    scratch: Scratch,
) -> int:
    """Drop candidates of one class; how many are left."""
    candidate = thinning.candidate
    first, end = links.class_start[klass], links.class_start[klass + 1]
    left = 0
    affordable = 0
    for node in range(first, end):
        if candidate[node] == 1:
            left += 1
            if cost[node] + beyond(links, thinning, scratch, node) <= limit:
                affordable += 1
            else:
                candidate[node] = 2
    for node in range(first, end):
        if candidate[node] == 2:
            candidate[node] = 0 if affordable > 0 else 1
    if affordable > 0:
        left = affordable
    if left > 1:
        find_rivals(links, klass, thinning, scratch)
        for node in range(first, end):
            if candidate[node] == 1 and is_dominated(links, cost, trees, node, thinning, scratch):
                candidate[node] = 2
                left -= 1
        for node in range(first, end):
            if candidate[node] == 2:
                candidate[node] = 0
    return left


def price_of(thinning: Thinning, scratch: Scratch, klass: int) -> float:
    """Least seconds of what a class needs and is not forced; ``scratch.common`` are the forced classes."""
    words = len(scratch.common)
    if words == 0:
        return 0.0 if thinning.forced[klass] == 1 else thinning.least[klass]
    total = 0.0
    for word in range(words):
        bits = thinning.needs[klass * words + word] & ~scratch.common[word]
        other = word * BITS
        while bits != 0:
            if bits & 255 == 0:
                bits >>= 8
                other += 8
                continue
            if bits & 1 == 1:
                total += thinning.least[other]
            bits >>= 1
            other += 1
    return total


def beyond(links: Links, thinning: Thinning, scratch: Scratch, node: int) -> float:
    """Least seconds of what is not forced and the e-node needs; operands that overlap count once."""
    needs, seen, forced, words = thinning.needs, scratch.row, scratch.common, len(scratch.row)
    for word in range(words):
        seen[word] = 0
    total = 0.0
    for edge in range(links.child_start[node], links.child_start[node + 1]):
        child = links.children[edge]
        overlap = 0
        for word in range(words):
            overlap |= needs[child * words + word] & seen[word] & ~forced[word]
        if overlap == 0:
            for word in range(words):
                seen[word] |= needs[child * words + word]
            total += thinning.price[child]
    return total


def find_rivals(links: Links, klass: int, thinning: Thinning, scratch: Scratch) -> None:
    """List the candidates of a class with the cheapest trees, cheapest first, then -1."""
    rivals = scratch.stack
    for place in range(RIVALS):
        rivals[place] = -1
    for node in range(links.class_start[klass], links.class_start[klass + 1]):
        if thinning.candidate[node] == 1:
            new = node
            for place in range(RIVALS):
                old = rivals[place]
                if old < 0 or thinning.total[new] < thinning.total[old]:
                    rivals[place] = new
                    new = old
                    if old < 0:
                        break


def is_dominated(
    links: Links, cost: Floats, trees: Trees, node: int, thinning: Thinning, scratch: Scratch
) -> bool:
    """Whether a rival costs no more than an e-node even with all that it needs besides.

    Of equal ones, the e-node of the tree stays, else that with the lower number.
    """
    klass = links.class_of[node]
    for place in range(RIVALS):
        rival = scratch.stack[place]
        if rival < 0:
            break
        if rival == node or cost[rival] > cost[node]:
            continue
        total = cost[rival]
        for edge in range(links.child_start[rival], links.child_start[rival + 1]):
            child = links.children[edge]
            if not is_paid(links, node, child, thinning, scratch):
                total += trees.cost[child] if trees.rank[child] < trees.rank[klass] else inf
                if total > cost[node]:
                    break
        if total < cost[node] * (1.0 - EQUAL):
            return True
        if total <= cost[node] and (
            rival == trees.choice[klass] or (rival < node and node != trees.choice[klass])
        ):
            return True
    return False


def is_paid(links: Links, node: int, other: int, thinning: Thinning, scratch: Scratch) -> bool:
    """Whether a class is computed wherever an e-node is, and cannot depend on it."""
    if thinning.forced[other] == 1:
        component = thinning.component[other]
        if component == 0 or component != thinning.component[links.class_of[node]]:
            return True
    words = len(scratch.row)
    for edge in range(links.child_start[node], links.child_start[node + 1]):
        child = links.children[edge]
        if child == other:
            return True
        if words > 0 and thinning.needs[child * words + other // BITS] >> other % BITS & 1 == 1:
            return True
    return False
