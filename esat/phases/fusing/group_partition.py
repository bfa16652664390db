"""A partition of a graph's nodes into groups that never depend on each other in a circle."""

from __future__ import annotations

from collections.abc import Sequence

from esat.base.union_find import UnionFind

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
        self._equal = UnionFind[int]()
        self.find = self._equal.find
        self.members: list[list[int]] = [[node] for node in range(count)]
        self.before: list[set[int]] = [set(sources) for sources in feeding]
        self.after: list[set[int]] = [set() for _ in range(count)]
        for node, sources in enumerate(feeding):
            for source in sources:
                self.after[source].add(node)
        self._rank = list(range(count))
        self._too_far: tuple[int, int] | None = None

    def merge(self, first: int, second: int) -> int | None:
        """Merge two groups and return the result, or None where that would close a circle.

        Groups keep ranks in which every edge ascends. Only groups ranked between the two can lie on
        a path between them; after the merge, those that the first one reaches move behind it and
        those that reach the second one move before it (Pearce and Kelly, "A dynamic topological sort
        algorithm for directed acyclic graphs", JEA 11, 2006).
        """
        if self._rank[first] > self._rank[second]:
            first, second = second, first
        low, high = self._rank[first], self._rank[second]
        behind = self._between(first, second, self.after, low, high)
        if behind is not None and any(second in self.after[group] for group in behind):
            return None
        ahead = None if behind is None else self._between(second, first, self.before, low, high)
        if behind is None or ahead is None:
            self._too_far = first, second
            return None
        ranks = sorted(self._rank[group] for group in (*ahead, first, second, *behind))
        self._too_far = None
        merged = self._unite(first, second)
        by_rank = self._rank.__getitem__
        order = [*sorted(ahead, key=by_rank), merged, *sorted(behind, key=by_rank)]
        # One rank is left over; the merged group takes the earlier of its two places.
        del ranks[len(ahead) + 1]
        for group, rank in zip(order, ranks, strict=True):
            self._rank[group] = rank
        return merged

    def between(self, first: int, second: int) -> list[int] | None:
        """The groups on paths from one group to another, without either; None when a search is too long.

        Where that was found out last, by a merge of the two, it is not searched for again.
        """
        low, high = self._rank[first], self._rank[second]
        if self._too_far == (first, second):
            return None
        behind = self._between(first, second, self.after, low, high)
        ahead = None if behind is None else self._between(second, first, self.before, low, high)
        if behind is None or ahead is None:
            return None
        return sorted(set(behind) & set(ahead), key=self._rank.__getitem__)

    def _between(
        self, start: int, other: int, neighbours: Sequence[set[int]], low: int, high: int
    ) -> list[int] | None:
        """Groups reached from one end, ranked between both ends; None when they are too many."""
        rank = self._rank
        found: list[int] = []
        seen = {start, other}
        pending = [start]
        while pending:
            for group in neighbours[pending.pop()]:
                if group not in seen and low < rank[group] < high:
                    seen.add(group)
                    found.append(group)
                    pending.append(group)
            if len(found) > SEARCH_LIMIT:
                return None
        return found

    def _unite(self, first: int, second: int) -> int:
        keep, gone = first, second
        if self._weight(second) > self._weight(first):
            keep, gone = second, first
        self._equal.unite(keep, gone)
        for forward, backward in ((self.before, self.after), (self.after, self.before)):
            for neighbour in forward[gone]:
                backward[neighbour].discard(gone)
                if neighbour != keep:
                    backward[neighbour].add(keep)
                    forward[keep].add(neighbour)
            forward[gone] = set()
        self.members[keep] = sorted(self.members[keep] + self.members[gone])
        self.members[gone] = []
        return keep

    def _weight(self, group: int) -> int:
        return len(self.before[group]) + len(self.after[group])

    def groups(self) -> list[int]:
        """The groups, each after those it reads from."""
        return sorted(
            (group for group, members in enumerate(self.members) if members), key=self._rank.__getitem__
        )
