"""Equality saturation as the database has it: optimizers before, rules and equalities, optimizers after."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, Protocol

from esat.classic.equalities import CollectEqualities
from esat.classic.optimizers.global_optimizers import Optimizer, SeqOptimizer
from esat.classic.optimizers.merge import MergeOptimizer
from esat.classic.optimizers.navigator import TopoOptimizer
from esat.classic.optimizers.optimizer_database import SequenceDB
from esat.classic.optimizers.replacement_trace import ReplacementTrace, Writer
from esat.classic.profile import Laps, OptimizerProfile, PassProfile
from esat.classic.rules.rule_options import RuleOptions
from esat.classic.rules.rule_step import take_over
from esat.classic.simplify import constant_folding
from esat.egraph.language.terms import Claim, TermGraph
from esat.egraph.preparation.rule_database import RuleDatabase
from esat.egraph.preparation.rule_program import EngineName, RuleProgram, program_for
from esat.egraph.saturation.saturation_report import (
    SaturationReport,
    SaturationTrace,
    StepTrace,
    is_helper,
    rule_name,
)
from esat.egraph.saturation.schedule import Budgets
from esat.errors import CompileError, EsatWarning, RuleError, SaturationError
from esat.extract.accuracy.kept_verdicts import verdicts_on
from esat.extract.accuracy.validation import extract_validated
from esat.extract.arrays import EGraphArrays
from esat.extract.extraction import Extraction
from esat.extract.kept_graphs import kept_graphs
from esat.extract.prices.machine import MachineProfile
from esat.extract.resize import Resizing
from esat.extract.verdicts import Accuracy
from esat.graph import FunctionGraph, Variable
from esat.ops.control import IfElse
from esat.optimize.alternatives import alternatives
from esat.optimize.equality.optimizer import Choosing, FoundGraph
from esat.optimize.equality.report import OptimizationReport, Stage, untimed
from esat.optimize.equality.search import EqualitySearch
from esat.optimize.plan import (
    SaturationPlan,
    saturation_plan,
    selected_rules,
    warn_of_exclusions,
    with_opaque_rules,
)
from esat.optimize.two_forms import use_regimes
from esat.phases.branches import join_branches, separate_branches
from esat.phases.memory.destroy import Supervisor, permissions_of
from esat.rules.language.query import Query
from esat.rules.language.rule import RuleFile
from esat.rules.language.rule_selection import RuleSelection


class Watcher(Protocol):
    """Told of each step that changed the graph; does nothing by default."""

    def check(self, stage: str, graph: FunctionGraph) -> None:
        """The graph after a step."""

    def check_egraph(
        self, arrays: EGraphArrays, terms: TermGraph, program: RuleProgram, saturation: SaturationReport
    ) -> None:
        """A saturated e-graph."""

    def check_pairs(self, graph: FunctionGraph, pairs: Sequence[tuple[Variable, Variable, str]]) -> None:
        """Pairs of Variables that an optimizer, named third, claims to be equal."""


Optimized = tuple[FunctionGraph, OptimizationReport]
MOST_STABILIZATIONS = 3
"""How often a graph is saturated anew since an optimizer that stabilizes changed what was extracted."""
MOST_QUESTIONS = 8
"""How often local optimizers are asked about what was extracted, as long as they know more of it."""

_tidy = SeqOptimizer([MergeOptimizer(), TopoOptimizer(constant_folding), MergeOptimizer()], "tidy")


@dataclass(slots=True)
class _Inquiry:
    """The search of what is equal to a graph, told of what local optimizers claim.

    Attributes
    ----------
    plan
        Who is asked.
    claims
        What they claim of a graph, of whose Variables it may be told which are known to be equal.
    equalities
        All that the search is told of beside the graph.
    choosing
        How a graph is chosen from what is found.
    watch
        Compares e-graphs with values.
    """

    plan: SaturationPlan
    claims: Callable[..., list[Claim]]
    equalities: list[Claim]
    choosing: Choosing
    watch: Watcher | None
    _search: EqualitySearch | None = None

    def first(self, search: EqualitySearch) -> Optimized:
        """What a search finds."""
        self._search = search
        found = self.more(())
        assert found is not None
        return found

    def more(self, news: Sequence[Claim]) -> Optimized | None:
        """What is chosen with more claims; None where all they say was known."""
        found = self._found(news)
        return None if found is None else self.choosing.chosen(found)

    def asked_again(self, chosen: Optimized) -> Optimized:
        """What is chosen when local optimizers are asked about what was chosen, until nobody knows more.

        Of what is found meanwhile only the cheapest forms are asked about: how accurate forms are is told
        once they are all there.
        """
        questions = MOST_QUESTIONS
        while questions:
            found, following = None, self._asked(chosen[0], chosen[1].extraction)
            while following is not None:
                found, questions = following, questions - 1
                following = self._asked(*self.choosing.read(found.graph)) if questions else None
            if found is None:
                break
            chosen = self.choosing.chosen(found)
        return self.choosing.validated(*chosen)

    def _asked(self, result: FunctionGraph, extraction: Extraction | None) -> FoundGraph | None:
        """What is found with what local optimizers say of a graph, or of what else could have been chosen."""
        found = self._after(self.claims(result))
        if found is None and extraction is not None:
            plan = self.plan
            others = alternatives(extraction, self.choosing.graph, plan.added, plan.lifts)
            found = None if others is None else self._after(self.claims(others.graph, others.classes))
        return found

    def _after(self, news: Sequence[Claim]) -> FoundGraph | None:
        try:
            return self._found(news) if news else None
        except (RuleError, SaturationError) as error:
            if self.watch is not None:
                raise
            del self.equalities[len(self.equalities) - len(news) :]
            reason = f"what local optimizers claim of forms that rules found is not used: {error}"
            warnings.warn(reason, EsatWarning, stacklevel=2)
            return None

    def _found(self, news: Sequence[Claim]) -> FoundGraph | None:
        search = self._search
        assert search is not None
        self.equalities += news
        found = self.choosing.found(search, self.equalities)
        if self.watch is not None and found is not None:
            graph = found.graph
            self.watch.check_egraph(graph.arrays, graph.terms, search.program, found.saturation)
        return found


@dataclass(slots=True)
class SaturationOptimizer:
    """Optimizes graphs by equality saturation.

    Attributes
    ----------
    database, rules, query, options
        What takes part.
    budgets, method
        How far to saturate, and how to choose from the e-graph.
    watch
        See :class:`Watcher`.
    trace
        Told of each replacement, and of each step of saturation.
    keeps
        Whether programs keep what depends on constants alone from call to call.
    accuracy
        What the choice goes by before time.
    regimes
        Whether values may be computed by two forms and a condition.
    engine
        What runs the rules.
    """

    database: SequenceDB
    rules: RuleDatabase
    query: Query
    options: RuleOptions
    budgets: Budgets
    method: Literal["area", "tree", "optimal"]
    watch: Watcher | None = None
    trace: Writer | None = None
    keeps: bool = False
    accuracy: Accuracy = "best"
    regimes: bool = False
    engine: EngineName = "esat"

    def optimize(
        self, graph: FunctionGraph, stage: Stage
    ) -> tuple[FunctionGraph, OptimizationReport, OptimizerProfile]:
        """The cheapest equal graph found. The given one may be changed on the way.

        Where rules that users added to the database break an e-graph off, which no check of their text can
        foresee, they are left out with a warning.

        Raises
        ------
        RuleError, OptimizerError, SaturationError, CompileError
            For a rule or an optimizer that does not fit, an e-graph that breaks off, a wrong result.
        """
        profile = OptimizerProfile("equality saturation", "SeqOptimizer", nodes_before=len(graph))
        whole, laps = Laps(), Laps()
        stage = _recording(stage, profile.parts, laps)
        with stage("query"):
            plan = saturation_plan(self.database, self.query, self.options)
            selection = selected_rules(plan, self.rules, self.query, self.options)
            selection, opaque = with_opaque_rules(selection, self.rules, self.options)
            plan = replace(plan, equalities=(*plan.equalities, *opaque))
            warn_of_exclusions(plan, self.rules, self.query)
        collector = CollectEqualities(plan.equalities)
        equalities = self._prepare(graph, plan, collector, profile, stage)
        lazy = any(isinstance(node.op, IfElse) for node in graph.apply_nodes)
        if lazy:
            _tidy.optimize(graph)
            separate_branches(graph)

        trace = SaturationTrace()

        def begun(selection: RuleSelection) -> EqualitySearch:
            with stage("compile rules"):
                program = program_for(selection, self.options.soundness == "exact", self.engine)
            kept = kept_graphs() if self.watch is None else None
            return EqualitySearch(
                program, self.budgets, stage, trace, kept, check_types=self.watch is not None
            )

        choosing = Choosing(
            graph,
            machine=self.options.machine,
            method=self.method,
            shapes=self.options.shapes,
            stage=stage,
            keeps=self.keeps and not lazy,  # what runs under conditions is not kept
            accuracy=self.accuracy,
            judge=verdicts_on,
            repeated=self.options.repeated,
        )
        claims = partial(self._claims, collector, graph=graph, profile=profile, stage=stage)
        # Branches that are not taken have no values to compare with.
        inquiry = _Inquiry(plan, claims, equalities, choosing, None if lazy else self.watch)
        try:
            found = inquiry.first(begun(selection))
        except (RuleError, CompileError) as error:
            if self.watch is not None or not self._users_files():
                raise
            reason = f"rules that were added break this compilation, which leaves them out: {error}"
            warnings.warn(reason, EsatWarning, stacklevel=2)
            without = selected_rules(plan, self.rules, self.query, replace(self.options, users=()))
            selection = with_opaque_rules(without, self.rules, self.options)[0]
            found = inquiry.first(begun(selection))
        result, report = inquiry.asked_again(found)
        for _ in range(MOST_STABILIZATIONS):
            if not len(plan.stabilizing) or not _run(plan.stabilizing, result, profile, stage):
                break
            take_over(graph, result, "stabilize what was found")
            more = inquiry.more(claims(graph))
            if more is None:
                break
            result, report = inquiry.asked_again(more)
        if lazy:
            _join(result)
        if report.saturation is not None:
            _describe(profile.parts, report.saturation, trace.steps)
        self._tell(trace.steps, result)
        regimes = self._use_regimes(result, selection, stage)
        result.attach_feature(Supervisor(permissions_of(graph)))
        _run(plan.after, result, profile, stage)
        resizing = self._resizing(report, graph, selection, plan, lazy)
        profile.nodes_after, profile.nodes_most = len(result), max(len(result), profile.nodes_before)
        rules = {**_applied(profile.parts), **report.rules}
        profile.end(whole.lap())
        report = replace(
            report, nodes_before=profile.nodes_before, rules=rules, resizing=resizing, regimes=regimes
        )
        return result, report, profile

    def _users_files(self) -> tuple[RuleFile, ...]:
        known = self.options.users
        return self.rules.users_files() if known is None else known

    def _prepare(
        self,
        graph: FunctionGraph,
        plan: SaturationPlan,
        collector: CollectEqualities,
        profile: OptimizerProfile,
        stage: Stage,
    ) -> list[Claim]:
        """Run the optimizers that come before saturation; the equalities that local ones claim."""
        if self.trace is not None:
            graph.attach_feature(ReplacementTrace(self.trace))
        if len(plan.before) or plan.equalities:
            # Users' optimizers see what they would see in the classic system.
            _tidy.optimize(graph)
        if self.watch is not None:
            plan.before.after_each = plan.after.after_each = self.watch.check
        _run(plan.before, graph, profile, stage)
        return self._claims(collector, graph, graph=graph, profile=profile, stage=stage)

    def _claims(
        self,
        collector: CollectEqualities,
        asked: FunctionGraph,
        classes: Mapping[Variable, int] = MappingProxyType({}),
        *,
        graph: FunctionGraph,
        profile: OptimizerProfile,
        stage: Stage,
    ) -> list[Claim]:
        """What local optimizers claim of a graph's expressions, as Variables of the one it came from."""
        collector.classes = classes
        _run(collector, asked, profile, stage)
        claims = collector.claims
        if self.watch is not None:
            self.watch.check_pairs(graph, [(claim.left, claim.right, claim.source) for claim in claims])
        return [(claim.left, claim.right, claim.source) for claim in claims]

    def _tell(self, steps: Sequence[StepTrace], result: FunctionGraph) -> None:
        """Tell who watches of the steps of saturation and what it found."""
        if self.trace is not None:
            for step in steps:
                names = ", ".join(step.rulesets)
                self.trace(f"saturation, round {step.round}: {names}: {step.nodes} e-nodes")
            result.attach_feature(ReplacementTrace(self.trace))
        if self.watch is not None:
            self.watch.check("decode", result)

    def _use_regimes(
        self, graph: FunctionGraph, selection: RuleSelection, stage: Stage = untimed
    ) -> tuple[str, ...]:
        """Let values of an optimized graph have two forms, where that is asked for; what it says of them."""
        if not self.regimes:
            return ()
        with stage("regimes"):
            program = program_for(selection, self.options.soundness == "exact", self.engine)
            kept = kept_graphs() if self.watch is None else None
            found = use_regimes(graph, program, self.budgets, self.options.machine, kept)
        if self.watch is not None:
            self.watch.check("regimes", graph)
        return tuple(found)

    def _resizing(
        self,
        report: OptimizationReport,
        graph: FunctionGraph,
        selection: RuleSelection,
        plan: SaturationPlan,
        lazy: bool,
    ) -> Resizing | None:
        """What chooses anew for other sizes; None where nothing was chosen from an e-graph."""

        def finish(other: FunctionGraph) -> None:
            if lazy:
                _join(other)
            self._use_regimes(other, selection)
            other.attach_feature(Supervisor(permissions_of(graph)))
            plan.after.optimize(other)

        if report.extraction is None:
            return None
        machine = self.options.machine or MachineProfile()
        return Resizing(report.extraction, graph, machine, finish, extract_validated)


