"""What an optimizer did to one graph, and how its stages are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, fields, replace
from typing import Any

from esat.base.records import record
from esat.egraph.analyses.fact_rules import FactsTold, facts_told
from esat.egraph.analyses.facts import FACTS
from esat.egraph.analyses.structure import RELATIONS
from esat.egraph.saturation.saturation_report import SaturationReport
from esat.errors import OptimizerError
from esat.extract.extraction import Extraction
from esat.extract.reasons.explain import SHARE, Explanation, explain
from esat.extract.reasons.why import Reasons
from esat.extract.resize import Resizing
from esat.extract.verdicts import OutputAccuracy
from esat.graph.calls.arguments import index_of

Stage = Callable[[str], AbstractContextManager[object]]
"""Times a named stage: a context manager around it."""


def untimed(_name: str) -> AbstractContextManager[object]:
    """A stage that nobody times."""
    return nullcontext()


FASTER = 1.05
"""Ratio of predicted times from which on the gain is told of as a number."""

WORTH_TELLING = 0.5
"""Bits, in the mean over the points, from which on a gain is told of."""


@record(frozen=True, slots=True)
class Measured:
    """How long calls took.

    Attributes
    ----------
    calls
        How many were timed; of a comparison, measurements of each contender.
    seconds
        Of one call.
    others
        What else was timed with the same arguments -> seconds of one call.
    """

    calls: int
    seconds: float
    others: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"measured: {time_text(self.seconds)} a call"
        if not self.others:
            return f"{text} (median of {self.calls})"
        beside = (
            f"{time_text(seconds)} {name} ({seconds / self.seconds:.2f} x)"
            for name, seconds in self.others.items()
        )
        return f"{text}; {', '.join(beside)}"


def time_text(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds * 1e6:.{1 if seconds >= 1e-5 else 2}f} us"


@record(frozen=True, slots=True)
class OptimizationReport:
    """What the optimizer did to one graph.

    Attributes
    ----------
    strategy
        ``egraph``, ``greedy`` or ``merge``.
    nodes_before, nodes_after
        Apply nodes of the graph.
    cost_before, cost_after
        Predicted seconds of one call.
    rules
        Name of each rule -> how often it matched (e-graph) or was applied (greedy).
    e_nodes, e_classes
        Size of the saturated e-graph; 0 for the other strategies.
    stop_reason
        Why saturation ended.
    saturation
        All that is known of the saturation; None for the other strategies.
    extraction
        The choice and all there was to choose from; None for the other strategies.
    offered
        Names of the rules that the mode and the query chose.
    resizing
        Chooses anew for other sizes, where that is known to be possible.
    regimes
        A line for each value that two forms compute, one here and one there.
    tuning
        What autotuning did; printed it is one line. None without autotuning.
    measured
        How long calls took, once they were timed.
    reasons
        Tells which rules made what equal, where an e-graph was saturated.
    placement
        Where steps run and what is copied, or why nothing runs on a device; None where none was asked for.
    """

    strategy: str
    nodes_before: int
    nodes_after: int
    cost_before: float
    cost_after: float
    rules: Mapping[str, int] = field(default_factory=dict)
    e_nodes: int = 0
    e_classes: int = 0
    stop_reason: str = ""
    saturation: SaturationReport | None = field(default=None, repr=False)
    extraction: Extraction | None = field(default=None, repr=False, compare=False)
    offered: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    resizing: Resizing | None = field(default=None, repr=False, compare=False)
    regimes: tuple[str, ...] = ()
    tuning: object = field(default=None, compare=False)
    placement: object = field(default=None, compare=False)
    measured: Measured | None = field(default=None, compare=False)
    reasons: Reasons | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> Any:
        """Copies of a report tell all that it tells; what makes further programs stays with its function."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return OptimizationReport, tuple({**values, "resizing": None, "reasons": None}.values())

    def __call__(self) -> OptimizationReport:
        """The report itself, for those who call ``f.report()``."""
        return self

    def explain(self, limit: int = 3, share: float = SHARE) -> Explanation:
        """The parts of the program with the best forms that lost, and what these would have cost.

        Parameters
        ----------
        limit
            Alternatives of each part, at most.
        share
            Of the whole time: parts, and differences to alternatives, that take less are not printed.

        Raises
        ------
        OptimizerError
            When the graph was not optimized by equality saturation: nothing lost.
        """
        limit = index_of("explain", "limit", limit)
        if self.extraction is None:
            raise OptimizerError(f"the {self.strategy} optimizer leaves nothing to compare with")
        findings = self.saturation.findings if self.saturation is not None else ()
        told = explain(
            self.extraction, self.cost_before, limit, findings, self.regimes, share, self.rules, self.offered
        )
        # What the explanation is asked of rules is kept as long as it is itself.
        reasons = None if self.reasons is None else self.reasons.anew()
        return replace(told, extraction=self.extraction, reasons=reasons, findings=findings)

    @property
    def facts(self) -> FactsTold:
        """Each fact about matrices or signs that rules concluded, with these; empty without an e-graph."""
        return {} if self.saturation is None else facts_told(self.saturation)

    @property
    def accuracy(self) -> tuple[OutputAccuracy, ...]:
        """What each output lost as it was written, and loses now, at sampled points; empty if not judged."""
        graph = None if self.extraction is None else self.extraction.graph
        if graph is None or graph.verdicts is None or graph.accuracy == "ignore":
            return ()
        return graph.verdicts.outputs

    def accuracy_lines(self) -> list[str]:
        """What was gained in accuracy, a line for each output that became better, and what that takes."""
        gains = [
            f"output {place} loses {output.best:.1f} bits in the mean, {output.written:.1f} as written"
            f" (worst of {output.points} points: {output.worst_best:.0f} and {output.worst_written:.0f})"
            for place, output in enumerate(self.accuracy)
            if output.written > output.best + WORTH_TELLING
        ]
        if gains and self.extraction is not None:
            gains.append(f"accurate forms take {self.extraction.seconds_for_accuracy * 1e6:+.2f} us a call")
        return [*gains, *self.regimes]

    def gain_lines(self) -> list[str]:
        """What was gained, what is measured first."""
        lines = [] if self.measured is None else [str(self.measured)]
        predicted = (
            f"predicted: {time_text(self.cost_after)} a call, {time_text(self.cost_before)} as written"
        )
        if self.cost_after > 0 and self.cost_before / self.cost_after >= FASTER:
            lines.append(f"{predicted} ({self.cost_before / self.cost_after:.2f} x)")
            predicted = ""
        lines += self.accuracy_lines()
        return [*lines, predicted] if predicted else lines

    def __str__(self) -> str:
        lines = [*self.gain_lines(), f"Optimizer: {self.strategy}"]
        if self.stop_reason:
            lines.append(
                f"  saturation: {self.e_nodes} e-nodes in {self.e_classes} classes,"
                f" ended by: {self.stop_reason}"
            )
        lines.append(f"  nodes: {self.nodes_before} before, {self.nodes_after} after")
        if self.tuning is not None:
            lines.append(f"  {self.tuning}")
        if self.placement is not None:
            lines += [f"  {line}" for line in str(self.placement).splitlines()]
        if self.rules:
            lines.append(f"  rules that fired ({len(self.rules)}), with their matches:")
            lines += _columns([f"{name} {count}" for name, count in self.rules.items()])
        if self.saturation is not None:
            for what, facts in (("matrices", RELATIONS), ("numbers", FACTS)):
                told = facts_told(self.saturation, facts)
                lines += [f"  facts about {what}, with the rules that concluded them:"] if told else []
                lines += [f"    {fact}: {', '.join(rules)}" for fact, rules in told.items()]
        return "\n".join(lines)


def _columns(entries: list[str], width: int = 108) -> list[str]:
    cell = max(map(len, entries)) + 2
    per_line = max(1, (width - 4) // cell)
    rows = [entries[start : start + per_line] for start in range(0, len(entries), per_line)]
    return ["    " + "".join(entry.ljust(cell) for entry in row).rstrip() for row in rows]
