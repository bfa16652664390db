"""Saturation: rounds of rule sets under budgets, with an e-graph that can be read at any time.

A round runs the given rule sets once and then normalises sums and products::

    index, known; rules; lift; (index, types, reduce)*, flatten, ... until nothing changes; views; constants;
    facts; index, common factors; normalise again

What only rules of files read (sizes, structure of matrices, what patterns look for in sums) is ``known``, and
derived once a round. All that flattening and factoring read is ``index``: forms that reduction replaces later
are among it, and some programs are found through them alone.
Reduction is saturated before each flattening step: flattening an unreduced sum never ends for
some of them (``core.egg``). Between any two steps the budgets are checked. What one step costs is
bounded beforehand: a rule set that has shown to explode, or is not trusted, runs with a match limit per
rule, and one that is predicted to take most of the time left is left out (:mod:`esat.egraph.forecast`).
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from esat.egraph.activity import Activity
from esat.egraph.counting import NodeCount
from esat.egraph.engine import Engine
from esat.egraph.forecast import NOISE_SECONDS, Forecast
from esat.egraph.report import (
    RuleLog,
    SaturationReport,
    StepTrace,
    StopReason,
    first_names,
    rule_name,
)
from esat.egraph.schedule import RuleStep, Schedule
from esat.egraph.terms import TermGraph
from esat.errors import EsatWarning, RuleError, SaturationError


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of one saturation.

    Attributes
    ----------
    nodes
        E-nodes.
    seconds
        Wall time.
    rounds
        Rounds.
    matches
        Fuel of a rule set once it has shown to explode.
    """

    nodes: int = 100_000
    seconds: float = 5.0
    rounds: int = 8
    matches: int = 5_000


SPARSE_ROUNDS = 5
"""Rounds beyond a budget's for graphs with sparse matrices, which move through expressions a step a round."""


def rounds_beyond(terms: TermGraph) -> int:
    """Rounds that these terms need beyond those of a budget."""
    is_sparse = any(term.constructor in ("DenseFromSparse", "DenseAt") for term in terms.terms)
    return SPARSE_ROUNDS if is_sparse else 0


EXPLOSIVE_GROWTH = 3.0
"""A step that multiplies the e-nodes by this runs with a match limit from then on."""

_LARGEST_SHARE = 0.5
"""A rule set that may take more of the time left than this is left out of the round."""

_FUEL = "(let-scheduler esat-fuel (back-off :match-limit {} :ban-length 1))"

_HARMLESS_NODES = 2_000
"""Below this many e-nodes growth is no sign of anything."""

FACTORINGS = 3
"""Times per round that common factors are looked for; nested ones (Horner's form) need several."""

FLATTENINGS = 64
"""Flattening steps of one normalization, far more than terms are nested."""

_TYPES = "(saturate (seq (saturate (run {esat-types})) (run {esat-retype})))"
_INDEX = f"(saturate (seq {_TYPES} (saturate (run {{esat-index}}))))"
_KNOWN = f"(saturate (seq {_TYPES} (saturate (run {{esat-known}}))))"


_NAMED = re.compile(r"\{(.*?)\}")


class _BudgetExhaustedError(Exception):
    def __init__(self, reason: StopReason) -> None:
        self.reason = reason


def saturate(
    engine: Engine,
    schedule: Schedule,
    budgets: Budgets,
    constructors: Sequence[str],
    trace: list[StepTrace] | None = None,
) -> SaturationReport:
    """Run rules on a loaded e-graph until nothing changes or a budget is used up.

    Parameters
    ----------
    engine
        Holds the rules and the loaded terms.
    schedule, budgets
        What to run, and for how long. The time budget is exceeded by at most one step, whose length the
        steps before it bound.
    constructors
        Tables whose rows count as e-nodes.
    trace
        Receives one entry a step.

    Returns
    -------
    SaturationReport
        Why it ended, and the statistics of the rules. Whatever the reason, the e-graph is typed and can
        be read out.

    Raises
    ------
    SaturationError
        When a rule changed the type of a class (the message names the rules applied last), when two
        different constants became equal, or when egglog breaks off. The e-graph is of no use then.

    Warns
    -----
    EsatWarning
        When a budget ended a saturation that watched rules still had something to add to; names the rules.
    """
    return _Saturation(engine, schedule, budgets, frozenset(constructors), trace).run()


