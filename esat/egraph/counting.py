"""E-nodes of an e-graph that rules run on, counted where a decision needs their number."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from esat.egraph.engine import AnyEngine


class NodeCount:
    """The number of e-nodes.

    Parameters
    ----------
    engine
        Holds the e-graph.
    constructors
        Tables whose rows count.
    """

    def __init__(self, engine: AnyEngine, constructors: Collection[str]) -> None:
        self._engine = engine
        self._constructors = frozenset(constructors)
        self._count = 0
        self._is_exact = False

    def forget(self) -> None:
        """Note that rows were added, or taken away."""
        self._is_exact = False

    def exact(self) -> int:
        """E-nodes at present."""
        if not self._is_exact:
            self._count = self._engine.rows_of(self._constructors)
            self._is_exact = True
        return self._count

    def sizes(self) -> Mapping[str, int]:
        """Rows by table at present."""
        return self._engine.sizes()
