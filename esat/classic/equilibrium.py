"""EquilibriumOptimizer: applies optimizers over and over until none of them changes anything."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence

from esat.classic.local import LocalOptimizer, follows
from esat.classic.navigator import LocalApplication
from esat.classic.optimizer import Optimizer, OptimizerProfile
from esat.errors import EsatWarning, OptimizerError
from esat.graph import Apply, FunctionGraph
from esat.graph.op import Op


class OscillationWarning(EsatWarning):
    """Optimizers of one equilibrium undo each other's work."""


class EquilibriumOptimizer(Optimizer):
    """Brings a graph to a state that none of the given optimizers changes.

    Each pass applies the global optimizers, and then every local optimizer to every node, the
    new ones included.

    Parameters
    ----------
    optimizers
        Local and global ones.
    maximum_use
        Passes end after each optimizer changed the graph this often per node of the graph at the
        start (and 10 times at least): then some of them undo each other, and a warning names them.
    """

    def __init__(
        self, optimizers: Iterable[LocalOptimizer | Optimizer], maximum_use: float = 8.0, name: str = ""
    ) -> None:
        given = list(optimizers)
        self.locals = [optimizer for optimizer in given if isinstance(optimizer, LocalOptimizer)]
        self.globals = [optimizer for optimizer in given if isinstance(optimizer, Optimizer)]
        if len(self.locals) + len(self.globals) != len(given):
            raise OptimizerError("an equilibrium consists of local and global optimizers")
        self.maximum_use = maximum_use
        self.name = name
        self._by_op: dict[Op, list[LocalOptimizer]] = {}

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for optimizer in self.globals:
            optimizer.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile = OptimizerProfile(self.label, type(self).__name__)
        limit = max(10, int(self.maximum_use * max(len(fgraph), 1)))
        with LocalApplication(fgraph, profile) as application:
            while True:
                before = Counter(profile.applied)
                self._one_pass(fgraph, application, profile, limit)
                changed = Counter(profile.applied) - before
                profile.passes.append(dict(changed))
                exhausted = [name for name, count in profile.applied.items() if count >= limit]
                if exhausted:
                    _warn_of_oscillation(self.label, changed, exhausted)
                    return profile
                if not changed:
                    return profile

    def _one_pass(
        self, fgraph: FunctionGraph, application: LocalApplication, profile: OptimizerProfile, limit: int
    ) -> None:
        for optimizer in self.globals:
            part = optimizer.optimize(fgraph)
            if part.changes:
                profile.applied[part.name] = profile.applied.get(part.name, 0) + part.changes
            profile.local_seconds[part.name] = profile.local_seconds.get(part.name, 0.0) + part.seconds
        pending = fgraph.toposort()
        pending.reverse()
        while pending:
            node = pending.pop()
            for local in self._locals_of(node):
                created = application.apply(node, local)
                if created is not None:
                    if profile.applied[local.label] >= limit:
                        return
                    pending += reversed(created)
                    break

    def _locals_of(self, node: Apply) -> Sequence[LocalOptimizer]:
        known = self._by_op.get(node.op)
        if known is None:
            known = [local for local in self.locals if follows(node, local)]
            self._by_op[node.op] = known
        return known


def _warn_of_oscillation(label: str, changed: Counter[str], exhausted: Sequence[str]) -> None:
    partners = sorted(changed, key=lambda name: (-changed[name], name))[:4]
    warnings.warn(
        f"{label or 'an equilibrium'} does not come to rest: {', '.join(exhausted)} reached the limit of "
        f"uses; these undo each other: {', '.join(partners)}",
        OscillationWarning,
        stacklevel=4,
    )
