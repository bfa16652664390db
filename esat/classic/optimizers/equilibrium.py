"""EquilibriumOptimizer: applies optimizers over and over until none of them changes anything."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable

from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.optimizers.local import Followers, LocalOptimizer
from esat.classic.optimizers.navigator import LocalApplication
from esat.classic.optimizers.oscillation import ReplacementLog
from esat.classic.profile import Laps, OptimizerProfile, PassProfile
from esat.errors import EsatWarning, OptimizerError
from esat.graph import Apply, FunctionGraph

LEAST_USE = 10
"""Uses that every optimizer has, however small the graph."""

PATIENCE = 40
"""Passes after which it is looked into whether optimizers undo each other."""

WATCHED_CHANGES = 200
WATCHED_PASSES = 6
"""How long replacements are watched for that."""


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
        Passes end after an optimizer changed the graph this often per node of the graph at the
        start (and 10 times at least), and earlier where optimizers are seen to undo each other. A warning
        names them.
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
        self._by_op = Followers(self.locals)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for optimizer in self.globals:
            optimizer.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile, laps = OptimizerProfile(self.label, "EquilibriumOptimizer"), Laps()
        limit = max(LEAST_USE, int(self.maximum_use * max(len(fgraph), 1)))

        def within_limit() -> bool:
            return max(profile.applied.values(), default=0) < limit

        with LocalApplication(fgraph, profile) as application:
            while self._one_pass(fgraph, application, within_limit, laps):
                restless = not within_limit() or len(profile.passes) == PATIENCE
                if restless and self._is_endless(fgraph, application, within_limit, laps):
                    break
        return profile

    def summary(self) -> list[str]:
        lines = [line for optimizer in self.globals for line in optimizer.summary()]
        lines += [local.label for local in self.locals]
        count = len(self.globals) + len(self.locals)
        return [f"{type(self).__name__} {self.label} ({count})", *("  " + line for line in lines)]

    def _one_pass(
        self, fgraph: FunctionGraph, application: LocalApplication, goes_on: Callable[[], bool], laps: Laps
    ) -> bool:
        """Apply everything once; whether anything changed."""
        profile = application.profile
        before = dict(profile.applied)
        one = PassProfile()
        profile.passes.append(one)
        for optimizer in self.globals:
            part = optimizer.optimize(fgraph)
            one.global_seconds += part.seconds
            profile.absorb(part)
        sorting = time.perf_counter()
        nodes = fgraph.toposort()
        one.toposort_seconds = time.perf_counter() - sorting
        nodes.reverse()
        while nodes:
            created = self._change(nodes.pop(), application)
            if created is not None:
                nodes += reversed(created)
                if not goes_on():
                    break
        one.nodes = len(fgraph)
        profile.nodes_most = max(profile.nodes_most, one.nodes)
        one.applied = {
            name: count - before.get(name, 0)
            for name, count in profile.applied.items()
            if count > before.get(name, 0)
        }
        one.seconds = laps.lap()
        return bool(one.applied)

    def _change(self, node: Apply, application: LocalApplication) -> list[Apply] | None:
        """Let the first local optimizer that wants to change a node; the nodes it created."""
        for local in self._by_op[node.op]:
            created = application.apply(node, local)
            if created is not None:
                return created
        return None

    def _is_endless(
        self,
        fgraph: FunctionGraph,
        application: LocalApplication,
        within_limit: Callable[[], bool],
        laps: Laps,
    ) -> bool:
        """Go on a little, watching who replaces what by what; warn if there is no end to it."""
        log = ReplacementLog()
        profile = application.profile
        last_change = sum(profile.applied.values()) + WATCHED_CHANGES
        last_pass = len(profile.passes) + WATCHED_PASSES

        def watched() -> bool:
            return sum(profile.applied.values()) < last_change

        fgraph.attach_feature(log)
        while watched() and len(profile.passes) < last_pass:
            if not self._one_pass(fgraph, application, watched, laps):
                break
        fgraph.remove_feature(log)
        culprits = log.culprits(profile.applied)
        if len(culprits) > 1:
            reason = f"these undo each other: {', '.join(culprits)}"
        elif within_limit():
            return False
        else:
            most = max(profile.applied.values())
            tireless = sorted(name for name, count in profile.applied.items() if 2 * count > most)
            reason = f"these always find something to do: {', '.join(tireless)}"
        profile.note = reason
        warnings.warn(
            f"{self.label} does not come to rest after {profile.changes} changes; {reason}",
            OscillationWarning,
            stacklevel=2,
        )
        return True
