"""Since when two ids are of one class: a union-find that keeps its history."""

from __future__ import annotations


class ClassTimes:
    """Unions of ids, told in the order of their times.

    Links are never shortened, so that the latest one between two ids is that which made them equal; trees are
    at most as deep as the logarithm of their ids.
    """

    def __init__(self) -> None:
        self._above: dict[int, tuple[int, int]] = {}
        self._sizes: dict[int, int] = {}

    def _root(self, member: int) -> int:
        while member in self._above:
            member = self._above[member][0]
        return member

    def unite(self, left: int, right: int, time: int) -> None:
        """Two ids are of one class from a time on, unless they are already."""
        left, right = self._root(left), self._root(right)
        if left == right:
            return
        sizes = self._sizes.get(left, 1), self._sizes.get(right, 1)
        if sizes[0] < sizes[1]:
            left, right = right, left
        self._above[right] = left, time
        self._sizes[left] = sum(sizes)

    def are_equal(self, left: int, right: int) -> bool:
        """Whether two ids are of one class by now."""
        return self._root(left) == self._root(right)

    def time(self, left: int, right: int) -> int | None:
        """Since when two ids are of one class; None if they are not."""
        latest = {left: 0}
        time = 0
        while left in self._above:
            left, linked = self._above[left]
            time = max(time, linked)
            latest[left] = time
        time = 0
        while right not in latest:
            if right not in self._above:
                return None
            right, linked = self._above[right]
            time = max(time, linked)
        return max(time, latest[right])
