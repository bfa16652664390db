"""``compile``: from a graph to an Executable, as a list of stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from esat import codegen
from esat.base.collection import without_old_objects
from esat.base.forks import GATE
from esat.base.interrupts import handlers_reach_the_caller
from esat.classic.rules.rule_phase import RuleOptions, RuleTexts
from esat.classic.standard import optdb
from esat.classic.stencils import fuse_stencils
from esat.codegen.ground.host import host_target
from esat.codegen.ground.target import Target
from esat.codegen.routines import routine_for
from esat.codegen.threads import granted_threads
from esat.egraph.saturation.schedule import Budgets
from esat.errors import ModeError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import Expected, expected_shapes
from esat.extract.prices.lasting import Repeated
from esat.extract.prices.machine import MachineProfile
from esat.extract.resize import Resizing
from esat.frontend.derivatives.gradient import GRADIENT_CLOCK
from esat.frontend.graph import Graph, donated_positions, own_graph
from esat.graph import Apply, FunctionGraph, Variable
from esat.graph.calls.callers import built_for, user_line
from esat.mode import Mode
from esat.ops.loops.record import LoopOp
from esat.optimize.greedy import optimize_greedily
from esat.optimize.plan import saturation_plan, warn_of_exclusions
from esat.optimize.report import OptimizationReport
from esat.optimize.saturation import SaturationOptimizer
from esat.phases.assumptions import remove_assumptions
from esat.phases.fusing.fusion import KernelRules, fuse
from esat.phases.fusing.sums_alone import SumsAlone
from esat.phases.layer_blocks import join_row_blocks
from esat.phases.loop_bodies import with_better_loops
from esat.phases.memory.destroy import Supervisor
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import BLAS, ELEMWISE, GEMM, ROWS, work_in_place
from esat.phases.memory.memory_plan import plan_memory
from esat.phases.memory.overwrite import nothing_overwritable
from esat.phases.row_products import join_row_products
from esat.phases.shape_values import ShapeFacts
from esat.rules import RULES, RuleFile
from esat.runtime import Executable
from esat.runtime.checked_executable import DebugExecutable
from esat.runtime.entry.calls import Calls, drive
from esat.runtime.entry.variants import Variants
from esat.runtime.entry.written_sizes import WrittenSizes, may_stretch
from esat.runtime.function_profile import Profile
from esat.runtime.invariants import keep_invariants
from esat.runtime.loop_routine import LoopRoutine
from esat.runtime.printed.kernel_calls import Kernels, compile_kernels
from esat.runtime.program import Program, Routine, library_routines, performing_routines
from esat.runtime.program_in_blocks import InBlocks
from esat.runtime.tuning import Tuner

if TYPE_CHECKING:
    from esat.gpu.device import Device
    from esat.tools.soundness.oracle import EGraphChecker

RuleSources = str | Path | Iterable[str | Path]
Make = Callable[[Calls, Profile], Executable]
"""What makes a function of the calls of a program."""

WATCHERS: list[Callable[[Executable], None]] = []
"""Called with each function that :func:`compile` has made, also for ``jit``."""

_NOTHING = Permissions(frozenset(), ())
"""For programs that change neither arguments nor shared variables."""


def compile(
    graph: Graph | FunctionGraph,
    mode: str | Mode = "fast_run",
    *,
    rules: RuleSources = (),
    shapes: Mapping[Variable, Sequence[int]] | None = None,
    donate: Iterable[Variable] = (),
    message: str | None = None,
) -> Executable:
    """Compile a graph, whatever is recorded; as :func:`esat.compile`, under a name for profiles."""
    if message is None:
        message = "{}:{}".format(*(user_line() or ("<unknown>", 0)))
    return _compile_now(Executable, graph, mode, lambda: rule_texts(rules), shapes or {}, donate, message)


def compile_as(
    make: Make, graph: Graph, mode: str, shapes: Mapping[Variable, Sequence[int]], message: str
) -> Executable:
    """The same with the package's rules alone, as what ``make`` makes of the calls of a program."""
    return _compile_now(make, graph, mode, lambda: RuleTexts((), ()), shapes, (), message)


