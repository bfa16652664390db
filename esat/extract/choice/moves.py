"""The moves of the local search on the exact cost of the whole DAG, in the subset that is compiled.

Vocabulary, besides that of ``choices``: to *acquire* an e-node is to count its operands in, bringing dead
ones to life; to *release* it is the reverse. The units of what comes to life, or dies, is the exact price of
a choice: the "exact area" of FPGA technology mapping (Mishchenko, Chatterjee, Brayton, "Improvements to
technology mapping for LUT-based FPGAs", 2007; the area flow of ``choices`` is theirs too).
"""

from __future__ import annotations

from esat.base.native import Arrays, Floats, Integers
from esat.base.records import record
from esat.extract.choice.choices import State, rank_classes
from esat.extract.choice.inner_loops import Links

MANY_UNITS = 1 << 62
EXACT_PASSES = 16
LARGEST_REGION = 32
PATIENCE = 160
"""Looks at dead classes in a row that may gain nothing; a share that is taken back counts as several."""
_SHARE_IN_LOOKS = 4
"""Looks at a dead class that a share of several counts as."""


@record(frozen=True, eq=False)
class Region(Arrays):
    """Dead classes that become cheaper together, and scratch space to find them.

    ``value`` estimates the units that each class would add to what is live. The first entries of
    ``member``, ``node`` and ``former`` are the classes, the e-nodes they would choose, and their former
    values; ``inside`` marks them. ``log`` lists the choices a move has changed, for taking it back.
    """

    value: Floats
    member: Integers
    node: Integers
    former: Floats
    inside: Integers
    log: Integers


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


def lift(links: Links, state: State, klass: int, node: int) -> int:
    """Mark what has to rank below ``klass`` and does not, should it choose ``node``; list it in ``path``.

    Returns
    -------
    The number of these classes, or -1 if the choice is impossible: an operand has no choice or depends on the
    class. The marks (1 instead of 0) have to be taken away with :func:`unmark`.
    """
    choice, rank, path, mark = state.choice, state.rank, state.path, state.mark
    child_start, children = links.child_start, links.children
    limit = rank[klass]
    end = 0
    done = -1
    below = node
    while True:
        for edge in range(child_start[below], child_start[below + 1]):
            child = children[edge]
            if child == klass or choice[child] < 0:
                unmark(state, end)
                return -1
            if rank[child] > limit and mark[child] == 0:
                mark[child] = 1
                path[end] = child
                end += 1
        done += 1
        if done == end:
            return end
        below = choice[path[done]]


def unmark(state: State, count: int) -> None:
    """Take away the marks of the first classes on the path."""
    for index in range(count):
        state.mark[state.path[index]] = 0


def fits(links: Links, state: State, klass: int, node: int) -> bool:
    """Whether ``klass`` may choose ``node``: every operand has a choice and none depends on the class."""
    end = lift(links, state, klass, node)
    if end > 0:
        unmark(state, end)
    return end >= 0


def set_choice(links: Links, state: State, klass: int, node: int) -> None:
    """Choose an e-node that fits; rank its operands below the class.

    Reorders the ranks between the class and its highest operand only (Marchetti-Spaccamela, Nanni, Rohnert,
    "Maintaining a topological order under edge insertions", 1996).
    """
    rank, ranked, mark, trail = state.rank, state.ranked, state.mark, state.trail
    end = lift(links, state, klass, node)
    if end > 0:
        position = rank[klass]
        waiting = 0
        seen = 0
        lowest_free = position
        while seen < end:
            other = ranked[position]
            position += 1
            if mark[other] == 1:
                seen += 1
                ranked[lowest_free] = other
                rank[other] = lowest_free
                lowest_free += 1
            else:
                trail[waiting] = other
                waiting += 1
        for index in range(waiting):
            ranked[lowest_free + index] = trail[index]
            rank[trail[index]] = lowest_free + index
        unmark(state, end)
    state.choice[klass] = node


