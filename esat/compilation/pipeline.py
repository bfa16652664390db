"""``compile``: from a graph to an Executable, as a list of stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from esat.base.collection import without_old_objects
from esat.base.forks import GATE
from esat.base.interrupts import handlers_reach_the_caller
from esat.classic.rules.rule_options import RuleTexts
from esat.compilation.linking import Compilation, Make
from esat.compilation.optimizing import (
    RuleSources,
    checker_for,
    fastest,
    optimize_bodies,
    optimize_graph,
    rule_options,
    rule_texts,
)
from esat.compilation.placing import device_of, place
from esat.extract.prices.expected_shapes import Expected, expected_shapes
from esat.frontend.derivatives.gradient import GRADIENT_CLOCK
from esat.frontend.graph import Graph, donated_positions, own_graph
from esat.graph import FunctionGraph, Variable
from esat.graph.calls.callers import built_for, user_line
from esat.mode import Mode
from esat.phases.memory.destroy import Supervisor
from esat.phases.memory.effects import Permissions
from esat.runtime import Executable
from esat.runtime.checked_executable import DebugExecutable
from esat.runtime.entry.written_sizes import WrittenSizes, may_stretch
from esat.runtime.function_profile import Profile

WATCHERS: list[Callable[[Executable], None]] = []
"""Called with each function that :func:`compile` has made, also for ``jit``."""


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
    compilation = Compilation(chosen, permissions, profile)
    profile.nodes_before = len(original)
    is_stretched = may_stretch(original)
    device, refusal = device_of(chosen)
    with profile.stage("rules", reads=True):
        options = rule_options(chosen, texts(), expected_shapes(shapes, graph.inputs), device is not None)
    with profile.stage("bodies"):
        original = optimize_bodies(original, chosen, options)
        original.attach_feature(Supervisor(permissions))
    checker = checker_for(original, chosen)
    optimized, report = optimize_graph(original, chosen, options, profile, checker)
    if chosen.autotune and report.resizing is not None and device is None:
        with profile.stage("autotune"):
            optimized, report = fastest(optimized, report, report.resizing, compilation)
    kind: Make = make if checker is None else DebugExecutable
    variants = None if chosen.debug else compilation.variants(report.resizing)
    if device is None:
        executable = compilation.link(optimized, kind, variants)
        executable.report = replace(report, placement=refusal)
    else:
        executable = place(optimized, report, options.shapes, compilation, device, kind, variants)
    taken = RuleTexts(options.extra, options.users or ())
    again = (kept, mode, taken, options.shapes, permissions.donated, profile.message)
    executable.again = compile_again, again
    if isinstance(executable, DebugExecutable) and checker is not None:
        executable.checker = checker
    elif is_stretched:
        executable.ask_of_sizes(WrittenSizes(lambda: own_graph(kept)[0]))
    return executable