def _compile_now(
    make: Make,
    graph: Graph | FunctionGraph,
    mode: str | Mode,
    texts: Callable[[], RuleTexts],
    shapes: Mapping[Variable, Sequence[int]],
    donate: Iterable[Variable],
    message: str,
) -> Executable:
    profile = Profile(message=message, gradient_seconds=GRADIENT_CLOCK.seconds)
    with handlers_reach_the_caller(), profile.whole(), GATE.busy(), without_old_objects(), built_for(None):
        executable = _compile(graph, mode, texts, shapes, donate, profile, make)
    for watch in WATCHERS:
        watch(executable)
    return executable


def compile_again(
    graph: Graph | FunctionGraph,
    mode: str | Mode,
    texts: RuleTexts,
    shapes: Expected,
    donated: frozenset[int],
    message: str,
) -> Executable:
    """Compile what was compiled before, maybe by another process; see :attr:`Executable.again`."""
    profile = Profile(message=message)
    with handlers_reach_the_caller(), profile.whole(), GATE.busy(), without_old_objects():
        expected = {graph.inputs[place]: shape for place, shape in enumerate(shapes) if shape is not None}
        donate = [graph.inputs[place] for place in sorted(donated)]
        with built_for(None):
            return _compile(graph, mode, lambda: texts, expected, donate, profile)


def _compile(
    graph: Graph | FunctionGraph,
    mode: str | Mode,
    texts: Callable[[], RuleTexts],
    shapes: Mapping[Variable, Sequence[int]],
    donate: Iterable[Variable],
    profile: Profile,
    make: Make = Executable,
) -> Executable:
    with profile.stage("clone", reads=True):
        original, updated = own_graph(graph)
        kept = graph if isinstance(graph, Graph) else original.clone()
        chosen = mode if isinstance(mode, Mode) else Mode(mode)
        permissions = Permissions(donated_positions(graph, donate), updated)
    profile.nodes_before = len(original)
    is_stretched = may_stretch(original)
    device, refusal = _device(chosen)
    with profile.stage("rules", reads=True):
        options = rule_options(chosen, texts(), expected_shapes(shapes, graph.inputs), device is not None)
    with profile.stage("bodies"):
        original = _with_better_loops(original, chosen, options)
        original.attach_feature(Supervisor(permissions))
    checker = _checker(original, chosen) if chosen.debug else None
    optimized, report = optimize_graph(original, chosen, options, profile, checker)
    if chosen.autotune and report.resizing is not None and device is None:
        with profile.stage("autotune"):
            optimized, report = _autotuned(optimized, report, report.resizing, chosen)
    kind: Make = make if checker is None else DebugExecutable
    variants = None if chosen.debug else _variants(chosen, permissions, report.resizing, profile)
    if device is None:
        executable = _linked(optimized, chosen, permissions, profile, kind, variants)
        executable.report = replace(report, placement=refusal)
    else:
        executable = _placed(optimized, report, options, chosen, permissions, profile, device, kind, variants)
    taken = RuleTexts(options.extra, options.users or ())
    again = (kept, mode, taken, options.shapes, permissions.donated, profile.message)
    executable.again = compile_again, again
    if isinstance(executable, DebugExecutable) and checker is not None:
        executable.checker = checker
    elif is_stretched:
        executable.ask_of_sizes(WrittenSizes(lambda: own_graph(kept)[0]))
    return executable


def _with_better_loops(graph: FunctionGraph, mode: Mode, options: RuleOptions) -> FunctionGraph:
    """The graph with each body of a loop optimized as a program of its own, inner ones first."""

    def improve(op: LoopOp, once: Repeated | None) -> FunctionGraph:
        machine = options.machine.in_loops()
        own = replace(options, shapes=expected_shapes({}, op.body.inputs), machine=machine, repeated=once)
        inner = _with_better_loops(op.body, mode, replace(options, machine=machine))
        checker = _checker(inner, mode) if mode.debug else None
        return optimize_graph(inner, mode, own, Profile(), checker)[0]

    exact = mode.soundness == "exact"
    return with_better_loops(graph, improve, None if exact else CostModel(options.machine))