def switch(links: Links, units: Integers, state: State, klass: int) -> int:
    """Give a live class the choice with the lowest exact price; return the units gained."""
    choice, class_start = state.choice, links.class_start
    old = choice[klass]
    price = release(links, units, state, old)
    best_price = price
    best_node = old
    for node in range(class_start[klass], class_start[klass + 1]):
        if node == old or units[node] < 0 or units[node] >= best_price:
            continue
        if not fits(links, state, klass, node):
            continue
        total, done = acquire(links, units, state, node, best_price)
        undo(links, state, node, done)
        if total < best_price:
            best_price = total
            best_node = node
    if best_node != old:
        set_choice(links, state, klass, best_node)
    acquire(links, units, state, best_node, MANY_UNITS)
    state.saving[klass] = best_price
    return price - best_price


def shake(
    links: Links,
    units: Integers,
    state: State,
    region: Region,
    order: Integers,
    negligible: int,
    changed: bool,
) -> int:
    """Improve a choice whose dead classes were chosen anew by moves of many classes, then by single ones.

    Parameters
    ----------
    region
        ``region.value`` has to hold the prices of all classes, 0 for live ones.
    order
        Room for the classes that have a choice.
    changed
        Whether dead classes have other e-nodes than before.

    Returns
    -------
    The units gained.
    """
    rank_classes(links, state)
    gained = share_pass(links, units, state, region)
    if changed or gained > 0:
        gained += descend(links, units, state, order, negligible)
    return gained


def descend(
    links: Links,
    units: Integers,
    state: State,
    order: Integers,
    negligible: int,
) -> int:
    """Switch all live classes, upwards and downwards in turn, until that gains next to nothing.

    Parameters
    ----------
    order
        Room for the classes that have a choice.

    Returns
    -------
    The units gained.
    """
    gained = 0
    for number in range(EXACT_PASSES):
        for position in range(len(order)):
            order[position] = state.ranked[position]
        step = exact_pass(links, units, state, order, number % 2 == 1)
        gained += step
        if step <= negligible:
            break
    return gained


def exact_pass(links: Links, units: Integers, state: State, order: Integers, upward: bool) -> int:
    """Switch every live class of ``order`` once, forwards or (not ``upward``) backwards; return the gain."""
    class_start, references = links.class_start, state.references
    gained = 0
    for step in range(len(order)):
        klass = order[step] if upward else order[len(order) - 1 - step]
        if references[klass] > 0 and class_start[klass + 1] - class_start[klass] > 1:
            gained += switch(links, units, state, klass)
    return gained


def spread(links: Links, units: Integers, state: State, region: Region, shared: int) -> int:
    """Find what a dead class would make cheaper, were it computed anyway.

    The region starts with the class itself; dead classes whose estimated price (``region.value``: units of
    a tree over what is live) falls join it, each with the e-node that makes it fall. Live users are asked
    what they could save by a switch.

    Returns
    -------
    The size of the region, or 0 if the users together could save less than the price of the class.
    """
    class_of, parent_start, parents = links.class_of, links.parent_start, links.parents
    child_start, children = links.child_start, links.children
    references, value = state.references, region.value
    region.member[0] = shared
    region.former[0] = value[shared]
    region.inside[shared] = 1
    value[shared] = 0.0
    hope = 0.0
    done = 0
    end = 1
    while done < end:
        below = region.member[done]
        done += 1
        for index in range(parent_start[below], parent_start[below + 1]):
            node = parents[index]
            user = class_of[node]
            if units[node] < 0 or state.choice[user] < 0:
                continue
            price = float(units[node])
            live = references[user] > 0
            # Operands only add to the price: most e-nodes cost more by themselves than there is to save.
            if price >= (state.saving[user] if live else value[user]):
                continue
            for edge in range(child_start[node], child_start[node + 1]):
                price += value[children[edge]]
            if live:
                hope += max(float(state.saving[user]) - price, 0.0)
            elif price < value[user] and region.inside[user] == 0 and end < LARGEST_REGION:
                region.member[end] = user
                region.node[end] = node
                region.former[end] = value[user]
                region.inside[user] = 1
                value[user] = price
                end += 1
    for index in range(end):
        value[region.member[index]] = region.former[index]
        region.inside[region.member[index]] = 0
    return end if hope > region.former[0] else 0


