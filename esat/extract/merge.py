"""The least an optimizer does: equal nodes merged, constants folded."""

from __future__ import annotations

from contextlib import nullcontext

from esat.egraph.encode import encode
from esat.extract.cost import CostModel, MachineProfile
from esat.extract.decode import decode
from esat.extract.optimizer import OptimizationReport, Stage, predicted_seconds
from esat.extract.values import Hints, term_value
from esat.graph import FunctionGraph


def merge_only(
    graph: FunctionGraph,
    *,
    machine: MachineProfile | None = None,
    hints: Hints | None = None,
    stage: Stage = lambda _: nullcontext(),
) -> tuple[FunctionGraph, OptimizationReport]:
    """The graph with equal nodes merged and constants folded: encoding it and decoding it does both."""
    with stage("encode"):
        terms = encode(graph)
    with stage("decode"):
        result = decode(terms, graph, [term_value(type, hints).shape for type in terms.types])
    model = CostModel(machine or MachineProfile(), terms.opaque)
    cost = predicted_seconds(terms, model, hints)
    return result, OptimizationReport("merge", len(graph), len(result), cost, cost)
