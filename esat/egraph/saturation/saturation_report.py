"""What happened during saturation, as data: steps, matches and times per rule, and why it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from esat.base.records import record
from esat.egraph.algebra.findings import Finding

StopReason = Literal["saturated", "round limit", "match limit", "node limit", "time limit"]
"""Why saturation ended.

``saturated``: no rule had anything to add. ``match limit``: nothing but rules that had too many matches for
one run, or the matches of all rules used up their budget. The other limits are those of the budgets.
"""


@record(frozen=True, slots=True)
class RuleStatistics:
    """How often a rule matched (matches without effect included), and the seconds it took.

    The time of a step is shared among the rules that matched in it, by their matches.
    """

    name: str
    matches: int
    seconds: float


@record(frozen=True, slots=True)
class StepTrace:
    """One command given to the engine.

    Attributes
    ----------
    round
        Number of the round, from 0.
    rulesets
        What was run.
    seconds
        Wall time.
    nodes
        E-nodes afterwards.
    updated
        Whether anything changed.
    matches
        Name of each rule that matched -> how often.
    """

    round: int
    rulesets: tuple[str, ...]
    seconds: float
    nodes: int
    updated: bool
    matches: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class SaturationTrace:
    """The steps of a saturation.

    Attributes
    ----------
    steps
        In order.
    """

    steps: list[StepTrace] = field(default_factory=list)


@record(frozen=True, slots=True)
class SaturationReport:
    """The outcome of one saturation.

    Attributes
    ----------
    stop_reason
        See :data:`StopReason`.
    rounds
        Rounds begun.
    seconds
        Wall time of all steps.
    nodes
        E-nodes at the end.
    rules
        Statistics of every rule that matched, most matches first.
    culprits
        For an end by budget: the rules that made the e-graph grow, worst first.
    exhausted
        Rule sets of which rules were left out in some round, for their matches or their time.
    hurried
        Whether the clock decided anything: another run may find more, or less.
    warning
        What a warning told of the user's rules that had no end; empty if there was none.
    findings
        Equalities that were recognised and not derived.
    is_news
        Whether there is more in the e-graph than before it was told of the last terms.
    """

    stop_reason: StopReason
    rounds: int
    seconds: float
    nodes: int
    rules: tuple[RuleStatistics, ...]
    culprits: tuple[str, ...] = ()
    exhausted: tuple[str, ...] = ()
    hurried: bool = False
    warning: str = ""
    findings: tuple[Finding, ...] = ()
    is_news: bool = True

    @property
    def complete(self) -> bool:
        """Whether the e-graph holds all the rules can say."""
        return self.stop_reason == "saturated"

    def __str__(self) -> str:
        head = f"{self.stop_reason} after {self.rounds} rounds"
        head += f", {self.seconds * 1e3:.1f} ms, {self.nodes} e-nodes"
        if self.culprits:
            head += f"; grown by {', '.join(self.culprits)}"
        lines = [
            f"  {rule.matches:8d} matches {rule.seconds * 1e3:8.2f} ms  {rule.name}"
            for rule in self.rules
            if rule.matches
        ]
        return "\n".join([head, *lines])


@dataclass(slots=True)
class RuleLog:
    """Adds up what rules did in runs.

    The compiler turns one rule into several, called ``name``, ``name#1``, ...; they count as one. Rules that
    only note what elements others could take, ``name#element0``, ..., count in the time.

    Attributes
    ----------
    runs
        Matches of the rules that matched, and the seconds that it took.
    """

    runs: list[tuple[Mapping[str, int], float]] = field(default_factory=list)

    def add(self, matches: Mapping[str, int], seconds: float = 0.0) -> None:
        """Add a run."""
        self.runs.append((matches, seconds))

    def statistics(self) -> tuple[RuleStatistics, ...]:
        """All rules that matched, or whose helpers did, most matches first, then by name."""
        matches: dict[str, int] = {}
        seconds: dict[str, float] = {}
        for counts, taken in self.runs:
            share = taken / max(sum(counts.values()), 1)
            for name, count in counts.items():
                matches[name] = matches.get(name, 0) + count
                seconds[name] = seconds.get(name, 0.0) + share * count
        found: dict[str, RuleStatistics] = {}
        for name, count in matches.items():
            rule = rule_name(name)
            before = found.get(rule, RuleStatistics(rule, 0, 0.0))
            own = 0 if is_helper(name) else count
            found[rule] = RuleStatistics(rule, before.matches + own, before.seconds + seconds.get(name, 0.0))
        return tuple(sorted(found.values(), key=lambda rule: (-rule.matches, rule.name)))


HELPER = "element"
"""Begins what tells a rule that helps another from it."""


def is_helper(name: str) -> bool:
    """Whether a rule only notes what elements another could take."""
    return name.partition("#")[2].startswith(HELPER)


def rule_name(name: str) -> str:
    """The name a rule has in its file."""
    return name.partition("#")[0]


def first_names(rules: Iterable[RuleStatistics], count: int) -> tuple[str, ...]:
    """Names of the first ``count`` rules."""
    return tuple(rule.name for rule in rules)[:count]
