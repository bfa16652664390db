"""The order of steps: what frees most memory first, and orders that satisfy one more constraint at a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from esat.graph import Variable
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import shown_positions

WORK_PER_STEP = 200
"""Steps that may be looked at in all, for each step there is, before constraints that would change the
order are refused unseen: it keeps the whole near linear."""


class StepOrder:
    """Steps 0..n-1 in an order in which each comes after those it must follow.

    A constraint is added if some order satisfies it with all the others. The order is changed between the
    places of the steps concerned only (Pearce and Kelly, "A dynamic topological sort algorithm for directed
    acyclic graphs", JEA 11, 2006).

    Parameters
    ----------
    before
        For each step those it must follow.
    late
        Steps that start behind all others that can run when they can: those that wait for readers.

    Attributes
    ----------
    circular
        Steps that follow each other in a circle, or depend on such steps; they are in no order.
    """

    def __init__(self, before: Sequence[Iterable[int]], late: Container[int] = ()) -> None:
        self._before = [set(steps) for steps in before]
        self._after: list[set[int]] = [set() for _ in before]
        for step, sources in enumerate(self._before):
            for source in sources:
                self._after[source].add(step)
        order = self._sorted(late)
        self.circular = sorted(set(range(len(before))).difference(order))
        self._rank = [0] * len(before)
        for rank, step in enumerate([*order, *self.circular]):
            self._rank[step] = rank
        self._budget = WORK_PER_STEP * (len(before) + 1)

    def _sorted(self, late: Container[int]) -> list[int]:
        waiting = [len(sources) for sources in self._before]
        ready = [(step in late, step) for step, count in enumerate(waiting) if count == 0]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            _, step = heapq.heappop(ready)
            order.append(step)
            for following in self._after[step]:
                waiting[following] -= 1
                if waiting[following] == 0:
                    heapq.heappush(ready, (following in late, following))
        return order

    def order(self) -> list[int]:
        """The steps in an order that satisfies all constraints."""
        return sorted(range(len(self._rank)), key=self._rank.__getitem__)

    def add(self, sources: Iterable[int], target: int) -> bool:
        """Let ``target`` follow all ``sources``; False, and nothing changes, where it cannot."""
        new = [source for source in sources if source not in self._before[target]]
        if target in new:
            return False
        last = max((self._rank[source] for source in new), default=-1)
        if last > self._rank[target] and not self._move(new, target, last):
            return False
        for source in new:
            self._before[target].add(source)
            self._after[source].add(target)
        return True

    def _move(self, sources: Sequence[int], target: int, last: int) -> bool:
        """Bring ``target``, and what follows it, behind ``sources`` and what they follow."""
        first = self._rank[target]
        wanted = {source for source in sources if self._rank[source] > first}
        following = self._reach([target], self._after, first, last)
        if following is None or not wanted.isdisjoint(following):
            return False
        leading = self._reach(wanted, self._before, first, last)
        if leading is None:
            return False
        by_rank = self._rank.__getitem__
        order = sorted(leading, key=by_rank) + sorted(following, key=by_rank)
        for step, rank in zip(order, sorted(map(by_rank, order)), strict=True):
            self._rank[step] = rank
        return True

    def _reach(
        self, starts: Iterable[int], neighbours: Sequence[set[int]], first: int, last: int
    ) -> set[int] | None:
        """Steps reached from ``starts`` with ranks from ``first`` to ``last``; None when out of budget."""
        found = set(starts)
        pending = list(found)
        while pending:
            if self._budget < 0:
                return None
            for step in neighbours[pending.pop()]:
                self._budget -= 1
                if step not in found and first <= self._rank[step] <= last:
                    found.add(step)
                    pending.append(step)
        return found

    def path(self, start: int, end: int) -> list[int]:
        """Steps from ``start`` to ``end``, each of which must follow the one before it; empty for none."""
        came_from: dict[int, int] = {start: start}
        pending = [start]
        for step in pending:
            if step == end:
                break
            for following in sorted(self._after[step]):
                if following not in came_from:
                    came_from[following] = step
                    pending.append(following)
        if end not in came_from:
            return []
        found = [end]
        while found[-1] != start:
            found.append(came_from[found[-1]])
        return found[::-1]


Roots = Mapping[Variable, frozenset[Variable]]
"""Variable -> the variables whose memory it may show: itself, unless it is a view or overwrites one."""

NOTHING: Mapping[Any, Any] = {}


def find_roots(groups: Sequence[Group], taken: Mapping[Variable, Variable] = NOTHING) -> Roots:
    """Whose memory each variable may share: through any number of views and of steps that overwrite.

    Parameters
    ----------
    groups
        The groups in order.
    taken
        Output of a kernel -> input whose memory it takes.
    """
    roots: dict[Variable, frozenset[Variable]] = {}
    for group in groups:
        for variable in group.reads:
            roots.setdefault(variable, frozenset((variable,)))
        for output in group.outputs:
            shown = [roots[variable] for variable in _shown(group, output, taken)]
            roots[output] = frozenset().union(*shown) if shown else frozenset((output,))
    return roots


def _shown(group: Group, output: Variable, taken: Mapping[Variable, Variable]) -> list[Variable]:
    """The inputs whose memory an output may share."""
    node = output.owner
    if group.kind == "kernel" or node is None or output.index is None:
        return [taken[output]] if output in taken else []
    positions = (*shown_positions(node, output.index), *node.op.destroy_map.get(output.index, ()))
    return [node.inputs[position] for position in positions]


def order_steps(
    groups: Sequence[Group],
    kept: Sequence[Variable],
    size: Callable[[Variable], float],
    after: Mapping[Group, Sequence[Group]] = NOTHING,
    taken: Mapping[Variable, Variable] = NOTHING,
) -> tuple[Group, ...]:
    """Order groups so that few bytes are alive at once.

    Of the groups that can run, the one that adds least to the live bytes runs next (results it makes
    less operands it is the last to read); ties go to the earlier one. The given order is kept where
    that does not lower the peak.

    Parameters
    ----------
    groups
        Groups in an order in which they can run.
    kept
        Variables that stay alive to the end.
    size
        Bytes of a variable.
    after
        Group -> groups that must run before it, beside those that feed it.
    taken
        Output of a kernel -> input whose memory it takes.
    """
    roots = find_roots(groups, taken)
    held = frozenset().union(*(roots.get(variable, frozenset((variable,))) for variable in kept))
    ordered = _Scheduler(groups, roots, held, size, after).run()
    given, found = (peak_bytes(order, roots, held, size) for order in (groups, ordered))
    return tuple(ordered if found < given else groups)


def peak_bytes(
    groups: Sequence[Group], roots: Roots, held: frozenset[Variable], size: Callable[[Variable], float]
) -> float:
    """The most bytes of computed variables that are alive at one time."""
    uses = _count_uses(groups, roots)
    made = {output for group in groups for output in group.outputs}
    alive = peak = 0.0
    for group in groups:
        alive += sum(size(output) for output in group.outputs if output in roots[output])
        peak = max(peak, alive)
        for root in _read_roots(group, roots):
            uses[root] -= 1
            if uses[root] == 0 and root not in held and root in made:
                alive -= size(root)
    return peak


def _read_roots(group: Group, roots: Roots) -> set[Variable]:
    return {root for variable in group.reads for root in roots[variable]}


def _count_uses(groups: Sequence[Group], roots: Roots) -> dict[Variable, int]:
    uses: dict[Variable, int] = {}
    for group in groups:
        for root in _read_roots(group, roots):
            uses[root] = uses.get(root, 0) + 1
    return uses


class _Scheduler:
    """Greedy list scheduling by the change in live bytes."""

    def __init__(
        self,
        groups: Sequence[Group],
        roots: Roots,
        held: frozenset[Variable],
        size: Callable[[Variable], float],
        after: Mapping[Group, Sequence[Group]],
    ) -> None:
        self.groups = groups
        self.held = held
        self.size = size
        self.reads = [_read_roots(group, roots) for group in groups]
        self.makes = [
            sum(size(output) for output in group.outputs if output in roots[output]) for group in groups
        ]
        self.producer = {output: number for number, group in enumerate(groups) for output in group.outputs}
        place = {group: number for number, group in enumerate(groups)}
        sources = [
            {self.producer[variable] for variable in group.reads if variable in self.producer}
            | {place[earlier] for earlier in after.get(group, ())}
            for group in groups
        ]
        self.waiting = [len(feeding) for feeding in sources]
        self.feeds: list[list[int]] = [[] for _ in groups]
        for number, feeding in enumerate(sources):
            for source in feeding:
                self.feeds[source].append(number)
        self.readers: dict[Variable, set[int]] = {}
        for number, reads in enumerate(self.reads):
            for root in reads:
                self.readers.setdefault(root, set()).add(number)

    def run(self) -> list[Group]:
        """The groups in their new order."""
        done = [False] * len(self.groups)
        heap = [(self._growth(number), number) for number, count in enumerate(self.waiting) if count == 0]
        heapq.heapify(heap)
        order: list[Group] = []
        while heap:
            growth, number = heapq.heappop(heap)
            if done[number] or growth != self._growth(number):
                continue  # an older price: the group was entered again when it changed
            done[number] = True
            order.append(self.groups[number])
            for following in self.feeds[number]:
                self.waiting[following] -= 1
                if self.waiting[following] == 0:
                    heapq.heappush(heap, (self._growth(following), following))
            for root in self.reads[number]:
                self.readers[root].discard(number)
                if len(self.readers[root]) == 1:
                    (last,) = self.readers[root]
                    if self.waiting[last] == 0:
                        heapq.heappush(heap, (self._growth(last), last))
        return order

    def _growth(self, number: int) -> float:
        freed = sum(
            self.size(root)
            for root in self.reads[number]
            if len(self.readers[root]) == 1 and root not in self.held and root in self.producer
        )
        return self.makes[number] - freed
