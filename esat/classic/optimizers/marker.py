"""Entries of the database that stand for phases: markers, and the one that enables work in place."""

from __future__ import annotations

from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.profile import OptimizerProfile
from esat.graph import FunctionGraph
from esat.phases.memory.destroy import DestroyHandler


class Marker(Optimizer):
    """Changes nothing itself; the stage of its name takes place where a Query selects the marker."""

    def __init__(self, name: str) -> None:
        self.name = name

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        return None


class AddDestroyHandler(Optimizer):
    """Attaches the destroy handler: from here on replacements that overwrite what is needed are refused.

    ``fgraph.replace_validate`` raises a DestroyError for them and leaves the graph as it was; navigators
    go on as if the local optimizer had declined. It costs time for every change of a graph that overwrites
    something, so it is attached behind all optimizers that do not need it.
    """

    name = "add_destroy_handler"

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        fgraph.attach_feature(DestroyHandler())

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        return None
