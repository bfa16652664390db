"""Schedules of rule sets, run on an engine within budgets, with account kept of what they did.

A schedule that ran to its end does not run again when nothing has changed since. What is saturated goes back
to the budgets every now and then, so that they end rules without end there as well.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from esat.egraph.engine import AnyEngine
from esat.egraph.saturation.saturation_report import RuleLog, SaturationTrace, StepTrace, StopReason
from esat.egraph.saturation.schedule import Budgets, Schedule
from esat.engine.schedules import RulesetRun, ScheduleOutcome
from esat.errors import RuleError, SaturationError

TYPES = (RulesetRun(("esat-types",), True),)
"""Computes the types of all terms. New terms have none, and reading out needs them."""

_MERGED = re.compile(r"Illegal merge attempted for function (\S+)")
_TYPES = frozenset({"dt", "bp"})
"""Functions of which two values of one term are terms of different types made equal."""


class BudgetExhaustedError(Exception):
    """Ends a saturation.

    Parameters
    ----------
    reason
        The budget.
    endless
        Matches of the rules that a saturation within a step had not come to the end of.
    """

    def __init__(self, reason: StopReason, endless: Mapping[str, int] | None = None) -> None:
        self.reason = reason
        self.endless = endless or {}


class Runner:
    """Runs schedules on one engine.

    Parameters
    ----------
    engine
        Holds the rules and the loaded terms.
    schedule, budgets
        What is known of the rules, and how much they may do.
    constructors
        Tables whose rows count as e-nodes.
    trace
        Receives one entry a run.

    Attributes
    ----------
    engine
        What the schedules run on.
    limits
        What the budgets are for the e-graph as it was loaded.
    matches
        Matches of all rules together.
    round
        Rounds begun.
    log
        All that matched.
    recent, previous
        What rules of files did in this round, and in the one before.
    changes
        Grows with every run that changed something.
    hurried
        Whether the clock decided anything.
    """

    def __init__(
        self,
        engine: AnyEngine,
        schedule: Schedule,
        budgets: Budgets,
        constructors: Collection[str],
        trace: SaturationTrace | None,
    ) -> None:
        self._started = time.perf_counter()
        self.engine = engine
        self._schedule = schedule
        self._trace = trace
        self._constructors = frozenset(constructors)
        self._count: int | None = None
        self._budgets = budgets
        self._loaded = self.nodes()
        self.limits = budgets.limits(self._loaded)
        self.matches = 0
        self._known = {rule.ruleset for rule in schedule.rules}
        self._commands: dict[tuple[RulesetRun, ...], Sequence[Any]] = {}
        self._settled: dict[tuple[RulesetRun, ...], int] = {}
        self.round = 0
        self.log = RuleLog()
        self.recent = RuleLog()
        self.previous = RuleLog()
        self.changes = 0
        self.hurried = False

    def go_on(self, schedule: Schedule, nodes: int) -> None:
        """Grant what the budgets are where so many e-nodes more were loaded; rounds are counted from here."""
        self._schedule = schedule
        self._loaded += nodes
        limits = self._budgets.limits(self._loaded)
        self.limits = replace(limits, rounds=limits.rounds + self.round)
        self.note_additions()

    def begin_round(self) -> None:
        """Note that a round begins."""
        self.round += 1
        self.previous, self.recent = self.recent, RuleLog()

    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.perf_counter() - self._started

    def left(self) -> float:
        """Seconds left of the time budget."""
        return self.limits.seconds - self.seconds()

    def grant(self, nodes: int, matches: int) -> None:
        """Allow so many e-nodes and matches beyond what there are at present."""
        self.limits = replace(self.limits, nodes=self.nodes() + nodes, matches=self.matches + matches)

    def nodes(self) -> int:
        """E-nodes at present, counted where a decision needs their number."""
        if self._count is None:
            self._count = self.engine.rows_of(self._constructors)
        return self._count

    def note_additions(self) -> None:
        """Note that rows were added to the engine by other means than a schedule."""
        self.changes += 1
        self._count = None

    # ---- schedules that need not run

    def is_needless(self, runs: tuple[RulesetRun, ...]) -> bool:
        """Whether a schedule would do nothing."""
        return self._settled.get(runs) == self.changes

    def note_end(self, updated: bool, *settled: tuple[RulesetRun, ...]) -> None:
        """Note that a run without a limit has ended, and the schedules that have nothing to do after it."""
        self.changes += updated
        for runs in settled:
            self._settled[runs] = self.changes

    # ---- runs

    def run(self, runs: tuple[RulesetRun, ...], rulesets: tuple[str, ...]) -> ScheduleOutcome:
        """Run a schedule within the budgets; ``rulesets`` is what reports call it.

        Raises
        ------
        BudgetExhaustedError
            Before the run, for want of time; during and after it, when there are too many e-nodes or matches.
        SaturationError
            As :func:`~esat.egraph.saturation.saturate.saturate`.
        """
        outcome: ScheduleOutcome | None = None
        while outcome is None or outcome.is_unfinished:
            if self.left() <= 0:
                self.hurried = True
                raise BudgetExhaustedError("time limit", None if outcome is None else outcome.matches)
            more = self._execute(runs, rulesets, is_begun=outcome is not None)
            outcome = more if outcome is None else outcome.followed_by(more)
            self._require_budget(outcome)
        return outcome

    def _require_budget(self, outcome: ScheduleOutcome) -> None:
        endless = outcome.matches if outcome.is_unfinished or outcome.exceeded else None
        if self.nodes() > self.limits.nodes:
            raise BudgetExhaustedError("node limit", endless)
        if self.matches > self.limits.matches or outcome.exceeded:
            raise BudgetExhaustedError("match limit", endless)

    def complete_types(self) -> None:
        """Compute the types that are missing, whatever the budgets: their rules make no terms."""
        if not self.is_needless(TYPES):
            while self._execute(TYPES, TYPES[0].rulesets, is_bounded=False).is_unfinished:
                pass

    def run_types_after(self, outcome: ScheduleOutcome) -> None:
        """Compute types, blaming only the rules of one run for what is wrong with them."""
        everything, self.recent = self.recent, RuleLog()
        self.recent.add(outcome.matches)
        self.run(TYPES, TYPES[0].rulesets)
        self.recent = everything

    def _execute(
        self,
        runs: tuple[RulesetRun, ...],
        rulesets: tuple[str, ...],
        is_begun: bool = False,
        is_bounded: bool = True,
    ) -> ScheduleOutcome:
        """Run a schedule, or go on with it, and log that; what it did."""
        engine = self.engine
        begun = time.perf_counter()
        try:
            most = self.limits.matches - self.matches if is_bounded else math.inf
            outcome = engine.go_on(most) if is_begun else engine.run_schedule(self._command(runs), most)
        except (SaturationError, RuleError) as error:
            raise self._explained(error, rulesets) from error
        seconds = time.perf_counter() - begun
        if outcome.matches:
            self.matches += sum(outcome.matches.values())
            self.log.add(outcome.matches, seconds)
        if outcome.updated:
            self._count = None
        if self._trace is not None:
            nodes, matches = self.nodes(), outcome.matches
            step = StepTrace(self.round - 1, rulesets, seconds, nodes, outcome.updated, matches)
            self._trace.steps.append(step)
        return outcome

    def _command(self, runs: tuple[RulesetRun, ...]) -> Sequence[Any]:
        """What the engine runs for a schedule, without rule sets that have no rules here."""
        known = self._commands.get(runs)
        if known is None:
            own = [
                run._replace(
                    rulesets=tuple(name for name in run.rulesets if not self._known or name in self._known)
                )
                for run in runs
            ]
            known = self._commands[runs] = self.engine.schedule([run for run in own if run.rulesets])
        return known

    def _explained(self, error: Exception, rulesets: Sequence[str]) -> SaturationError:
        """The error to raise for one of the engine's."""
        merged = _MERGED.search(str(error))
        if merged is None:
            return SaturationError(f"while running {', '.join(rulesets)}: {error}")
        if merged[1] not in _TYPES:
            sets = [rule.name for rule in self._schedule.rules if f"(set ({merged[1]} " in rule.text]
            names = ", ".join(dict.fromkeys(sets)) or "none by name"
            return SaturationError(
                f"while running {', '.join(rulesets)}: {merged[1]} has two values of one term, and declared"
                f" with :no-merge; rules that set it: {names}"
            )
        applied = [rule.name for rule in self.recent.statistics() if rule.matches]
        # A rule set breaks off before it can report: the gate has seen the package's rules, not the users'.
        breaking = sorted(self._schedule.watched) if self._schedule.check_types else []
        names = ", ".join(dict.fromkeys([*breaking, *applied]))
        return SaturationError(
            f"while running {', '.join(rulesets)}: a rule made terms of different dtype, rank or broadcasting"
            f" equal; rules that may have: {names or 'none but those of the n-ary layer'}"
        )