def _applied(parts: Sequence[OptimizerProfile]) -> dict[str, int]:
    """Name of each optimizer around saturation that changed the graph -> how often."""
    around = (part for part in parts if part.kind != "EqualitySaturation")
    return {name: count for part in around for name, count in part.all_applied().items()}


def _join(graph: FunctionGraph) -> None:
    """Join branches, and merge what they have in common with the rest."""
    join_branches(graph)
    MergeOptimizer().optimize(graph)


def _run(
    optimizer: Optimizer, graph: FunctionGraph, profile: OptimizerProfile, stage: Stage
) -> dict[str, int]:
    """Run an optimizer as a stage; how often what changed the graph. The profile tells of all its runs."""
    with stage(optimizer.label):
        part = optimizer.optimize(graph)
    changes = part.all_applied()
    (place,) = (place for place, known in enumerate(profile.parts) if known.name == optimizer.label)
    known, profile.parts[place] = profile.parts[place], part
    part.name, part.seconds = optimizer.label, known.seconds
    for counts, earlier in ((part.applied, known.applied), (part.created, known.created)):
        for name, count in earlier.items():
            counts[name] = counts.get(name, 0) + count
    profile.validate_seconds += part.validate_seconds
    profile.callback_seconds += part.callback_seconds
    return changes


