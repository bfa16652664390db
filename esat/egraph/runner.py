"""Programs of rule sets, run on an engine within budgets, with account kept of what they did.

A program is a schedule of egglog with the names of rule sets in braces::

    (seq (run {esat-view}) (saturate (run {esat-types esat-fold})))

Those that share a pair of braces run as one: each run takes its time, even where it finds nothing.
A run leaves out rules that have nothing to match (:mod:`esat.egraph.activity`). A program of which none has
does not run, nor does one that ran to its end when nothing has changed since. Rules are loaded when they are
about to run for the first time. Until then they had nothing to match: what they find, and in which order, is
as if they had been there from the beginning. What is saturated goes back to the budgets after every few
repetitions, so that they end rules without end there as well.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from esat.egraph.activity import Activity
from esat.egraph.counting import NodeCount
from esat.egraph.engine import AnyEngine, Command
from esat.egraph.forecast import NOISE_SECONDS, Forecast
from esat.egraph.modules import load_modules
from esat.egraph.saturation_report import RuleLog, SaturationTrace, StepTrace, StopReason
from esat.egraph.schedule import Budgets, Schedule
from esat.errors import RuleError, SaturationError
from esat.records import record

TYPES = "(saturate (run {esat-types}))"
"""Computes the types of all terms. New terms have none, and reading out needs them."""

_RUN = re.compile(r"\((run|run-with \S+) \{(.*?)\}\)")
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


@record(frozen=True, slots=True)
class RunOutcome:
    """What a program did.

    Attributes
    ----------
    updated
        Whether it changed anything, as egglog has it.
    matches
        Of the rules that matched.
    changes
        Whether each iteration changed anything.
    rest
        The program that is left to run, where something was repeated as often as one command may.
    """

    updated: bool
    matches: Mapping[str, int]
    changes: Sequence[bool]
    rest: str = ""
    exceeded: bool = False

    def followed_by(self, other: RunOutcome) -> RunOutcome:
        """What this one and the run of its rest did."""
        names = {*self.matches, *other.matches}
        matches = {name: self.matches.get(name, 0) + other.matches.get(name, 0) for name in names}
        return RunOutcome(self.updated or other.updated, matches, other.changes, other.rest, other.exceeded)


class _Prepared(NamedTuple):
    """A program's command, the members of rule sets that it runs, and what takes the place of each name."""

    members: Mapping[str, tuple[str, ...]]
    names: Mapping[str, str]
    command: Command


