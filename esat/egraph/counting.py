"""E-nodes, counted where a decision needs their number, and bounded by what rules matched in between."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from esat.egraph.engine import AnyEngine
from esat.egraph.modules import Module


class NodeCount:
    """The number of e-nodes of an e-graph that rules run on.

    Parameters
    ----------
    engine
        Holds the e-graph.
    constructors
        Tables whose rows count.
    rules
        All that may run, by name, so that it is known what a match adds; of others nothing is known.

    Attributes
    ----------
    most
        E-nodes at present are at most so many.
    last
        E-nodes when they were counted last.
    """

    def __init__(
        self, engine: AnyEngine, constructors: Collection[str], rules: Mapping[str, tuple[Module, ...]]
    ) -> None:
        self._engine = engine
        self._constructors = frozenset(constructors)
        self._rules = rules
        self._terms: dict[str, float] = {}
        self._sizes: list[tuple[str, int]] = []
        self.most: float = math.inf
        self.last = 0
        self._is_exact = False

    def _terms_of(self, rule: Module) -> float:
        """Terms that one match makes at most."""
        if not rule.mapped.isdisjoint(self._constructors):
            return math.inf
        return 0 if rule.makes.isdisjoint(self._constructors) else rule.actions

    def note(self, matches: Mapping[str, int]) -> None:
        """Note how often each rule matched in a run that changed something."""
        for name, count in matches.items():
            terms = self._terms.get(name)
            if terms is None:
                own = self._rules.get(name, ())
                terms = self._terms[name] = max(map(self._terms_of, own), default=math.inf)
            self.most += count * terms
        self._is_exact = False

    def forget(self) -> None:
        """Note that something unknown was added."""
        self.most = math.inf
        self._is_exact = False

    def exact(self) -> int:
        """E-nodes at present."""
        if not self._is_exact:
            constructors = self._constructors
            self._sizes = self._engine.all_sizes()
            self.last = sum([rows for name, rows in self._sizes if name in constructors])
            self.most = self.last
            self._is_exact = True
        return self.last

    def above(self, limit: float) -> bool:
        """Whether there are more e-nodes than this."""
        return self.most > limit and self.exact() > limit

    def sizes(self) -> Mapping[str, int]:
        """Rows by table at present."""
        self.exact()
        return dict(self._sizes)
