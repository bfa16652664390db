"""From a FunctionGraph to the cheapest equal one: encode, saturate, read out, choose, decode."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, fields, replace
from math import fsum
from typing import Any, Literal

from esat.egraph.constructors import undeclared_constructors
from esat.egraph.encode import encode
from esat.egraph.loader import flatten, loading
from esat.egraph.program import Program
from esat.egraph.report import SaturationReport, Trace
from esat.egraph.schedule import Budgets
from esat.egraph.terms import TermGraph
from esat.errors import EsatWarning, OptimizerError
from esat.extract.cost import CostModel
from esat.extract.decode import decode
from esat.extract.explain import Explanation, explain
from esat.extract.extraction import Extraction, SaturatedGraph, extract
from esat.extract.kept import KeptGraphs, graph_key
from esat.extract.machine import MachineProfile
from esat.extract.pricing import term_costs
from esat.extract.resize import Resizing
from esat.extract.shapes import Expected, hints_of
from esat.extract.values import Hints, term_values
from esat.extract.verdicts import Accuracy, OutputAccuracy, Verdicts
from esat.graph import FunctionGraph, Variable
from esat.records import record

Stage = Callable[[str], AbstractContextManager[object]]
"""Times a named stage: a context manager around it."""
WORTH_TELLING = 0.5
"""Bits, in the mean over the points, from which on a gain is told of."""
Judge = Callable[[SaturatedGraph], Verdicts]
"""Tells what the e-nodes of a graph lose in digits."""


@record(frozen=True, slots=True)
class OptimizationReport:
    """What the optimizer did to one graph.

    Attributes
    ----------
    strategy
        ``egraph``, ``greedy`` or ``merge``.
    nodes_before, nodes_after
        Apply nodes of the graph.
    cost_before, cost_after
        Predicted seconds of one call.
    rules
        Name of each rule -> how often it matched (e-graph) or was applied (greedy).
    e_nodes, e_classes
        Size of the saturated e-graph; 0 for the other strategies.
    stop_reason
        Why saturation ended.
    saturation
        All that is known of the saturation; None for the other strategies.
    extraction
        The choice and all there was to choose from; None for the other strategies.
    resizing
        Chooses anew for other sizes, where that is known to be possible.
    tuning
        What autotuning did; printed it is one line. None without autotuning.
    """

    strategy: str
    nodes_before: int
    nodes_after: int
    cost_before: float
    cost_after: float
    rules: Mapping[str, int] = field(default_factory=dict)
    e_nodes: int = 0
    e_classes: int = 0
    stop_reason: str = ""
    saturation: SaturationReport | None = field(default=None, repr=False)
    extraction: Extraction | None = field(default=None, repr=False, compare=False)
    resizing: Resizing | None = field(default=None, repr=False, compare=False)
    tuning: object = field(default=None, compare=False)

    def __reduce__(self) -> Any:
        """Copies of a report tell all that it tells; what makes further programs stays with its function."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return OptimizationReport, tuple({**values, "resizing": None}.values())

    def explain(self, limit: int = 3) -> Explanation:
        """The parts of the program with the best forms that lost, and what these would have cost.

        Parameters
        ----------
        limit
            Alternatives of each part, at most.

        Raises
        ------
        OptimizerError
            When the graph was not optimized by equality saturation: nothing lost.
        """
        if self.extraction is None:
            raise OptimizerError(f"the {self.strategy} optimizer leaves nothing to compare with")
        findings = self.saturation.findings if self.saturation is not None else ()
        return explain(self.extraction, self.cost_before, limit, findings)

    @property
    def accuracy(self) -> tuple[OutputAccuracy, ...]:
        """What each output lost as it was written, and loses now, at sampled points; empty if not judged."""
        graph = None if self.extraction is None else self.extraction.graph
        if graph is None or graph.verdicts is None or graph.accuracy == "ignore":
            return ()
        return graph.verdicts.outputs

    def accuracy_lines(self) -> list[str]:
        """What was gained in accuracy, a line for each output that became better, and what that takes."""
        gains = [
            f"output {place} loses {output.best:.1f} bits in the mean, {output.written:.1f} as written"
            f" (worst of {output.points} points: {output.worst_best:.0f} and {output.worst_written:.0f})"
            for place, output in enumerate(self.accuracy)
            if output.written > output.best + WORTH_TELLING
        ]
        if gains and self.extraction is not None:
            gains.append(f"accurate forms take {self.extraction.seconds_for_accuracy * 1e6:+.2f} us a call")
        return gains

    def __str__(self) -> str:
        lines = [f"Optimizer: {self.strategy}"]
        if self.stop_reason:
            lines.append(
                f"  saturation: {self.e_nodes} e-nodes in {self.e_classes} classes,"
                f" ended by: {self.stop_reason}"
            )
        lines.append(f"  nodes: {self.nodes_before} before, {self.nodes_after} after")
        ratio = self.cost_before / self.cost_after if self.cost_after > 0 else 1.0
        lines.append(
            f"  predicted time of a call: {self.cost_before * 1e6:.1f} us before,"
            f" {self.cost_after * 1e6:.1f} us after ({ratio:.2f} x)"
        )
        lines += [f"  {line}" for line in self.accuracy_lines()]
        if self.tuning is not None:
            lines.append(f"  {self.tuning}")
        if self.rules:
            lines.append(f"  rules that fired ({len(self.rules)}), with their matches:")
            lines += _columns([f"{name} {count}" for name, count in self.rules.items()])
        return "\n".join(lines)


