"""Notes of the nodes that are built meanwhile: of a body that is traced, or of an iteration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from esat.graph.scoped import Scoped

if TYPE_CHECKING:
    from esat.graph.variables import Apply

_watched = Scoped[list["Apply"]]("nodes")


@contextmanager
def watching_nodes() -> Iterator[list[Apply]]:
    """A list that gets each node that this thread builds until the end; what is around gets them, too."""
    around, nodes = _watched.get(), list["Apply"]()
    with _watched.set(nodes):
        yield nodes
    if around is not None:
        around += nodes


def note(node: Apply) -> None:
    """Note a new node, where somebody watches."""
    nodes = _watched.get()
    if nodes is not None:
        nodes.append(node)


def noted() -> list[Apply] | None:
    """The nodes that were noted so far by who watches, or None."""
    return _watched.get()
