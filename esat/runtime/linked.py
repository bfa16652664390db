"""Programs as other programs have them: linked, and called from within."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from esat.graph import FunctionGraph
from esat.phases.fusing.group import Group


class Linked(Protocol):
    """What an Executable is to a program that runs it, without the rest of the runtime."""

    _calls: Any

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it."""

    def run(self, *arguments: Any, out: tuple[Any, ...] | None = None) -> Any:
        """Run it in place of another of the same inputs, with arguments that this one has admitted."""

    @property
    def steps(self) -> Sequence[Group]:
        """Its steps, in order."""

    def source(self) -> str:
        """What runs, as text."""


Build: TypeAlias = Callable[[FunctionGraph], Any]
"""What makes a program of a graph: an Executable, whose module imports those that say so of it."""
