"""An order of steps that can be asked to satisfy one more constraint at a time."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Sequence

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
