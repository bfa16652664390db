"""Which items are equal, as it is found out pair by pair."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class UnionFind(Generic[Item]):
    """Classes of equal items, each with one that stands for it; an item never united stands for itself.

    Attributes
    ----------
    parent
        Items that do not stand for their class -> one nearer to that which does.

    Examples
    --------
    >>> from esat.base.union_find import UnionFind
    >>> sizes = UnionFind[str]()
    >>> sizes.unite("n", "m")
    >>> sizes.find("m"), sizes.find("k")
    ('n', 'k')
    """

    def __init__(self) -> None:
        self.parent: dict[Item, Item] = {}

    def find(self, item: Item) -> Item:
        """The item that stands for the class of one."""
        parent = self.parent
        root = item
        while root in parent:
            root = parent[root]
        while item != root:
            parent[item], item = root, parent[item]
        return root

    def unite(self, kept: Item, other: Item) -> None:
        """Make two items equal. What stood for the first one's class stands for both."""
        kept, other = self.find(kept), self.find(other)
        if kept != other:
            self.parent[other] = kept

    def classes(self, items: Iterable[Item]) -> list[list[Item]]:
        """Items by their classes, in the order given."""
        found: dict[Item, list[Item]] = {}
        for item in items:
            found.setdefault(self.find(item), []).append(item)
        return list(found.values())
