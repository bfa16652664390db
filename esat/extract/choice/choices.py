"""The loops over a choice: its ranks and references, area flow, and what depends on a class.

Vocabulary: a class is *live* if the current choice reaches it from a root; ``references[c]`` counts the
roots and live chosen e-nodes that use ``c``. Costs are integers ("units"), so that sums taken in different
orders compare exactly.
"""

from __future__ import annotations

from esat.base.native import Arrays, Floats, Integers
from esat.base.records import record
from esat.extract.choice.inner_loops import LARGEST_COST, Links

FLOW_PASSES = 2
"""Passes of area flow: the second one knows the users that the first one's choice has."""


@record(frozen=True, eq=False)
class State(Arrays):
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


@record(frozen=True, eq=False)
class Area(Arrays):
    """What area flow keeps of each class: the users it is expected to have, its cost divided by them (at
    first that of its tree), and its e-node in the best choice."""

    expected: Floats
    value: Floats
    best: Integers


def prepare(links: Links, units: Integers, roots: Integers, state: State) -> int:
    """Rank the classes of a new choice and count references; the units of the whole choice."""
    count = rank_classes(links, state)
    return count_references(links, units, roots, state, count)


def rank_classes(links: Links, state: State) -> int:
    """Rank the classes that have a choice, operands first; others get -1.

    Returns
    -------
    How many have a choice, or -1 if there is a cycle.
    """
    choice, rank, ranked = state.choice, state.rank, state.ranked
    path, trail, mark = state.path, state.trail, state.mark
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
                ranked[count] = klass
                count += 1
                depth -= 1
                continue
            trail[depth] = edge + 1
            child = children[edge]
            if mark[child] == 1 or choice[child] < 0:
                return -1
            if mark[child] == 0:
                mark[child] = 1
                depth += 1
                path[depth] = child
                trail[depth] = child_start[choice[child]]
    for klass in range(len(choice)):
        mark[klass] = 0
    return count


def count_references(links: Links, units: Integers, roots: Integers, state: State, count: int) -> int:
    """Count references from scratch, by the ranks of the ``count`` classes that have a choice.

    Returns
    -------
    Units of the whole choice.
    """
    choice, references, ranked = state.choice, state.references, state.ranked
    child_start, children = links.child_start, links.children
    for klass in range(len(references)):
        references[klass] = 0
    for index in range(len(roots)):
        references[roots[index]] += 1
    total = 0
    for position in range(count - 1, -1, -1):
        klass = ranked[position]
        if references[klass] > 0:
            node = choice[klass]
            total += units[node]
            for edge in range(child_start[node], child_start[node + 1]):
                references[children[edge]] += 1
    return total


def flow(
    links: Links, cost: Floats, units: Integers, roots: Integers, state: State, area: Area, units_of_best: int
) -> None:
    """Some passes of area flow; a choice of fewer units than the best one replaces it.

    Parameters
    ----------
    state
        The tree choice; its classes are ranked in ascending tree cost, and ``ranked`` holds no others.
    units_of_best
        Units of the best choice so far.
    """
    count = len(state.ranked)
    count_references(links, units, roots, state, count)
    for _ in range(FLOW_PASSES):
        flow_pass(links, cost, state, area.expected, area.value)
        found = count_references(links, units, roots, state, count)
        if found < units_of_best:
            units_of_best = found
            for klass in range(len(area.best)):
                area.best[klass] = state.choice[klass]


def flow_pass(links: Links, cost: Floats, state: State, expected: Floats, flow: Floats) -> None:
    """One pass of area flow: choose again, with each operand's cost divided by its expected number of users.

    The classes are ranked as the tree choice ranks them; an e-node is a candidate if its operands rank below
    its class, so that any mixture of candidates is acyclic. The expected number of users moves towards the
    references that the choice at hand has.
    """
    class_start, child_start, children = links.class_start, links.child_start, links.children
    rank, choice, references = state.rank, state.choice, state.references
    for klass in range(len(expected)):
        expected[klass] = (expected[klass] + 2.0 * references[klass]) / 3.0
    for position in range(len(state.ranked)):
        klass = state.ranked[position]
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


def mark_dependents(links: Links, state: State, klass: int, dependents: Integers) -> int:
    """Mark with 1 the live classes that depend on a class, itself included; others have 0 on entry.

    Returns
    -------
    How many they are.
    """
    dependents[klass] = 1
    found = 1
    for position in range(state.rank[klass] + 1, len(state.ranked)):
        other = state.ranked[position]
        if state.rank[other] != position:
            break  # the classes that have a choice are over
        if state.references[other] > 0:
            node = state.choice[other]
            for edge in range(links.child_start[node], links.child_start[node + 1]):
                if dependents[links.children[edge]] == 1:
                    dependents[other] = 1
                    found += 1
                    break
    return found


def count_dependents(links: Links, state: State, dependents: Integers, counts: Integers) -> None:
    """How many live classes depend on each live class, itself included; others keep their count."""
    for klass in range(len(counts)):
        if state.references[klass] > 0:
            for other in range(len(dependents)):
                dependents[other] = 0
            counts[klass] = mark_dependents(links, state, klass, dependents)