def _recording(stage: Stage, parts: list[OptimizerProfile], laps: Laps) -> Stage:
    """A stage that also notes how long it took as a part of a profile; if it runs twice, the sum."""

    @contextmanager
    def recorded(name: str) -> Iterator[None]:
        with stage(name):
            yield
        part = next((part for part in parts if part.name == name), None)
        if part is None:
            part = OptimizerProfile(name, "Stage")
            parts.append(part)
        part.seconds += laps.lap()

    return recorded


def _describe(parts: list[OptimizerProfile], report: SaturationReport, trace: list[StepTrace]) -> None:
    """Make the part named ``saturate`` tell of rounds and rules.

    An e-graph that came from disk took the time of reading it; its rules ran in another process.
    """
    names = ("saturate", "e-graph cache")
    part = next(part for name in names for part in parts if part.name == name)
    part.kind, part.note = "EqualitySaturation", report.stop_reason
    for step in trace:
        while len(part.passes) <= max(step.round, 0):
            part.passes.append(PassProfile())
        one = part.passes[max(step.round, 0)]
        one.seconds += step.seconds
        one.nodes = step.nodes
        if step.updated:
            for member, matches in step.matches.items():
                if not is_helper(member):
                    name = rule_name(member)
                    one.applied[name] = one.applied.get(name, 0) + matches
    part.nodes_before = trace[0].nodes if trace else 0
    part.nodes_after = report.nodes
    part.nodes_most = max((step.nodes for step in trace), default=report.nodes)
    part.rounds = 0 if trace else report.rounds
    for rule in report.rules:
        part.local_seconds[rule.name] = rule.seconds
        if rule.matches:
            part.applied[rule.name] = rule.matches