def _columns(entries: list[str], width: int = 108) -> list[str]:
    cell = max(map(len, entries)) + 2
    per_line = max(1, (width - 4) // cell)
    rows = [entries[start : start + per_line] for start in range(0, len(entries), per_line)]
    return ["    " + "".join(entry.ljust(cell) for entry in row).rstrip() for row in rows]


def optimize(  # noqa: PLR0913 (all but three are options with defaults, by name)
    graph: FunctionGraph,
    program: Program,
    budgets: Budgets,
    *,
    machine: MachineProfile | None = None,
    method: Literal["area", "tree", "optimal"] = "area",
    shapes: Expected = (),
    equalities: Sequence[tuple[Variable, Variable]] = (),
    stage: Stage = lambda _: nullcontext(),
    trace: Trace | None = None,
    kept: KeptGraphs | None = None,
    check_types: bool = False,
    keeps: bool = False,
    accuracy: Accuracy = "best",
    judge: Judge | None = None,
) -> tuple[FunctionGraph, OptimizationReport]:
    """The cheapest graph that the rules prove equal.

    Parameters
    ----------
    graph
        What to optimize; it is not changed.
    program
        The rules.
    budgets
        Limits of saturation.
    machine
        Throughputs of the cost model.
    method
        How e-nodes are chosen; see :func:`esat.extract.choose.choose`.
    shapes
        Expected shapes of the inputs, by position.
    equalities
        Pairs of Variables that are known to be equal, beside what the rules say.
    stage
        Called with the name of each stage, to time it.
    trace
        Receives one entry for each step of the saturation.
    kept
        E-graphs of other processes, which need not be saturated again.
    check_types
        Compute types after every step, so that a rule that changed one is found out at once.
    keeps
        Whether the program will keep what depends on constants alone from call to call.
    accuracy
        What the choice goes by before time.
    judge
        Tells what e-nodes lose in digits; None where nothing is to be known of it.

    Raises
    ------
    RuleError, SaturationError, CompileError
        For a rule that egglog refuses, an e-graph that breaks off, a result of the wrong type.
    """
    with stage("encode"):
        terms = encode(graph, equalities)
        written = encode(graph) if equalities else terms
    found, saturation = saturated(terms, program, budgets, stage, trace, kept, check_types)
    found = replace(found, keeps=keeps, accuracy=accuracy)
    if judge is not None and accuracy != "ignore":
        with stage("accuracy"):
            found = replace(found, verdicts=judge(found))
    with stage("extract"):
        model = CostModel(machine or MachineProfile(), terms.opaque)
        extraction = extract(found, model, hints_of(terms, shapes), method)
        chosen, sizes = extraction.terms()
    with stage("decode"):
        result = decode(chosen, graph, sizes)
    with stage("predict"):
        before = predicted_seconds(written, model, hints_of(written, shapes))
    report = OptimizationReport(
        "egraph",
        len(graph),
        len(result),
        before,
        extraction.seconds,
        _fired(program, saturation),
        found.arrays.node_count,
        found.arrays.class_count,
        saturation.stop_reason,
        saturation,
        extraction,
    )
    return result, report


def saturated(
    terms: TermGraph,
    program: Program,
    budgets: Budgets,
    stage: Stage = lambda _: nullcontext(),
    trace: Trace | None = None,
    kept: KeptGraphs | None = None,
    check_types: bool = False,
) -> tuple[SaturatedGraph, SaturationReport]:
    """The e-graph of the terms, after saturation; the parameters are those of :func:`optimize`."""
    with stage("encode"):
        plan = flatten(terms, program.strict)
        undeclared = undeclared_constructors(terms, program.signature)
        told = loading(terms, plan)
    key = ""
    if kept is not None:
        with stage("e-graph cache"):
            declarations = (record.declaration for record in undeclared)
            key = graph_key(program, budgets, [*declarations, *told.all_texts()])
            known = kept.load(key)
        if known is not None:
            if known[1].warning:
                warnings.warn(known[1].warning, EsatWarning, stacklevel=2)
            return SaturatedGraph(known[0], terms, plan), known[1]
    from esat.extract.searching import searched  # the engine, which a kept e-graph does without

    arrays, report = searched(terms, told, undeclared, program, budgets, stage, trace, check_types)
    if kept is not None:
        with stage("e-graph cache"):
            kept.save(key, arrays, report)
    return SaturatedGraph(arrays, terms, plan), report


def predicted_seconds(terms: TermGraph, model: CostModel, hints: Hints | None = None) -> float:
    """Predicted seconds of the terms the roots need, each once."""
    needed = [False] * len(terms.terms)
    for root in terms.roots:
        needed[root] = True
    for number in reversed(range(len(needed))):
        if needed[number]:
            for operand in terms.terms[number].operands:
                needed[operand] = True
    costs = term_costs(terms, term_values(terms, hints), model)
    return fsum(costs[needed].tolist())


def _fired(program: Program, saturation: SaturationReport) -> dict[str, int]:
    """Matches of the rules from rule files, most first."""
    names = {rule.name: rule.report_name for rule in program.selection.rules}
    counts: dict[str, int] = {}
    for statistics in saturation.rules:
        name = names.get(statistics.name)
        if name is not None:
            counts[name] = counts.get(name, 0) + statistics.matches
    counts = {name: count for name, count in counts.items() if count}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