def _linked(
    optimized: FunctionGraph,
    mode: Mode,
    permissions: Permissions,
    profile: Profile,
    kind: Make = Executable,
    variants: Variants | None = None,
    in_blocks: bool = True,
) -> Executable:
    """The program of an optimized graph; it may get a second one, which takes layers over rows in blocks."""
    rows = _rows_in_place(mode)
    running = optimized
    if mode.invariants and not mode.debug:
        alone = Mode(mode, invariants=False)
        with profile.stage("invariants"):
            running = keep_invariants(
                optimized,
                permissions.updated,
                mode.machine,
                lambda part: _linked(part, alone, _NOTHING, Profile()),
            )
    rules, second = _kernel_rules(mode), None
    if rules is not None and mode.soundness != "exact":  # BLAS adds up in another order
        with profile.stage("row products"):
            running = join_row_products(running, rules)
            if in_blocks and mode.variants > 0 and not mode.debug:
                second = _in_blocks(running, rules, mode, permissions)
    if rules is not None:
        with profile.stage("stencils"):
            running = fuse_stencils(running, rules, CostModel(_machine(mode)), permissions)
    with profile.stage("inplace"):
        final = work_in_place(running, permissions, rows, rules)
    with profile.stage("fusion"):
        plan = fuse(final, rules, permissions=permissions)
    source = Kernels(mode.machine, mode.threads, mode.soundness == "exact", _target(mode))
    facts = ShapeFacts(final)
    with profile.stage("routines", "linker"):
        found = library_routines(plan, _routines(mode, len(final) == 1))
        performers = performing_routines(found, facts)
        routines = {node: routine for node, routine in found.items() if node not in performers}
    with profile.stage("memory plan", "linker"):
        overwritable = source.overwritable if ELEMWISE in rows else nothing_overwritable
        memory = plan_memory(
            plan, final, facts, routines.__contains__, permissions=permissions, overwritable=overwritable
        )
    with profile.stage("kernels", "linker"):
        kernels = compile_kernels(memory, source)
    with profile.stage("driver", "linker"):
        program = Program(final, memory, facts, kernels, routines, mode.threads, performers)
        calls = drive(program, variants, second)
    executable = kind(calls, profile)
    executable.optimized = optimized
    executable.again = _link_again, (optimized, mode, permissions, in_blocks)
    return executable


def _placed(
    optimized: FunctionGraph,
    report: OptimizationReport,
    options: RuleOptions,
    mode: Mode,
    permissions: Permissions,
    profile: Profile,
    device: Device,
    kind: Make,
    variants: Variants | None,
) -> Executable:
    """The programs of an optimized graph on host and device, and the choice between them."""
    from esat.gpu.placing import Candidate, costs_of
    from esat.gpu.profile import device_profile
    from esat.gpu.programs import Linking, Placeable, place_function
    from esat.gpu.rules import DeviceRules

    found = device_profile()
    rules = _kernel_rules(mode, DeviceRules())
    source = Kernels(mode.machine, mode.threads, mode.soundness == "exact", _target(mode))
    rows = _rows_in_place(mode)
    contract = mode.soundness != "exact"
    linking = Linking(device, rules, rows, source, _routines(mode), permissions, mode.threads, contract)
    host_model = CostModel(_machine(mode))
    costs = costs_of(host_model, found, linking.has_form, linking.on_host, eager=mode.device == "cuda")
    graphs, host = [optimized], None
    if mode.device == "auto":
        with profile.stage("extract for the device"):
            graphs += _for_device(report, found.machine(), options.shapes)
        final = work_in_place(optimized, permissions, rows, _kernel_rules(mode))
        host = Candidate(final, fuse(final, _kernel_rules(mode), permissions=permissions))

    def link_host() -> Executable:
        return _linked(optimized, mode, permissions, profile, kind, variants)

    function = Placeable(tuple(graphs), host, link_host, options.shapes)
    with profile.stage("placement", "linker"):
        executable, placement = place_function(function, linking, costs, profile, kind)
    executable.optimized = optimized
    executable.report = replace(report, placement=placement)
    return executable


def _for_device(report: OptimizationReport, machine: MachineProfile, shapes: Expected) -> list[FunctionGraph]:
    """The graph that the same e-graph has for the device, where it is another one."""
    if report.resizing is None:
        return []
    resizing = replace(report.resizing, machine=machine)
    found = resizing.extract(resizing.hints(shapes))
    same = np.array_equal(found.selection.chosen, report.resizing.first.selection.chosen)
    return [] if same else [resizing.program(found)]


