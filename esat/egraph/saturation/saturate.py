"""Saturation: rounds of rule sets under budgets, with an e-graph that can be read at any time.

A round runs the given rule sets once and then normalises sums and products::

    index, known; rules; lift, index; (reduce, index)*, flatten, ... until nothing changes; what draws scalars
    outward, then lift and normalise, until nothing changes; views, constants, facts; index, common factors;
    normalise again

What only rules of files read (sizes, structure of matrices, what patterns look for in sums) is ``known``, and
derived once a round. All that reducing, flattening and factoring read is ``index``, with the types: forms
that reduction replaces later are among it, and some programs are found through them alone.
Reduction is saturated before each flattening step: flattening an unreduced sum never ends for some of them
(``core.egg``). Rounds go on until one changes nothing, or a budget of e-nodes or matches is used up; both
grow with the graph, and are checked between any two steps, and within one after every few repetitions of what
it saturates. A rule set that has shown to explode, or is not trusted, runs with a match limit per rule.
Rules of stabilization run to their end after what a budget ended.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from esat.base.progress import tell
from esat.egraph.algebra.phase import Algebra
from esat.egraph.engine import AnyEngine
from esat.egraph.language.terms import TermGraph
from esat.egraph.saturation.runner import BudgetExhaustedError, Runner
from esat.egraph.saturation.saturation_report import (
    RuleLog,
    SaturationReport,
    SaturationTrace,
    StopReason,
    first_names,
    rule_name,
)
from esat.egraph.saturation.schedule import LEAST_MATCHES, LEAST_NODES, Budgets, RuleStep, Schedule
from esat.engine.schedules import RulesetRun, ScheduleOutcome
from esat.errors import EsatWarning, SaturationError

SPARSE_ROUNDS = 5
"""Rounds beyond a budget's for graphs with sparse matrices, which move through expressions a step a round."""


def rounds_beyond(terms: TermGraph) -> int:
    """Rounds that these terms need beyond those of a budget."""
    is_sparse = any(term.constructor in ("DenseFromSparse", "DenseAt") for term in terms.terms)
    return SPARSE_ROUNDS if is_sparse else 0


EXPLOSIVE_GROWTH = 3.0
"""A step that multiplies the e-nodes by this runs with a match limit from then on."""

_USERS_MATCHES_A_NODE = 4
"""New matches that a user's rule may have in a run for each e-node, if that is more than the fuel."""

_HARMLESS_NODES = 2_000
"""Below this many e-nodes growth is no sign of anything."""

_SMALL_NODES = _HARMLESS_NODES / EXPLOSIVE_GROWTH
"""Up to so many e-nodes, rule sets of the package run together: each run has its overhead."""

FACTORINGS = 3
"""Times per round that common factors are looked for; nested ones (Horner's form) need several."""

STALLED_ROUNDS = 8
"""Rounds one after the other that may change something without any table's having more rows, or fewer.

What is equated shows in the tables sooner or later; what rules only say again does not."""

FLATTENINGS = 64
"""Flattening steps of one normalization, far more than terms are nested."""

OUTWARD_STEPS = 256
"""Operations that scalars and signs are drawn out of in a round, one after the other."""


class _Schedules(NamedTuple):
    """What the layer runs: what brings its index up to date, what rules of files read, and normalization."""

    indexed: tuple[RulesetRun, ...]
    known: tuple[RulesetRun, ...]
    lift: tuple[RulesetRun, ...]
    reduce: tuple[RulesetRun, ...]
    flatten: tuple[RulesetRun, ...]


def _run(*names: str) -> RulesetRun:
    return RulesetRun(names)


def _saturated(*names: str) -> RulesetRun:
    return RulesetRun(names, is_saturated=True)


@lru_cache(maxsize=64)
def _schedules(normal: tuple[str, ...]) -> _Schedules:
    """The schedules with these rule sets in the index."""
    index = _saturated("esat-types", "esat-index", *normal)
    return _Schedules(
        (index,),
        (index, _saturated("esat-types", "esat-known")),
        (
            _saturated("esat-offer"),
            *map(_run, ("esat-take", "esat-take-first", "esat-taken")),
            _saturated("esat-lift"),
            index,
        ),
        (_run("esat-reduce"), _run("esat-retire"), index),
        (_run("esat-flatten"), _run("esat-retire"), index),
    )


