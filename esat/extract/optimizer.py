"""From a FunctionGraph to the cheapest equal one: encode, saturate, read out, choose, decode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from esat.egraph.constructors import undeclared_constructors
from esat.egraph.encode import encode
from esat.egraph.loader import flatten, load_text
from esat.egraph.prepare import SUPERSEDED, Program, prepared_engine
from esat.egraph.report import SaturationReport, StepTrace
from esat.egraph.saturate import Budgets, saturate
from esat.egraph.terms import TermGraph
from esat.extract.arrays import EGraphArrays
from esat.extract.choose import choose
from esat.extract.cost import CostModel, MachineProfile
from esat.extract.decode import decode
from esat.extract.readout import Layout, read_out
from esat.extract.selected import selected_terms
from esat.extract.values import Hints, class_values, node_costs, term_value
from esat.graph import FunctionGraph, Variable

Stage = Callable[[str], AbstractContextManager[object]]
"""Times a named stage: a context manager around it."""


FACTS = ("dt", "bp")
"""Facts that extraction reads."""

SUPERSEDED_NAMES = (f"{SUPERSEDED}NarySum", f"{SUPERSEDED}NaryProd")
SUPERSEDED_PENALTY = 1.0e3
"""Seconds added to e-nodes that a rule replaced for good, so that they are a last resort.

Rules that stabilize subsume what they match: a form that overflows or cancels must not come back
because it is predicted to be faster.
"""


@dataclass(frozen=True, slots=True)
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
        if self.rules:
            lines.append(f"  rules that fired ({len(self.rules)}), with their matches:")
            lines += _columns([f"{name} {count}" for name, count in self.rules.items()])
        return "\n".join(lines)


def _columns(entries: list[str], width: int = 108) -> list[str]:
    cell = max(map(len, entries)) + 2
    per_line = max(1, (width - 4) // cell)
    rows = [entries[start : start + per_line] for start in range(0, len(entries), per_line)]
    return ["    " + "".join(entry.ljust(cell) for entry in row).rstrip() for row in rows]


def optimize(
    graph: FunctionGraph,
    program: Program,
    budgets: Budgets,
    *,
    machine: MachineProfile | None = None,
    method: Literal["area", "tree", "optimal"] = "area",
    hints: Hints | None = None,
    equalities: Sequence[tuple[Variable, Variable]] = (),
    stage: Stage = lambda _: nullcontext(),
    trace: list[StepTrace] | None = None,
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
    hints
        Expected sizes of axes that the types leave open.
    equalities
        Pairs of Variables that are known to be equal, beside what the rules say.
    stage
        Called with the name of each stage, to time it.
    trace
        Receives one entry for each step of the saturation.

    Raises
    ------
    RuleError, SaturationError, CompileError
        For a rule that egglog refuses, an e-graph that breaks off, a result of the wrong type.
    """
    with stage("encode"):
        terms = encode(graph, equalities)
        written = encode(graph) if equalities else terms
    arrays, saturation = _saturated(terms, program, budgets, stage, trace)
    with stage("extract"):
        model = CostModel(machine or MachineProfile(), terms.opaque)
        values = class_values(arrays, terms, hints)
        costs = node_costs(arrays, values, model)
        roots = [int(arrays.term_class[root]) for root in terms.roots]
        penalties = np.where(superseded_nodes(arrays), SUPERSEDED_PENALTY, 0.0)
        selection = choose(arrays, costs + penalties, roots, method=method, time_limit=60.0)
        nodes = selection.chosen[selection.chosen >= 0]
        chosen, shapes = selected_terms(arrays, selection.chosen.tolist(), roots, terms, values)
        chosen, shapes, cost = _never_worse(
            written, chosen, shapes, float(costs[nodes].sum()), model, hints, _stabilized(program, saturation)
        )
    with stage("decode"):
        result = decode(chosen, graph, shapes)
    report = OptimizationReport(
        "egraph",
        len(graph),
        len(result),
        predicted_seconds(written, model, hints),
        cost,
        _fired(program, saturation),
        arrays.node_count,
        arrays.class_count,
        saturation.stop_reason,
        saturation,
    )
    return result, report


