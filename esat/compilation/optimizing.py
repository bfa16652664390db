"""Optimizing: what a mode makes of a graph, with what rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from esat.classic.rules.rule_options import RuleOptions, RuleTexts
from esat.classic.standard import optdb
from esat.compilation.linking import Compilation, machine_of
from esat.egraph.preparation.rule_database import RULES
from esat.egraph.saturation.schedule import Budgets
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import Expected, expected_shapes
from esat.extract.prices.lasting import Repeated
from esat.extract.resize import Resizing
from esat.graph import FunctionGraph
from esat.mode import Mode
from esat.ops.loops.record import LoopOp
from esat.optimize.equality.report import OptimizationReport
from esat.optimize.greedy import optimize_greedily
from esat.optimize.plan import saturation_plan, warn_of_exclusions
from esat.optimize.saturation import SaturationOptimizer
from esat.phases.assumptions import remove_assumptions
from esat.phases.loop_bodies import with_better_loops
from esat.rules.language.rule import RuleFile
from esat.runtime.function_profile import Profile
from esat.runtime.tuning import Tuner

if TYPE_CHECKING:
    from esat.tools.soundness.oracle import EGraphChecker

RuleSources = str | Path | Iterable[str | Path]


def rule_texts(rules: RuleSources) -> RuleTexts:
    """The rules of one compilation, read, and those that were added."""
    sources = list(rules) if isinstance(rules, Iterable) and not isinstance(rules, str) else [rules]
    extra: list[RuleFile] = []
    for source in sources:
        extra.append(RULES.read(source, extra))
    return RuleTexts(tuple(extra), RULES.users_files())


def rule_options(mode: Mode, texts: RuleTexts, shapes: Expected, with_device: bool = False) -> RuleOptions:
    """What rules a mode takes, and what they are told."""
    # What may run on the host alone is optimized for the host first.
    if with_device and mode.device == "cuda":
        from esat.gpu.profile import device_profile

        machine = device_profile().machine()
    else:
        machine = machine_of(mode)
    return RuleOptions(mode.soundness, texts.extra, machine, shapes, texts.users, mode.accuracy)


def checker_for(graph: FunctionGraph, mode: Mode) -> EGraphChecker | None:
    """What compares the stages of debug mode with a graph; None in other modes."""
    if not mode.debug:
        return None
    from esat.tools.soundness.oracle import checker_of

    return checker_of(graph, mode.samples, mode.soundness == "exact")


def optimize_bodies(graph: FunctionGraph, mode: Mode, options: RuleOptions) -> FunctionGraph:
    """The graph with each body of a loop optimized as a program of its own, inner ones first."""

    def improve(op: LoopOp, once: Repeated | None) -> FunctionGraph:
        machine = options.machine.in_loops()
        own = replace(options, shapes=expected_shapes({}, op.body.inputs), machine=machine, repeated=once)
        inner = optimize_bodies(op.body, mode, replace(options, machine=machine))
        return optimize_graph(inner, mode, own, Profile(), checker_for(inner, mode))[0]

    exact = mode.soundness == "exact"
    return with_better_loops(graph, improve, None if exact else CostModel(options.machine))


def optimize_graph(
    graph: FunctionGraph,
    mode: Mode,
    options: RuleOptions,
    profile: Profile,
    checker: EGraphChecker | None,
) -> tuple[FunctionGraph, OptimizationReport]:
    """What a mode makes of a graph, which may be changed on the way."""
    if mode.strategy == "greedy":
        with profile.stage("query"):
            classic = optdb.query(mode.query, options=options)
            if "fast_run" in mode.query.include:
                warn_of_exclusions(saturation_plan(optdb, mode.query, options), RULES, mode.query)
            classic.after_each = None if checker is None else checker.check
        result, report, details = optimize_greedily(
            graph,
            classic,
            machine=options.machine,
            shapes=options.shapes,
            stage=profile.stage,
            trace=mode.trace,
        )
        remove_assumptions(result)
    else:
        seconds = math.inf if mode.time_limit is None else mode.time_limit
        budgets = Budgets(mode.node_limit, seconds, mode.round_limit, mode.match_limit)
        # Autotuning measures whole calls.
        keeps = mode.invariants and not mode.debug and not mode.autotune
        saturating = SaturationOptimizer(
            optdb,
            RULES,
            mode.query,
            options,
            budgets,
            mode.extract,
            checker,
            mode.trace,
            keeps,
            mode.accuracy,
            mode.regimes and mode.accuracy != "ignore",
            mode.engine,
        )
        result, report, details = saturating.optimize(graph, profile.stage)
    details.name = mode.name
    profile.optimizer = details
    return result, report


def fastest(
    optimized: FunctionGraph, report: OptimizationReport, resizing: Resizing, compilation: Compilation
) -> tuple[FunctionGraph, OptimizationReport]:
    """The fastest of the programs that are predicted to take about as long as the best, as measured."""
    mode = compilation.mode
    # Variables that the function updates look constant where nothing is updated.
    build = compilation.part().link
    settings = repr((mode.query, mode.soundness, mode.threads))
    tuner = Tuner(
        resizing.program, build, mode.machine, len(optimized.inputs), settings, samples=mode.samples
    )
    found, tuning = tuner.best(resizing.first)
    if found is not resizing.first:
        optimized = resizing.program(found)
    tuned = replace(
        report,
        cost_after=found.seconds,
        nodes_after=len(optimized),
        extraction=found,
        resizing=replace(resizing, first=found),
        tuning=tuning,
    )
    return optimized, tuned
