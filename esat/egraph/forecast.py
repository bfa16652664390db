"""How long the next run of a rule set may take, from the runs before it."""

from __future__ import annotations

from dataclasses import dataclass, field

NOISE_SECONDS = 0.005
"""Shorter runs say nothing about a trend."""


@dataclass(frozen=True, slots=True)
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
            self.trend[program] = seconds / max(before.seconds, NOISE_SECONDS)
        self.last[program] = _Run(seconds, max(nodes, 1))

    def seconds(self, program: str, nodes: float) -> float:
        """The time a run on ``nodes`` e-nodes may take; 0.0 for a program never run.

        The larger of two extrapolations: with the square of the e-nodes, as rules that join two of them go;
        and by the ratio of the last two runs, for those that go faster.
        """
        run = self.last.get(program)
        if run is None:
            return 0.0
        quadratic = max(1.0, nodes / run.nodes) ** 2
        return run.seconds * max(quadratic, self.trend.get(program, 1.0))