def _routines(mode: Mode, is_alone: bool = False) -> Callable[[Apply], Routine | None]:
    """What knows the library routine of a node, which may be alone; some run programs of their own."""
    alone = Mode(mode, invariants=False)

    def link(part: FunctionGraph) -> Executable:
        return _linked(part, mode, _NOTHING, Profile(), in_blocks=False)

    def link_body(body: FunctionGraph) -> Executable:
        return _linked(body, alone, _NOTHING, Profile(), in_blocks=False)

    def routine(node: Apply) -> Routine | None:
        if isinstance(node.op, LoopOp):
            return LoopRoutine(node.op, link_body, None if is_alone else node)
        return routine_for(node, _target(mode), mode.threads, link)

    return routine


def _link_again(
    optimized: FunctionGraph, mode: Mode, permissions: Permissions, in_blocks: bool
) -> Executable:
    """Make a copy of a program that is part of a function; see :attr:`Executable.again`."""
    with handlers_reach_the_caller(), GATE.busy():
        return _linked(optimized, mode, permissions, Profile(), in_blocks=in_blocks)


def _in_blocks(
    graph: FunctionGraph, rules: KernelRules, mode: Mode, permissions: Permissions
) -> InBlocks | None:
    """What makes a program that takes layers over rows in blocks; None where there are none."""
    joined = join_row_blocks(graph, rules)
    if joined is graph:
        return None
    alone = Mode(mode, invariants=False)

    def build(graph: FunctionGraph) -> Executable:
        return _linked(graph, alone, permissions, Profile(), in_blocks=False)

    return InBlocks(joined, build, _target(mode))


def _autotuned(
    optimized: FunctionGraph, report: OptimizationReport, resizing: Resizing, mode: Mode
) -> tuple[FunctionGraph, OptimizationReport]:
    """The fastest of the programs that are predicted to take about as long as the best."""
    # Variables that the function updates look constant where nothing is updated.
    alone = Mode(mode, invariants=False)

    def build(graph: FunctionGraph) -> Executable:
        return _linked(graph, alone, _NOTHING, Profile())

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


def _variants(
    mode: Mode, permissions: Permissions, resizing: Resizing | None, profile: Profile
) -> Variants | None:
    """What makes further programs for sizes that arrive, where there is anything to choose."""
    if resizing is None or mode.variants <= 0 or not resizing.is_open:
        return None

    def build(graph: FunctionGraph) -> Executable:
        with profile.stage("variants", "linker"):
            return _linked(graph, mode, permissions, Profile())

    return Variants(resizing, build, mode.variants)


def _kernel_rules(mode: Mode, rules: KernelRules = codegen) -> KernelRules | None:
    """What may become kernels, of what the rules can lower."""
    if not mode.has("elemwise_fusion"):
        return None
    return SumsAlone(rules) if mode.soundness == "exact" else rules


def _rows_in_place(mode: Mode) -> frozenset[str]:
    """What may work in place. BLAS adds in another order than kernels: it is no part of exact modes."""
    rows = {name for name in ROWS if mode.has(name)}
    return frozenset(rows - {BLAS, GEMM} if mode.soundness == "exact" else rows)


def _checker(graph: FunctionGraph, mode: Mode) -> EGraphChecker:
    from esat.tools.soundness.oracle import checker_of  # debug mode's alone

    return checker_of(graph, mode.samples, mode.soundness == "exact")


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
        machine = _machine(mode)
    return RuleOptions(mode.soundness, texts.extra, machine, shapes, texts.users, mode.accuracy)


def _device(mode: Mode) -> tuple[Device | None, str | None]:
    """The device that a mode asks for, and why there is none."""
    if mode.device == "cpu":
        return None, None
    if not mode.has("gpu_transfer"):
        return None, f"placement: all on the host: the mode {mode.name} leaves out gpu_transfer"
    from esat.gpu.kernel_text.kernels import usable_device

    try:
        return usable_device(or_emulated=mode.debug), None
    except ModeError as error:
        if mode.device == "cuda":
            raise
        return None, f"placement: all on the host: {error}"


def _machine(mode: Mode) -> MachineProfile:
    """The machine as kernels of a mode find it."""
    return mode.machine.in_threads(granted_threads(mode.threads))


def _target(mode: Mode) -> Target:
    """What kernels of a mode are compiled for."""
    return host_target() if mode.target is None else mode.target


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
