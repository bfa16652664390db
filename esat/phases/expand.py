"""Expansion: composite ops become elementwise ops and reductions that kernels can fuse."""

from __future__ import annotations

from esat.classic.optimizer import Optimizer
from esat.classic.profile import OptimizerProfile
from esat.graph import FunctionGraph
from esat.ops.normalization import Normalization


class ExpandNormalizations(Optimizer):
    """Replaces softmax and its logarithm by the maximum, exponentials and sums they consist of."""

    name = "expand_normalizations"

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile | None:
        for node in fgraph.toposort():
            if isinstance(node.op, Normalization):
                fgraph.replace(node.outputs[0], node.op.expand(node.inputs[0]), self.name)
        return None


def expand(graph: FunctionGraph) -> FunctionGraph:
    """A copy of the graph without composite ops."""
    result = FunctionGraph(graph.inputs, graph.outputs)
    ExpandNormalizations().optimize(result)
    return result
