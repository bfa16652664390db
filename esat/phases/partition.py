"""A partition of a graph's nodes into groups that never depend on each other in a circle."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

SEARCH_LIMIT = 400
"""Groups a search for a path may visit. A merge whose search takes longer is not made."""


class AcyclicPartition:
    """Nodes 0..n-1, numbered in topological order, in groups that only ever grow.

    Groups are named by one of their nodes. Merging keeps the graph of groups free of cycles: two
    groups are merged only if no path between them leads through a third.

    Parameters
    ----------
    feeding
        For each node the nodes it reads from, all of smaller number.
    """

    def __init__(self, feeding: Sequence[Sequence[int]]) -> None:
        count = len(feeding)
        self._parent = list(range(count))
        self.members: list[list[int]] = [[node] for node in range(count)]
        self.before: list[set[int]] = [set(sources) for sources in feeding]
        self.after: list[set[int]] = [set() for _ in range(count)]
        for node, sources in enumerate(feeding):
            for source in sources:
                self.after[source].add(node)
        self._first = list(range(count))
        self._last = list(range(count))

    def find(self, node: int) -> int:
        """The group a node is in."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def merge(self, first: int, second: int) -> int | None:
        """Merge two groups and return the result, or None where that would close a circle."""
        if second in self.before[first]:
            first, second = second, first
        if self._detour(first, second):
            return None
        if second not in self.after[first] and self._detour(second, first):
            return None
        return self._unite(first, second)

    def _detour(self, start: int, goal: int) -> bool:
        """Whether a path of at least two steps may lead from one group to another.

        A group can lie on such a path only if it starts before the goal ends.
        """
        limit = self._last[goal]
        pending = [group for group in self.after[start] if group != goal and self._first[group] < limit]
        seen = set(pending)
        while pending:
            group = pending.pop()
            following = self.after[group]
            if goal in following:
                return True
            for other in following:
                if other not in seen and self._first[other] < limit:
                    seen.add(other)
                    pending.append(other)
            if len(seen) > SEARCH_LIMIT:
                return True
        return False

    def _unite(self, first: int, second: int) -> int:
        keep, gone = first, second
        if self._weight(second) > self._weight(first):
            keep, gone = second, first
        self._parent[gone] = keep
        for forward, backward in ((self.before, self.after), (self.after, self.before)):
            for neighbour in forward[gone]:
                backward[neighbour].discard(gone)
                if neighbour != keep:
                    backward[neighbour].add(keep)
                    forward[keep].add(neighbour)
            forward[gone] = set()
        self.members[keep] = sorted(self.members[keep] + self.members[gone])
        self.members[gone] = []
        self._first[keep] = min(self._first[keep], self._first[gone])
        self._last[keep] = max(self._last[keep], self._last[gone])
        return keep

    def _weight(self, group: int) -> int:
        return len(self.before[group]) + len(self.after[group])

    def groups(self) -> list[int]:
        """The groups, each after those it reads from; ties broken by the smallest node number."""
        waiting = {
            group: len(self.before[group]) for group in range(len(self._parent)) if self.members[group]
        }
        ready = [(self._last[group], group) for group, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            _, group = heapq.heappop(ready)
            order.append(group)
            for following in self.after[group]:
                waiting[following] -= 1
                if waiting[following] == 0:
                    heapq.heappush(ready, (self._last[following], following))
        return order
