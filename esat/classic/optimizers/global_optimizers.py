"""Global optimizers: objects that change a FunctionGraph, and sequences of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from esat.classic.profile import Laps, OptimizerProfile
from esat.errors import OptimizerError
from esat.graph import FunctionGraph
from esat.graph.calls.arguments import elements_of, instance_of, sequence_of, stream_of
from esat.graph.calls.parameters import broke_off
from esat.graph.operators import comparing_nodes


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
        instance_of(self.label, "fgraph", fgraph, FunctionGraph)
        begin = time.perf_counter()
        before, validate, callback = len(fgraph), fgraph.validate_seconds, fgraph.callback_seconds
        with comparing_nodes():
            self.add_requirements(fgraph)
            # Users' own may return anything.
            try:
                answer: object = self.apply(fgraph)
            except Exception as error:
                broke_off(self.label, error)
                raise
        profile = OptimizerProfile(self.label, type(self).__name__)
        if isinstance(answer, OptimizerProfile):
            profile = answer
        profile.end(time.perf_counter() - begin)
        profile.validate_seconds = fgraph.validate_seconds - validate
        profile.callback_seconds = fgraph.callback_seconds - callback
        profile.nodes_before, profile.nodes_after = before, len(fgraph)
        profile.nodes_most = max(profile.nodes_most, before, len(fgraph))
        return profile

    def print_summary(self, file: IO[str] | None = None) -> None:
        """Print what it consists of, by default to standard output."""
        print("\n".join(self.summary()), file=stream_of("print_summary", file))

    def summary(self) -> list[str]:
        """Lines that :meth:`print_summary` prints."""
        return [f"{type(self).__name__} {self.label}"]

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
    """Runs optimizers one after another.

    Parameters
    ----------
    optimizers
        In the order in which they run.
    name
        Of the sequence.
    names
        What the optimizers are called in profiles and summaries; their own names by default.
    """

    def __init__(
        self, optimizers: Iterable[Optimizer] = (), name: str = "", names: Iterable[str] | None = None
    ) -> None:
        self.optimizers = elements_of("SeqOptimizer", "optimizers", optimizers)
        for optimizer in self.optimizers:
            if not isinstance(optimizer, Optimizer):
                raise OptimizerError(f"{optimizer!r} is not a global optimizer; wrap it in a navigator")
        self.name = name
        given = None if names is None else sequence_of("SeqOptimizer", "names", names, str)
        self.names = given or tuple(optimizer.label for optimizer in self.optimizers)
        self.after_each: Callable[[str, FunctionGraph], object] | None = None

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile, laps = OptimizerProfile(self.label, "SeqOptimizer"), Laps()
        for name, optimizer in zip(self.names, self.optimizers, strict=True):
            part = optimizer.optimize(fgraph)
            part.name = name
            profile.parts.append(part)
            if self.after_each is not None:
                self.after_each(name, fgraph)
            part.end(laps.lap())
        return profile

    def summary(self) -> list[str]:
        lines = [f"SeqOptimizer {self.label} ({len(self.optimizers)})"]
        for name, optimizer in zip(self.names, self.optimizers, strict=True):
            first, *rest = optimizer.summary()
            lines.append(f"  {name}: {first}")
            lines += ["    " + line for line in rest]
        return lines

    def __iter__(self) -> Iterator[Optimizer]:
        return iter(self.optimizers)

    def __len__(self) -> int:
        return len(self.optimizers)
