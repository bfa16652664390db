"""Where no single form is accurate everywhere: two forms, and a condition on one input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from esat.classic.optimizers.merge import MergeOptimizer
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import RuleProgram
from esat.egraph.saturation.schedule import Budgets
from esat.extract.accuracy.regimes import RegimeSplit, splits_of
from esat.extract.decode import decode
from esat.extract.extraction import SaturatedGraph, extract
from esat.extract.kept_graphs import KeptGraphs
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import hints_of
from esat.extract.prices.machine import MachineProfile
from esat.extract.verdicts import Verdicts
from esat.graph import Apply, Constant, FunctionGraph, TensorType, Variable, clone
from esat.graph.constants import constant
from esat.ops.cast import Cast
from esat.ops.elementwise.comparison import lt
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.elementwise.selection import switch
from esat.optimize.equality.search import saturated


def use_regimes(
    graph: FunctionGraph,
    program: RuleProgram,
    budgets: Budgets,
    machine: MachineProfile | None = None,
    kept: KeptGraphs | None = None,
) -> list[str]:
    """Let values that elementwise ops compute have two forms and a condition, where that is more accurate.

    What these ops compute is saturated once more, by itself: a condition in the e-graph would choose between
    two forms that the e-graph knows to be equal. The graph is changed.

    Parameters
    ----------
    program, budgets, machine, kept
        As of :func:`esat.optimize.equality.optimizer.optimize`.

    Returns
    -------
    A line for each condition.
    """
    values = [variable for variable in _ends(graph) if _is_real(variable)]
    inputs = list(dict.fromkeys(_starts(values)))
    if not values or not any(map(_is_real, inputs)):
        return []
    own = [variable.type(variable.name or f"v{place}") for place, variable in enumerate(inputs)]
    copies, _ = clone(values, dict(zip(inputs, own, strict=True)))
    region = FunctionGraph(own, copies)
    found, _ = saturated(encode(region), program, budgets, kept=kept)
    lines = []
    for split in splits_of(found):
        old = values[split.output]
        below, above = (
            _form(found, verdicts, region, inputs, split.output, machine)
            for verdicts in (split.below, split.above)
        )
        start = inputs[split.input]
        threshold = constant(split.threshold, dtype=start.tensor_type.dtype)
        new = switch(lt(start, threshold), below, above)
        if new.type == old.type and old in graph.clients:
            graph.replace(old, new, "regimes")
            lines.append(_line(split, start))
    if lines:
        MergeOptimizer().optimize(graph)
    return lines


def _line(split: RegimeSplit, start: Variable) -> str:
    name = start.name or str(start)
    return (
        f"one form where {name} < {split.threshold:.4g}, another elsewhere: {split.bits:.1f} bits lost in the"
        f" mean, {split.bits_of_one:.1f} by one form alone"
    )


def _form(
    found: SaturatedGraph,
    verdicts: Verdicts,
    region: FunctionGraph,
    inputs: Sequence[Variable],
    output: int,
    machine: MachineProfile | None,
) -> Variable:
    """The cheapest form of an output among the most accurate ones by some verdicts, of these inputs."""
    graph = replace(found, verdicts=verdicts)
    model = CostModel(machine or MachineProfile(), graph.terms.opaque)
    chosen, sizes = extract(graph, model, hints_of(graph.terms, ())).terms()
    result = decode(chosen, region, sizes)
    (value,), _ = clone([result.outputs[output]], dict(zip(result.inputs, inputs, strict=True)))
    return value


def _is_elementwise(node: Apply | None) -> bool:
    return node is not None and isinstance(node.op, Elementwise | Cast)


def _is_real(variable: Variable) -> bool:
    return isinstance(variable.type, TensorType) and variable.type.dtype.startswith("float")


def _ends(graph: FunctionGraph) -> Iterator[Variable]:
    """Values of elementwise ops that outputs or other ops read."""
    for node in graph.toposort():
        if _is_elementwise(node):
            (value,) = node.outputs
            users = [client for client, _ in graph.clients[value]]
            if any(not isinstance(user, Apply) or not _is_elementwise(user) for user in users):
                yield value


def _starts(values: Sequence[Variable]) -> Iterator[Variable]:
    """What elementwise ops read below some values that no such op computes."""
    pending, seen = list(values), set()
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value, Constant):
            continue
        seen.add(value)
        if value.owner is not None and _is_elementwise(value.owner):
            pending += value.owner.inputs
        else:
            yield value