def _saturated(
    terms: TermGraph,
    program: Program,
    budgets: Budgets,
    stage: Stage,
    trace: list[StepTrace] | None,
) -> tuple[EGraphArrays, SaturationReport]:
    with ExitStack() as stack:
        with stage("load rules"):
            engine = stack.enter_context(prepared_engine(program))
        with stage("load"):
            undeclared = undeclared_constructors(terms, program.signature)
            for record in undeclared:
                engine.execute(record.declaration)
            for text in load_text(terms, flatten(terms, program.strict)):
                engine.execute(text)
        with stage("saturate"):
            report = saturate(engine, program.schedule, budgets, program.constructors, trace)
        with stage("read out"):
            declared = (record.name for record in undeclared)
            names = {*program.constructors, *declared, *SUPERSEDED_NAMES, *FACTS, Layout().term_table}
            others = [name for name in engine.sizes() if name not in names]
            arrays = read_out(engine.freeze(), engine.values, Layout(not_operators=others, facts=FACTS))
            stack.close()
    return arrays, report


def predicted_seconds(terms: TermGraph, model: CostModel, hints: Hints | None = None) -> float:
    """Predicted seconds of the terms the roots need, each once."""
    values = [term_value(type, hints) for type in terms.types]
    needed = set(terms.roots)
    total = 0.0
    for number in reversed(range(len(terms.terms))):
        if number in needed:
            term = terms.terms[number]
            needed.update(term.operands)
            operands = [values[operand] for operand in term.operands]
            total += model.price(term.constructor, term.attributes, operands, values[number], term.operands)
    return total


def _never_worse(
    terms: TermGraph,
    chosen: TermGraph,
    shapes: list[tuple[float, ...]],
    cost: float,
    model: CostModel,
    hints: Hints | None,
    stabilized: bool,
) -> tuple[TermGraph, list[tuple[float, ...]], float]:
    """The choice, or the terms as they came where it is not predicted to be faster.

    A graph that became numerically stable may cost more than it did.
    """
    before = predicted_seconds(terms, model, hints)
    if np.isfinite(cost) and (cost <= before or stabilized):
        return chosen, shapes, cost
    return terms, [term_value(type, hints).shape for type in terms.types], before


def superseded_nodes(arrays: EGraphArrays) -> NDArray[np.bool_]:
    """Which e-nodes a rule of a file subsumed."""
    found = arrays.subsumed.copy()
    names = arrays.operator_names
    nary = [index for index, name in enumerate(names) if name in ("NarySum", "NaryProd")]
    found &= ~np.isin(arrays.operator, nary)
    for index, name in enumerate(names):
        if name in SUPERSEDED_NAMES:
            for mark in np.flatnonzero(arrays.operator == index).tolist():
                found[_twin(arrays, mark, name.removeprefix(SUPERSEDED))] = True
    return found


def _twin(arrays: EGraphArrays, mark: int, constructor: str) -> list[int]:
    """The e-node of the constructor that has the operands of a mark."""
    wanted = (arrays.operands_of(mark).tolist(), arrays.attributes_of(mark))
    return [
        node
        for node in arrays.nodes_of(int(arrays.class_of[mark]))
        if arrays.operator_of(node) == constructor
        and (arrays.operands_of(node).tolist(), arrays.attributes_of(node)) == wanted
    ]


def _stabilized(program: Program, saturation: SaturationReport) -> bool:
    origins = program.compiled.origins
    matched = (origins.get(statistics.name) for statistics in saturation.rules)
    return any(rule is not None and "stabilize" in rule.tags for rule in matched)


def _fired(program: Program, saturation: SaturationReport) -> dict[str, int]:
    """Matches of the rules from rule files, most first."""
    origins = program.compiled.origins
    counts: dict[str, int] = {}
    for statistics in saturation.rules:
        rule = origins.get(statistics.name)
        name = statistics.name.partition("#")[0] if rule is None else rule.report_name
        if rule is not None or name in {origin.name for origin in origins.values()}:
            counts[name] = counts.get(name, 0) + statistics.matches
    counts = {name: count for name, count in counts.items() if count}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
