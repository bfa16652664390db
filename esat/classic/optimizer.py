"""Global optimizers: objects that change a FunctionGraph, and sequences of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from esat.errors import OptimizerError
from esat.graph import FunctionGraph


@dataclass(slots=True)
class OptimizerProfile:
    """What one run of an optimizer did.

    Attributes
    ----------
    name, kind
        The optimizer's name and class.
    seconds
        Wall time, parts included.
    nodes_before, nodes_after
        Apply nodes.
    applied
        Name of each local optimizer -> how often it changed the graph.
    created
        Name of each local optimizer -> Apply nodes it added.
    local_seconds
        Name of each local optimizer -> time spent in it, whether it applied or not.
    passes
        For optimizers that repeat: what was applied in each pass.
    parts
        Profiles of the optimizers it consists of, in order of their execution.
    """

    name: str
    kind: str
    seconds: float = 0.0
    nodes_before: int = 0
    nodes_after: int = 0
    applied: dict[str, int] = field(default_factory=dict)
    created: dict[str, int] = field(default_factory=dict)
    local_seconds: dict[str, float] = field(default_factory=dict)
    passes: list[dict[str, int]] = field(default_factory=list)
    parts: list[OptimizerProfile] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """Replacements made, those of the parts included."""
        return sum(self.applied.values()) + sum(part.changes for part in self.parts)


class Optimizer:
    """A global optimizer: looks at a whole FunctionGraph and replaces Variables in it."""

    name: str = ""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the features that :meth:`apply` needs."""

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        """Change the graph. May return a profile."""
        raise NotImplementedError

    def optimize(self, fgraph: FunctionGraph) -> OptimizerProfile:
        """Attach what is required, then apply; this is what esat calls."""
        begin = time.perf_counter()
        before = len(fgraph)
        self.add_requirements(fgraph)
        profile = self.apply(fgraph) or OptimizerProfile(self.label, type(self).__name__)
        profile.seconds = time.perf_counter() - begin
        profile.nodes_before, profile.nodes_after = before, len(fgraph)
        return profile

    @property
    def label(self) -> str:
        """Its name, or that of its class."""
        return self.name or type(self).__name__

    def __call__(self, fgraph: FunctionGraph) -> OptimizerProfile:
        return self.optimize(fgraph)

    def __str__(self) -> str:
        return self.label

    __repr__ = __str__


class FromFunctionOptimizer(Optimizer):
    """A global optimizer from a function of the graph.

    Parameters
    ----------
    function
        Called as ``function(fgraph)``.
    requirements
        Called before it as ``requirements(fgraph)``.
    """

    def __init__(
        self,
        function: Callable[[FunctionGraph], object],
        requirements: Callable[[FunctionGraph], object] | None = None,
        name: str = "",
    ) -> None:
        self.function = function
        self.requirements = requirements
        self.name = name or getattr(function, "__name__", "")

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        if self.requirements is not None:
            self.requirements(fgraph)

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        self.function(fgraph)
        return None


class SeqOptimizer(Optimizer):
    """Runs optimizers one after another."""

    def __init__(self, optimizers: Iterable[Optimizer] = (), name: str = "") -> None:
        self.optimizers = tuple(optimizers)
        self.name = name
        for optimizer in self.optimizers:
            if not isinstance(optimizer, Optimizer):
                raise OptimizerError(f"{optimizer!r} is not a global optimizer; wrap it in a navigator")

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile = OptimizerProfile(self.label, type(self).__name__)
        profile.parts = [optimizer.optimize(fgraph) for optimizer in self.optimizers]
        return profile

    def __iter__(self) -> Iterator[Optimizer]:
        return iter(self.optimizers)

    def __len__(self) -> int:
        return len(self.optimizers)