class Runner:
    """Runs programs on one engine.

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
    nodes
        Counts e-nodes.
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
        self._engine = engine
        self._schedule = schedule
        self._trace = trace
        self.nodes = NodeCount(engine, constructors, schedule.named)
        self.limits = budgets.limits(self.nodes.exact())
        self.matches = 0
        self._activity = Activity(schedule, self.nodes.sizes())
        self._forecast = Forecast()
        self._named: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._commands: dict[str, _Prepared] = {}
        self._settled: dict[str, int] = {}
        self.round = 0
        self.log = RuleLog()
        self.recent = RuleLog()
        self.previous = RuleLog()
        self.changes = 0
        self.hurried = False

    def begin_round(self) -> None:
        """Note that a round begins."""
        if self._trace is not None:
            self.nodes.exact()
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
        self.limits = replace(self.limits, nodes=self.nodes.exact() + nodes, matches=self.matches + matches)

    def may_take_longer(self, program: str, seconds: float) -> bool:
        """Whether a program is predicted to take longer than so many seconds."""
        nodes, forecast = self.nodes, self._forecast
        return forecast.seconds(program, nodes.most) > seconds < forecast.seconds(program, nodes.exact())

    @property
    def engine(self) -> AnyEngine:
        """What the programs run on."""
        return self._engine

    def note_additions(self) -> None:
        """Note that rows were added to the engine by other means than a program."""
        self.changes += 1
        self.nodes.forget()
        self._activity = Activity(self._schedule, self.nodes.sizes())
        self._commands.clear()

    # ---- programs that need not run

    def is_needless(self, program: str) -> bool:
        """Whether a program would do nothing."""
        return self._settled.get(program) == self.changes or self._is_idle(program)

    def note_end(self, updated: bool, *settled: str) -> None:
        """Note that a run without a limit has ended, and the programs that have nothing to do after it."""
        self.changes += updated
        for program in settled:
            self._settled[program] = self.changes

    def _is_idle(self, program: str) -> bool:
        """Whether no rule of a program has anything to match."""
        active = self._active(program)
        return bool(active) and not any(active.values())

    def _active(self, program: str) -> Mapping[str, tuple[str, ...]]:
        """The members of a program's rule sets that have something to match."""
        named = self._named.get(program)
        if named is None:
            own = (name for _, run in _RUN.findall(program) for name in run.split())
            names = tuple(dict.fromkeys(name for name in own if name in self._schedule.rules))
            named = self._named[program] = names, "(saturate" in program or len(names) > 1
        return self._activity.members(*named)

    # ---- runs

    def run(self, program: str, rulesets: tuple[str, ...]) -> RunOutcome:
        """Run a program within the budgets.

        Raises
        ------
        BudgetExhaustedError
            Before the run, for want of time; during and after it, when there are too many e-nodes or matches.
        SaturationError
            As :func:`~esat.egraph.saturate.saturate`.
        """
        left = self.left()
        if left <= 0 or self.may_take_longer(program, left + self.limits.seconds):
            self.hurried = True
            raise BudgetExhaustedError("time limit")
        before = self.nodes.last
        outcome, seconds = self._execute(program, rulesets)
        self._require_budget(outcome)
        while outcome.rest:
            if self.left() <= 0:
                self.hurried = True
                raise BudgetExhaustedError("time limit", outcome.matches)
            more, taken = self._execute(outcome.rest, rulesets)
            self._require_budget(more)
            outcome, seconds = outcome.followed_by(more), seconds + taken
        self._forecast.record(program, seconds, before)
        return outcome

    def _require_budget(self, outcome: RunOutcome) -> None:
        endless = outcome.matches if outcome.rest else None
        if self.nodes.above(self.limits.nodes):
            raise BudgetExhaustedError("node limit", endless)
        if self.matches > self.limits.matches or outcome.exceeded:
            raise BudgetExhaustedError("match limit", endless)

    def complete_types(self) -> None:
        """Compute the types that are missing, whatever the budgets: their rules make no terms."""
        program = TYPES
        while program and not self.is_needless(program):
            outcome, _ = self._execute(program, ("esat-types",), is_bounded=False)
            program = outcome.rest

    def run_types_after(self, outcome: RunOutcome) -> None:
        """Compute types, blaming only the rules of one run for what is wrong with them."""
        everything, self.recent = self.recent, RuleLog()
        self.recent.add(outcome.matches)
        self.run(TYPES, ("esat-types",))
        self.recent = everything

    def _execute(
        self, program: str, rulesets: tuple[str, ...], is_bounded: bool = True
    ) -> tuple[RunOutcome, float]:
        """Run a program and log it; what it did, and its wall time."""
        prepared = self._prepared(program)
        begun = time.perf_counter()
        try:
            most = self.limits.matches - self.matches if is_bounded else math.inf
            done = self._engine.run_schedule(prepared.command, program, prepared.names, most)
        except (SaturationError, RuleError) as error:
            raise self._explained(error, rulesets) from error
        seconds = time.perf_counter() - begun
        matches = done.matches
        outcome = RunOutcome(done.updated, matches, done.changes, done.rest, done.exceeded)
        if matches:
            self.matches += sum(matches.values())
            self.log.add(matches, seconds, done.report)
        if outcome.updated:
            self.nodes.note(matches)
            self._activity.note(matches)
            if seconds > NOISE_SECONDS:
                self.nodes.exact()
        if self._trace is not None:
            nodes = self.nodes.exact() if self._trace.counts_steps else self.nodes.last
            step = StepTrace(self.round - 1, rulesets, seconds, nodes, outcome.updated)
            self._trace.steps.append(step)
        return outcome, seconds

    def _prepared(self, program: str) -> _Prepared:
        """What runs a program, without rules that have nothing to match."""
        members = self._active(program)
        known = self._commands.get(program)
        if known is not None and known.members is members:
            return known
        names = {name: self._united(name, members) for _, name in _RUN.findall(program)}
        command = self._engine.schedule(program, names)
        prepared = self._commands[program] = _Prepared(members, names, command)
        return prepared

    def _united(self, names: str, members: Mapping[str, tuple[str, ...]]) -> str:
        """The rule set that runs in the place of one, or of several; empty if it has nothing to match."""
        rulesets = tuple(names.split())
        if self._schedule.rules and "." not in names:
            own = tuple(member for name in rulesets for member in members.get(name, ()))
            self._load(own)
            return self._engine.unite("+".join(rulesets), own) if own else ""
        self._load(rulesets)
        return names if len(rulesets) == 1 else self._engine.unite("+".join(rulesets), rulesets)

    def _load(self, members: Sequence[str]) -> None:
        """Load the rules among the members that the engine does not have; that is no time of their work."""
        missing = [name for name in members if name not in self._engine.modules]
        if missing:
            begun = time.perf_counter()
            modules = self._schedule.members
            load_modules(self._engine, [modules[name] for name in missing if name in modules])
            self._started += time.perf_counter() - begun

    def _explained(self, error: Exception, rulesets: Sequence[str]) -> SaturationError:
        """The error to raise for one of the engine's."""
        merged = _MERGED.search(str(error))
        if merged is None:
            return SaturationError(f"while running {', '.join(rulesets)}: {error}")
        if merged[1] not in _TYPES:
            sets = [
                rule.name
                for module in self._schedule.members.values()
                if (rule := module.rule) is not None and f"(set ({merged[1]} " in module.text
            ]
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