def share(links: Links, units: Integers, state: State, region: Region, size: int) -> int:
    """Bring the first class of a region to life and offer the region to all live users; take it back if no
    gain.

    No single user would pay for the class, but together they may: the move that :func:`switch` cannot see.

    Returns
    -------
    The units gained.
    """
    class_of, parent_start, parents = links.class_of, links.parent_start, links.parents
    choice, references, log = state.choice, state.references, region.log
    shared = region.member[0]
    references[shared] += 1
    price, _done = acquire(links, units, state, choice[shared], MANY_UNITS)
    gained = -price
    logged = 0
    for index in range(1, size):
        klass = region.member[index]
        node = region.node[index]
        if references[klass] == 0 and node != choice[klass] and fits(links, state, klass, node):
            log[2 * logged] = klass
            log[2 * logged + 1] = choice[klass]
            logged += 1
            set_choice(links, state, klass, node)
    for position in range(size):
        below = region.member[position]
        for index in range(parent_start[below], parent_start[below + 1]):
            user = class_of[parents[index]]
            if references[user] == 0:
                continue
            old = choice[user]
            saved = take(links, units, state, user, parents[index])
            if saved > 0:
                log[2 * logged] = user
                log[2 * logged + 1] = old
                logged += 1
                gained += saved
    if gained <= 0:
        revert(links, units, state, log, logged)
    references[shared] -= 1
    freed = release(links, units, state, choice[shared]) if references[shared] == 0 else 0
    return gained + freed if gained > 0 else 0


def take(links: Links, units: Integers, state: State, klass: int, node: int) -> int:
    """Switch a live class to an e-node if that is cheaper; return the units gained, 0 if nothing was done."""
    old = state.choice[klass]
    if state.references[klass] == 0 or node == old or units[node] < 0 or not fits(links, state, klass, node):
        return 0
    price = release(links, units, state, old)
    total, done = acquire(links, units, state, node, price)
    if total < price:
        set_choice(links, state, klass, node)
        return price - total
    undo(links, state, node, done)
    acquire(links, units, state, old, MANY_UNITS)
    return 0


def revert(links: Links, units: Integers, state: State, log: Integers, logged: int) -> None:
    """Take back the choices in the log, the last one first."""
    choice, references = state.choice, state.references
    for index in range(logged - 1, -1, -1):
        klass = log[2 * index]
        if references[klass] > 0:
            release(links, units, state, choice[klass])
            acquire(links, units, state, log[2 * index + 1], MANY_UNITS)
        set_choice(links, state, klass, log[2 * index + 1])


def share_pass(links: Links, units: Integers, state: State, region: Region) -> int:
    """:func:`share` dead classes with several users that promise a gain; return the units gained.

    All of them, unless many in a row gain nothing: in large graphs what they gain is next to nothing, too.
    ``region.value`` has to hold the prices of all classes, 0 for live ones.
    """
    parent_start = links.parent_start
    gained = 0
    looks = 0
    for klass in range(len(state.choice)):
        users = parent_start[klass + 1] - parent_start[klass]
        if users > 1 and state.references[klass] == 0 and state.choice[klass] >= 0:
            size = spread(links, units, state, region, klass)
            saved = share(links, units, state, region, size) if size > 0 else 0
            gained += saved
            looks += _SHARE_IN_LOOKS if size > 0 else 1
            if saved > 0:
                looks = 0
            if looks >= PATIENCE:
                break
    return gained


def price_changes(links: Links, units: Integers, state: State, added: Integers) -> None:
    """The units that every other e-node of a live class would add, -``MANY_UNITS`` where it is impossible."""
    for node in range(len(added)):
        added[node] = -MANY_UNITS
    for klass in range(len(state.choice)):
        if state.references[klass] > 0:
            old = state.choice[klass]
            price = release(links, units, state, old)
            for node in range(links.class_start[klass], links.class_start[klass + 1]):
                if node != old and units[node] >= 0 and fits(links, state, klass, node):
                    total, done = acquire(links, units, state, node, MANY_UNITS)
                    undo(links, state, node, done)
                    added[node] = total - price
            acquire(links, units, state, old, MANY_UNITS)
