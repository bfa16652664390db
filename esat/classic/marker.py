"""Markers: places in the database where later stages of the pipeline stand."""

from __future__ import annotations

from esat.classic.optimizer import Optimizer
from esat.classic.profile import OptimizerProfile
from esat.graph import FunctionGraph


class Marker(Optimizer):
    """Changes nothing itself; the stage of its name takes place where a Query selects the marker."""

    def __init__(self, name: str) -> None:
        self.name = name

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        return None
