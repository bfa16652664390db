"""The greedy baseline: the same rules without keeping what they replace.

Merge, canonicalize to a fixed point, stabilize, choose matrix products, specialize, merge: the order of the
database. Each step destroys what it replaces.
"""

from __future__ import annotations

from contextlib import nullcontext

from esat.classic.optimizers.optimizer_database import QueriedOptimizer
from esat.classic.optimizers.replacement_trace import ReplacementTrace, Writer
from esat.classic.profile import OptimizerProfile
from esat.egraph.language.encode import encode
from esat.extract.prices.cost import CostModel
from esat.extract.prices.expected_shapes import Expected, hints_of
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.pricing import predicted_seconds
from esat.graph import FunctionGraph
from esat.optimize.equality.report import OptimizationReport, Stage
from esat.phases.memory.destroy import Supervisor, permissions_of


def optimize_greedily(
    graph: FunctionGraph,
    optimizer: QueriedOptimizer,
    *,
    machine: MachineProfile | None = None,
    shapes: Expected = (),
    stage: Stage = lambda _: nullcontext(),
    trace: Writer | None = None,
) -> tuple[FunctionGraph, OptimizationReport, OptimizerProfile]:
    """The graph after a classic optimizer; it is not changed itself.

    Parameters
    ----------
    graph
        What to optimize.
    optimizer
        What a database was turned into by a Query.
    machine
        Throughputs of the cost model.
    shapes
        Expected shapes of the inputs, by position, for the prediction.
    stage
        Called with the name of each stage, to time it.
    trace
        Told of each replacement.

    Raises
    ------
    OptimizerError
        When an optimizer gives a result whose type does not fit.
    """
    costs = machine or MachineProfile()
    result = graph.clone()
    result.attach_feature(Supervisor(permissions_of(graph)))
    if trace is not None:
        result.attach_feature(ReplacementTrace(trace))
    with stage("optimize"):
        profile = optimizer.optimize(result)
    with stage("predict"):
        before, after = (_predicted(one, costs, shapes) for one in (graph, result))
    report = OptimizationReport("greedy", len(graph), len(result), before, after, profile.all_applied())
    return result, report, profile


def _predicted(graph: FunctionGraph, machine: MachineProfile, shapes: Expected) -> float:
    terms = encode(graph)
    return predicted_seconds(terms, CostModel(machine, terms.opaque), hints_of(terms, shapes))
