"""``compile``: from a graph to an Executable, as a list of stages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from esat.classic.greedy import optimize_greedily
from esat import codegen
from esat.codegen.blas import routine_for
from esat.egraph.prepare import program_for
from esat.egraph.saturate import Budgets
from esat.errors import GraphError
from esat.extract.merge import merge_only
from esat.extract.optimizer import OptimizationReport, optimize
from esat.frontend.graph import Graph
from esat.graph import FunctionGraph, SharedVariable
from esat.graph.variables import user_line
from esat.mode import Mode
from esat.phases.expand import expand
from esat.phases.fusion import fuse
from esat.profile import Profile
from esat.rules import RULES
from esat.rules.database import RuleSelection
from esat.runtime import Executable
from esat.runtime.kernels import compile_group

RuleSources = str | Path | Iterable[str | Path]


def compile(
    graph: Graph | FunctionGraph, mode: str | Mode = "fast_run", *, rules: RuleSources = ()
) -> Executable:
    """Compile a graph into a function of NumPy arrays.

    Parameters
    ----------
    graph
        What to compute: an ``esat.Graph`` (inputs, outputs, updates, givens) or a FunctionGraph. It
        is not changed.
    mode
        How hard to optimize: the name of a mode, or a :class:`Mode`.
    rules
        Further rules for this compilation: paths of files, or texts, in egglog syntax.

    Returns
    -------
    An Executable: called with one array an input it returns the output, or a tuple of outputs. Its
    ``report`` tells what the optimizer did, its ``profile`` how long each stage took.

    Raises
    ------
    EsatError
        A subclass that says what is wrong with the graph, the mode or a rule.
    """
    profile = Profile(message="{}:{}".format(*(user_line() or ("<unknown>", 0))))
    chosen = mode if isinstance(mode, Mode) else Mode(mode)
    with profile.stage("clone"):
        original, updated = _function_graph(graph)
    profile.nodes_before = len(original)
    with profile.stage("rules"):
        selection = _select(chosen, rules)
    optimized, report = _optimize(original, chosen, selection, profile)
    with profile.stage("expand"):
        expanded = expand(optimized)
    with profile.stage("fusion"):
        plan = fuse(expanded, codegen if chosen.fuse else None)
    executable = Executable(expanded, plan, compile_group, updated, routine_for, profile)
    executable.report, executable.optimized = report, optimized
    return executable


def _function_graph(graph: Graph | FunctionGraph) -> tuple[FunctionGraph, tuple[SharedVariable, ...]]:
    """A copy of the graph that compilation may use, and the variables its last outputs update."""
    if isinstance(graph, Graph):
        return graph.function_graph(), graph.updated
    if isinstance(graph, FunctionGraph):
        unused = [variable for variable in graph.inputs if not graph.clients[variable]]
        if unused:
            names = ", ".join(map(str, unused))
            raise GraphError(f"nothing depends on the input {names}")
        return graph.clone(), ()
    raise GraphError(f"esat.compile takes an esat.Graph or a FunctionGraph, not {type(graph).__name__}")


def _select(mode: Mode, rules: RuleSources) -> RuleSelection:
    sources = [rules] if isinstance(rules, (str, Path)) else list(rules)
    extra = [RULES.read(source) for source in sources]
    return RULES.query(mode.query, soundness=mode.soundness, extra=extra)


def _optimize(
    graph: FunctionGraph, mode: Mode, selection: RuleSelection, profile: Profile
) -> tuple[FunctionGraph, OptimizationReport]:
    if mode.strategy == "merge":
        return merge_only(graph, machine=mode.machine, stage=profile.stage)
    with profile.stage("compile rules"):
        program = program_for(selection, strict=mode.soundness == "exact")
    if mode.strategy == "greedy":
        return optimize_greedily(graph, program, selection, machine=mode.machine, stage=profile.stage)
    budgets = Budgets(mode.node_limit, mode.time_limit, mode.round_limit)
    return optimize(graph, program, budgets, machine=mode.machine, method=mode.extract, stage=profile.stage)