_FACTOR = (_saturated("esat-factor"),)
_FACTORED = (_run("esat-factored"),)
_CLOSE = (_run("esat-view"), _saturated("esat-types", "esat-fold"), _saturated("esat-facts"))


def saturate(
    engine: AnyEngine,
    schedule: Schedule,
    budgets: Budgets,
    constructors: Sequence[str],
    trace: SaturationTrace | None = None,
    algebra: Algebra | None = None,
) -> SaturationReport:
    """Run rules on a loaded e-graph until nothing changes or a budget is used up.

    Parameters
    ----------
    engine
        Holds the rules and the loaded terms.
    schedule, budgets
        What to run, and how much of it. A budget is exceeded by at most one step, whose length the
        steps before it bound.
    constructors
        Tables whose rows count as e-nodes.
    trace
        Receives one entry a step.
    algebra
        Adds, between rounds, what follows from values in finite fields.

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
    runner = Runner(engine, schedule, budgets, frozenset(constructors), trace)
    return Saturation(schedule, runner, algebra).run()


@dataclass(slots=True)
class Saturation:
    """The rounds on one e-graph; see :func:`saturate`."""

    schedule: Schedule
    runner: Runner
    algebra: Algebra | None = None
    growth: dict[tuple[str, ...], float] = field(default_factory=dict)
    grown_by: dict[tuple[str, ...], RuleLog] = field(default_factory=dict)
    limited: set[str] = field(default_factory=set)
    exhausted: set[str] = field(default_factory=set)
    left_out: frozenset[str] = frozenset()
    held_back: bool = False
    broken_off: bool = False
    begun: int = 0
    endless: RuleLog = field(default_factory=RuleLog)
    schedules: _Schedules = field(init=False)

    def __post_init__(self) -> None:
        self.schedules = _schedules(self.schedule.normal)

    def go_on(self, schedule: Schedule, nodes: int) -> SaturationReport:
        """Go on with an e-graph that was told of more, so many e-nodes among it."""
        self.schedule, self.begun, self.broken_off = schedule, self.runner.round, False
        self.runner.go_on(schedule, nodes)
        return self.run()

    def run(self) -> SaturationReport:
        """Run rounds until nothing changes or a budget is used up."""
        runner = self.runner
        reason = self.rounds()
        if reason not in ("saturated", "time limit"):
            self.stabilize()
        # New terms of an interrupted round have no types yet, and reading out needs them.
        runner.complete_types()
        if runner.engine.sizes().get("nary-contradiction", 0):
            raise SaturationError(
                "two different constants became equal: a rule is wrong, or a part of the graph has no value "
                "for any input (0 / 0)"
            )
        culprits = self.culprits() if self.broken_off else ()
        report = SaturationReport(
            reason,
            runner.round,
            runner.seconds(),
            runner.nodes(),
            runner.log.statistics(),
            culprits,
            tuple(sorted(self.exhausted)),
            runner.hurried,
            findings=tuple(self.algebra.findings) if self.algebra is not None else (),
        )
        return replace(report, warning=self.warn(report))

    def rounds(self) -> StopReason:
        stalled, sizes = 0, self.runner.engine.sizes()
        try:
            while self.runner.round < self.runner.limits.rounds:
                self.runner.begin_round()
                tell(f"round {self.runner.round} of saturation, {self.runner.nodes():,} e-nodes")
                self.held_back = False
                before, changed = sizes, self.one_round()
                sizes = self.runner.engine.sizes()
                stalled = stalled + 1 if sizes == before else 0
                changed &= stalled < STALLED_ROUNDS
                if (self.runner.round == 1 or not changed) and self.extend():
                    continue
                if not changed:
                    return "match limit" if self.held_back else "saturated"
        except BudgetExhaustedError as exhausted:
            self.broken_off = True
            if exhausted.endless:
                self.endless.add(exhausted.endless)
            return exhausted.reason
        return "round limit"

    def extend(self) -> bool:
        """Add what the algebra sees and the rules do not; whether that changed anything.

        What it says again is no change, and would be said without end.
        """
        runner = self.runner
        if self.algebra is None or not self.schedule.core:
            return False
        runner.complete_types()
        before = runner.engine.sizes()
        if not self.algebra.extend(runner.engine):
            return False
        runner.note_additions()
        runner.complete_types()
        return runner.engine.sizes() != before

    def stabilize(self) -> None:
        """Run the rules of stabilization to their end; nothing but a budget of their own breaks it off."""
        if not self.schedule.stabilizing:
            return
        self.runner.grant(LEAST_NODES, LEAST_MATCHES)
        try:
            while self.stabilizing_round():
                pass
        except BudgetExhaustedError:
            return

    def stabilizing_round(self) -> bool:
        """Run one round of the rules of stabilization; whether anything changed."""
        self.step("esat-known", self.schedules.known)
        changed = self.run_together(self.schedule.stabilizing)
        changed |= self.step("esat-lift", self.schedules.lift)
        changed |= self.normalize()
        return self.step("esat-facts", _CLOSE) or changed

    def one_round(self) -> bool:
        """Run one round; whether anything changed."""
        changed = False
        if self.schedule.core:
            self.step("esat-known", self.schedules.known)
        for rules in self.schedule.steps:
            if rules.rounds is None or self.runner.round - self.begun <= rules.rounds:
                changed |= self.rule_step(rules)
        if not self.schedule.core:
            return self.step("esat-facts", _CLOSE) or changed
        changed |= self.step("esat-lift", self.schedules.lift)
        changed |= self.normalize()
        changed |= self.draw_outward()
        changed |= self.step("esat-facts", _CLOSE)
        return self.factor() or changed

    def draw_outward(self) -> bool:
        """Draw scalars and signs out of the operations they are factors in; whether there were any.

        In deep programs they pass one operation after the other: a round for each would be quadratic. What
        comes to more than where it began is no passing through: it waits for the rules of the next round.
        """
        first = 0
        for step in range(OUTWARD_STEPS):
            before = self.runner.matches
            if not self.run_together(self.schedule.outward):
                return step > 0
            matches = self.runner.matches - before
            first = first or matches
            self.step("esat-lift", self.schedules.lift)
            self.normalize()
            if matches > first:
                break
        return True

    def factor(self) -> bool:
        """Find common factors and add the factored forms; whether anything changed."""
        changed = False
        for _ in range(FACTORINGS):
            self.step("esat-index", self.schedules.indexed)
            changed |= self.step("esat-factor", _FACTOR)
            if not self.step("esat-factored", _FACTORED):
                return changed
            changed = True
            self.step("esat-index", self.schedules.indexed)
            self.normalize()
        return changed

    def normalize(self) -> bool:
        """Reduce and flatten sums and products as far as they go; whether anything changed.

        The index is up to date before, and after.
        """
        changed = False
        for _ in range(FLATTENINGS):
            while self.step("esat-reduce", self.schedules.reduce):
                changed = True
            if not self.step("esat-flatten", self.schedules.flatten):
                return changed
            changed = True
        return changed

    # ---- steps

    def step(self, ruleset: str, runs: tuple[RulesetRun, ...]) -> bool:
        """One step of the layer itself; whether it changed anything."""
        runner = self.runner
        if runner.is_needless(runs):
            return False
        updated = runner.run(runs, (ruleset,)).updated
        runner.note_end(updated, *(() if updated else (runs,)))
        return updated

    def rule_step(self, rules: RuleStep) -> bool:
        """One step of rules from files; whether it changed anything.

        Each rule set runs by itself, so that one cannot starve the others, but where none can be large.
        """
        changed = False
        for is_harmless, rulesets in groupby(rules.rulesets, lambda name: self.is_harmless(name, rules)):
            if is_harmless:
                changed |= self.run_together(tuple(rulesets))
            else:
                for ruleset in rulesets:
                    changed |= self.run_alone(ruleset, rules)
        return changed

    def is_harmless(self, ruleset: str, rules: RuleStep) -> bool:
        """Whether nothing that a rule set may do asks for a decision before the next one runs."""
        schedule = self.schedule
        if rules.fuel is not None or schedule.check_types or ruleset in self.limited:
            return False
        return ruleset not in schedule.watched_rulesets and self.runner.nodes() <= _SMALL_NODES

    def run_together(self, rulesets: tuple[str, ...]) -> bool:
        """Run rule sets one after the other, in one go; whether anything changed."""
        runs = tuple(_run(name) for name in rulesets)
        if self.runner.is_needless(runs):
            return False
        updated = self.run_rules(rulesets, runs).updated
        self.runner.note_end(updated, *(() if updated else (runs,)))
        return updated

    def run_alone(self, ruleset: str, rules: RuleStep) -> bool:
        """Run one rule set, with a match limit where it needs one; whether anything changed."""
        runner = self.runner
        limit = self.limit_of(ruleset, rules)
        runs = (RulesetRun((ruleset,), limit=limit),)
        if runner.is_needless(runs):
            return False
        outcome = self.run_rules((ruleset,), runs)
        if outcome.left_out:
            self.hold_back(ruleset)
            self.left_out |= outcome.left_out
        runner.note_end(outcome.updated, *(() if limit or outcome.updated else (runs,)))
        return outcome.updated and not (outcome.left_out and not outcome.matches)

    def limit_of(self, ruleset: str, rules: RuleStep) -> int:
        """Matches that a rule may have in a run of its rule set; 0: any number."""
        nodes, fuel = self.runner.nodes(), self.runner.limits.fuel
        if rules.fuel is not None:
            least = rules.fuel if rules.from_nodes is None else rules.from_nodes
            return rules.fuel if nodes > least or ruleset in self.limited else 0
        if ruleset in self.limited:
            return fuel
        if ruleset in self.schedule.watched_rulesets:
            return max(fuel, _USERS_MATCHES_A_NODE * nodes)
        return 0

    def run_rules(self, rulesets: tuple[str, ...], runs: tuple[RulesetRun, ...]) -> ScheduleOutcome:
        """Run rules of files, and find out whether one rule set explodes; what it did."""
        runner = self.runner
        before = runner.nodes()
        outcome = runner.run(runs, rulesets)
        if outcome.updated:
            runner.recent.add(outcome.matches)
        if self.schedule.check_types:
            runner.run_types_after(outcome)
        if len(rulesets) == 1:
            explosive = runner.nodes() > max(_HARMLESS_NODES, EXPLOSIVE_GROWTH * before)
            most = max(outcome.matches.values(), default=0)
            if explosive or most > max(runner.limits.fuel, before):
                self.limited.update(rulesets)
        self.growth[rulesets] = self.growth.get(rulesets, 0) + max(runner.nodes() - before, 0)
        self.grown_by.setdefault(rulesets, RuleLog()).add(outcome.matches)
        return outcome

    def hold_back(self, ruleset: str) -> None:
        """Note that a rule set has more to say."""
        self.held_back = True
        self.exhausted.add(ruleset)

    # ---- the end

    def culprits(self) -> tuple[str, ...]:
        """Rules with the most matches in the step that had no end, or that added the most e-nodes."""
        if self.endless.runs:
            return first_names(self.endless.statistics(), 3)
        if not self.growth:
            return ()
        worst = max(self.growth, key=lambda ruleset: self.growth[ruleset])
        return first_names(self.grown_by[worst].statistics(), 3)

    def warn(self, report: SaturationReport) -> str:
        """Tell of watched rules that had no end; what there was to tell."""
        if report.complete or not self.schedule.watched:
            return ""
        logs = (self.runner.previous, self.runner.recent, self.endless)
        matched = [rule for log in logs for rule in log.statistics()]
        watched = [rule for rule in matched if rule.name in self.schedule.watched and rule.matches]
        watched.sort(key=lambda rule: -rule.matches)
        left_out = sorted({rule_name(name) for name in self.left_out} & self.schedule.watched)
        names = list(dict.fromkeys([*left_out, *(rule.name for rule in watched)]))[:3]
        if not names:
            return ""
        message = (
            f"saturation ended by its {report.stop_reason} at {report.nodes} e-nodes; "
            f"these rules still had something to add: {', '.join(names)}"
        )
        warnings.warn(message, EsatWarning, stacklevel=4)
        return message
