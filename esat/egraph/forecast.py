"""How long the next run of a rule set may take, from the runs before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from esat.records import record

NOISE_SECONDS = 0.005
"""Shorter runs say nothing about a trend."""

_FEW_NODES = 300
"""That fewer of them become more says nothing either."""

_STEEPEST = 4
"""Times grow with this power of the e-nodes at most: a run that took longer was held up by others."""


@record(frozen=True, slots=True)
class _Run:
    seconds: float
    nodes: int


@dataclass(slots=True)
class Forecast:
    """Remembers the runs of programs and extrapolates them.

    egglog cannot be interrupted, so what a step will take must be judged before it begins.
    """

    last: dict[str, _Run] = field(default_factory=dict)
    trend: dict[str, float] = field(default_factory=dict)

    def record(self, program: str, seconds: float, nodes: int) -> None:
        """Note a run that took ``seconds`` on ``nodes`` e-nodes."""
        before = self.last.get(program)
        if before is not None:
            steepest = max(2.0, _growth(before.nodes, nodes) ** _STEEPEST)
            self.trend[program] = min(seconds / max(before.seconds, NOISE_SECONDS), steepest)
        self.last[program] = _Run(seconds, nodes)

    def seconds(self, program: str, nodes: float) -> float:
        """The time a run on ``nodes`` e-nodes may take; 0.0 for a program never run.

        The larger of two extrapolations: with the square of the e-nodes, as rules that join two of them go;
        and by the ratio of the last two runs, for those that go faster.
        """
        run = self.last.get(program)
        if run is None:
            return 0.0
        quadratic = _growth(run.nodes, nodes) ** 2
        return run.seconds * max(quadratic, self.trend.get(program, 1.0))


def _growth(before: int, now: float) -> float:
    """How many times as many e-nodes there are."""
    return max(1.0, now / max(before, _FEW_NODES))