@dataclass(slots=True)
class _Saturation:
    engine: Engine
    schedule: Schedule
    budgets: Budgets
    constructors: frozenset[str]
    trace: list[StepTrace] | None
    log: RuleLog = field(default_factory=RuleLog)
    recent: RuleLog = field(default_factory=RuleLog)
    previous: RuleLog = field(default_factory=RuleLog)
    started: float = 0.0
    round: int = 0
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)
    commands: dict[str, tuple[dict[str, tuple[str, ...]], str]] = field(default_factory=dict)
    forecast: Forecast = field(default_factory=Forecast)
    growth: dict[str, float] = field(default_factory=dict)
    grown_by: dict[str, RuleLog] = field(default_factory=dict)
    limited: set[str] = field(default_factory=set)
    exhausted: set[str] = field(default_factory=set)
    unrun: set[str] = field(default_factory=set)
    changes: int = 0
    settled: dict[str, int] = field(default_factory=dict)
    held_back: bool = False
    hurried: bool = False
    nodes: NodeCount = field(init=False)
    activity: Activity = field(init=False)

    def run(self) -> SaturationReport:
        self.started = time.perf_counter()
        self.nodes = NodeCount(self.engine, self.constructors, self.schedule.rules)
        self.activity = Activity(self.schedule.rules, self.nodes.sizes())
        reason = self.rounds()
        # New terms of an interrupted round have no types yet, and reading out needs them.
        self.command(_TYPES, ("esat-types",))
        if self.nodes.sizes().get("nary-contradiction", 0):
            raise SaturationError(
                "two different constants became equal: a rule is wrong, or a part of the graph has no value "
                "for any input (0 / 0)"
            )
        culprits = self.culprits() if reason in ("node limit", "time limit") else ()
        report = SaturationReport(
            reason,
            self.round,
            time.perf_counter() - self.started,
            self.nodes.exact(),
            self.log.statistics(),
            culprits,
            tuple(sorted(self.exhausted)),
            self.hurried,
        )
        return replace(report, warned=self.warn(report))

    def rounds(self) -> StopReason:
        try:
            while self.round < self.budgets.rounds:
                self.round += 1
                self.held_back = False
                self.previous, self.recent = self.recent, RuleLog()
                if not self.one_round():
                    return "match limit" if self.held_back else "saturated"
        except _BudgetExhaustedError as exhausted:
            return exhausted.reason
        return "round limit"

    def one_round(self) -> bool:
        """Run one round; whether anything changed."""
        changed = False
        if self.schedule.core:
            self.step("esat-index", _INDEX)
            self.step("esat-known", _KNOWN)
        for rules in self.schedule.steps:
            if rules.rounds is None or self.round <= rules.rounds:
                changed |= self.rule_step(rules)
        if not self.schedule.core:
            return self.close_round() or changed
        changed |= self.step("esat-lift", "(saturate (run {esat-lift}))")
        changed |= self.normalize()
        changed |= self.step("esat-view", "(run {esat-view})")
        changed |= self.close_round()
        return self.factor() or changed

    def factor(self) -> bool:
        """Find common factors and add the factored forms; whether anything changed."""
        changed = False
        for _ in range(FACTORINGS):
            self.step("esat-index", _INDEX)
            found = self.step("esat-factor", "(saturate (run {esat-factor}))")
            if not self.step("esat-factored", "(run {esat-factored})"):
                return changed or found
            changed = True
            self.normalize()
        return changed

    def close_round(self) -> bool:
        changed = self.step("esat-fold", f"(saturate (seq {_TYPES} (run {{esat-fold}})))")
        return self.step("esat-facts", "(saturate (run {esat-facts}))") or changed

    def normalize(self) -> bool:
        """Reduce and flatten sums and products as far as they go; whether anything changed."""
        changed = False
        for _ in range(FLATTENINGS):
            changed |= self.step("esat-index", _INDEX)
            while self.step("esat-reduce", "(run {esat-reduce})"):
                changed = True
                self.step("esat-index", _INDEX)
            if not self.step("esat-flatten", "(run {esat-flatten})"):
                return changed
            changed = True
        return changed

    # ---- steps

    def step(self, ruleset: str, program: str) -> bool:
        """One step of the layer itself; whether it changed anything."""
        if self.is_settled(program) or self.is_idle(program):
            return False
        report = self.timed(program, (ruleset,))
        self.note_end(program, bool(report.updated))
        return bool(report.updated)

    def is_settled(self, program: str) -> bool:
        """Whether a program has nothing to do: it ran to its end, and nothing changed since."""
        return self.settled.get(program) == self.changes

    def note_end(self, program: str, updated: bool) -> None:
        """Remember a program that ran without a limit, for :meth:`is_settled`."""
        self.changes += updated
        if not updated or program.startswith("(saturate"):
            self.settled[program] = self.changes

    def rule_step(self, rules: RuleStep) -> bool:
        """One step of rules from files: each rule set by itself, so that one cannot starve the others."""
        changed = False
        for ruleset in rules.rulesets:
            fuel = self.budgets.matches if rules.fuel is None else rules.fuel
            least = fuel if rules.from_nodes is None else rules.from_nodes
            limited = ruleset in self.limited or (rules.fuel is not None and self.nodes.above(least))
            rulesets = self.without_large_joins(ruleset)
            if not rulesets:
                continue
            run = "run-with esat-fuel" if limited else "run"
            program = " ".join(f"({run} {{{name}}})" for name in rulesets)
            program = f"{_FUEL.format(fuel)} (seq {program})" if limited else f"(seq {program})"
            if self.may_take_longer(program, _LARGEST_SHARE * self.left()):
                self.hurried = True
                self.hold_back(ruleset)
            elif not self.is_settled(program) and not self.is_idle(program):
                updated = self.run_ruleset(ruleset, program, fuel, limited)
                if limited:
                    self.changes += updated
                else:
                    self.note_end(program, updated)
                changed |= updated
        return changed

    def without_large_joins(self, ruleset: str) -> tuple[str, ...]:
        """What to run of a rule set: itself, or all of its members but joins with too many matches."""
        joins = self.schedule.joins.get(ruleset, ())
        large = [join for join in joins if join.matches(self.nodes.sizes()) > self.budgets.matches]
        if not large:
            return (ruleset,)
        self.hold_back(ruleset)
        self.unrun.update(rule_name(join.name) for join in large)
        members = {join.member for join in large}
        return tuple(rule.member for rule in self.schedule.rules[ruleset] if rule.member not in members)

    def run_ruleset(self, ruleset: str, program: str, fuel: int, limited: bool) -> bool:
        """Run one rule set; whether anything changed."""
        nodes = self.nodes
        # Fewer e-nodes than that are no part of any decision below.
        if limited or nodes.most > min(fuel, _HARMLESS_NODES / EXPLOSIVE_GROWTH):
            nodes.exact()
        before, most = nodes.last, nodes.most
        report = self.timed(program, (ruleset,))
        if report.updated:
            self.recent.add(report)
        if self.schedule.check_types:
            self.check_types(report)
        explosive = nodes.above(max(_HARMLESS_NODES, EXPLOSIVE_GROWTH * before))
        if explosive or max(report.num_matches_per_rule.values(), default=0) > max(fuel, before):
            self.limited.add(ruleset)
        self.growth[ruleset] = self.growth.get(ruleset, 0) + max(nodes.most - most, 0)
        self.grown_by.setdefault(ruleset, RuleLog()).add(report)
        if not limited or not report.updated or nodes.exact() != before:
            return bool(report.updated)
        # egglog says "updated" also of a run with a match limit that left rules out and did nothing else.
        if any(iteration.rule_set_report.changed for iteration in report.iterations):
            return True
        self.hold_back(ruleset)
        return False

    def check_types(self, report: Any) -> None:
        """Compute types, blaming only the rules of one step for what is wrong with them."""
        everything, self.recent = self.recent, RuleLog()
        self.recent.add(report)
        self.timed(_TYPES, ("esat-types",))
        self.recent = everything

    def hold_back(self, ruleset: str) -> None:
        """Note that a rule set has more to say."""
        self.held_back = True
        self.exhausted.add(ruleset)

    def timed(self, program: str, rulesets: tuple[str, ...]) -> Any:
        """Run a program within the budgets; its report."""
        left = self.left()
        if left <= 0 or self.may_take_longer(program, left + self.budgets.seconds):
            self.hurried = True
            raise _BudgetExhaustedError("time limit")
        before = self.nodes.last
        report, seconds = self.command(program, rulesets)
        self.forecast.record(program, seconds, before)
        if self.nodes.above(self.budgets.nodes):
            raise _BudgetExhaustedError("node limit")
        return report

    def may_take_longer(self, program: str, seconds: float) -> bool:
        """Whether a program is predicted to take longer than so many seconds."""
        nodes, forecast = self.nodes, self.forecast
        return forecast.seconds(program, nodes.most) > seconds < forecast.seconds(program, nodes.exact())

    def left(self) -> float:
        """Seconds left of the time budget."""
        return self.budgets.seconds - (time.perf_counter() - self.started)

    def command(self, program: str, rulesets: tuple[str, ...]) -> tuple[Any, float]:
        """Run a program and log it; its report and wall time."""
        text = self.text(program)
        begun = time.perf_counter()
        try:
            (output,) = self.engine.execute_again(text)
        except (SaturationError, RuleError) as error:
            raise self.explained(error, rulesets) from error
        seconds = time.perf_counter() - begun
        report = output.report
        self.log.add(report, seconds)
        if report.updated:
            self.nodes.note(report)
            if self.schedule.rules:
                self.activity.note(report.num_matches_per_rule)
            if seconds > NOISE_SECONDS:
                self.nodes.exact()
        if self.trace is not None:
            nodes = self.nodes.exact()
            self.trace.append(StepTrace(self.round - 1, rulesets, seconds, nodes, bool(report.updated)))
        return report, seconds

    def is_idle(self, program: str) -> bool:
        """Whether no rule of a program has anything to match."""
        active = self.active(program)
        return bool(active) and not any(active.values())

    def active(self, program: str) -> dict[str, tuple[str, ...]]:
        """The members of a program's rule sets that have something to match."""
        names = self.named.get(program)
        if names is None:
            own = (name for name in _NAMED.findall(program) if name in self.schedule.rules)
            names = self.named[program] = tuple(dict.fromkeys(own))
        return self.activity.members(names, repeated="(saturate" in program)

    def text(self, program: str) -> str:
        """The command that runs a program, without rules that have nothing to match."""
        members = self.active(program)
        known = self.commands.get(program)
        if known is not None and known[0] is members:
            return known[1]
        rules = self.schedule.rules

        def united(named: re.Match[str]) -> str:
            name = named.group(1)
            return name if not rules or "." in name else self.engine.unite(name, members.get(name, ()))

        text = f"(run-schedule {_NAMED.sub(united, program)})"
        self.commands[program] = members, text
        return text

    def explained(self, error: Exception, rulesets: tuple[str, ...]) -> SaturationError:
        """The error to raise for one of the engine's."""
        if "Illegal merge" not in str(error):
            return SaturationError(f"while running {', '.join(rulesets)}: {error}")
        applied = [rule.name for rule in self.recent.statistics() if rule.matches]
        # A rule set breaks off before it can report: the gate has seen the package's rules, not the users'.
        breaking = sorted(self.schedule.watched) if self.schedule.check_types else []
        names = ", ".join(dict.fromkeys([*breaking, *applied]))
        return SaturationError(
            f"while running {', '.join(rulesets)}: a rule made terms of different dtype, rank or broadcasting"
            f" equal; rules that may have: {names or 'none but those of the n-ary layer'}"
        )

    # ---- the end

    def culprits(self) -> tuple[str, ...]:
        """Rules with the most matches in the step that added the most e-nodes."""
        if not self.growth:
            return ()
        worst = max(self.growth, key=lambda ruleset: self.growth[ruleset])
        return first_names(self.grown_by[worst].statistics(), 3)

    def warn(self, report: SaturationReport) -> bool:
        """Tell of watched rules that had no end; whether there was anything to tell."""
        if report.complete or not (self.unrun or self.schedule.watched):
            return False
        matched = [rule for log in (self.previous, self.recent) for rule in log.statistics()]
        watched = [rule for rule in matched if rule.name in self.schedule.watched and rule.matches]
        watched.sort(key=lambda rule: -rule.matches)
        names = list(dict.fromkeys([*sorted(self.unrun), *(rule.name for rule in watched)]))[:3]
        if names:
            warnings.warn(
                f"saturation ended by its {report.stop_reason} at {report.nodes} e-nodes; "
                f"these rules still had something to add: {', '.join(names)}",
                EsatWarning,
                stacklevel=4,
            )
            return True
        return False
