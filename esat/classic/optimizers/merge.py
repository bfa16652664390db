"""MergeOptimizer: equal computations become one."""

from __future__ import annotations

from esat.classic.optimizers.global_optimizers import Optimizer
from esat.classic.profile import OptimizerProfile
from esat.errors import DestroyError
from esat.graph import Apply, Constant, FunctionGraph, TensorType, Variable
from esat.phases.memory.destroy import DestroyHandler


class MergeOptimizer(Optimizer):
    """Combines Apply nodes that apply equal ops to the same inputs, and Constants of equal value.

    One pass in topological order is enough: a node's inputs are merged before the node is met.
    """

    name = "MergeOptimizer"

    def apply(self, fgraph: FunctionGraph) -> OptimizerProfile:
        profile = OptimizerProfile(self.label, type(self).__name__)
        merged = self._merge_constants(fgraph) + self._merge_nodes(fgraph)
        if merged:
            profile.applied[self.label] = merged
        return profile

    def _merge_constants(self, fgraph: FunctionGraph) -> int:
        first: dict[object, Constant] = {}
        merged = 0
        for variable in list(fgraph.clients):
            if isinstance(variable, Constant) and isinstance(variable.type, TensorType):
                known = first.setdefault(variable.content, variable)
                if known is not variable:
                    fgraph.replace(variable, known, "merge")
                    merged += 1
        return merged

    def _merge_nodes(self, fgraph: FunctionGraph) -> int:
        first: dict[object, Apply] = {}
        merged = 0
        for node in fgraph.toposort():
            key = (node.op, tuple(map(id, node.inputs)))
            known = first.setdefault(key, node)
            if known is not node:
                merged += _merge(fgraph, list(zip(node.outputs, known.outputs, strict=True)))
        return merged


def _merge(fgraph: FunctionGraph, pairs: list[tuple[Variable, Variable]]) -> bool:
    """Put one node in the place of another, unless what one of them is overwritten by forbids it."""
    handler = fgraph.feature_of(DestroyHandler)
    if handler is None or not handler.destroyers:
        for old, new in pairs:
            if old in fgraph.clients:
                fgraph.replace(old, new, "merge")
        return True
    try:
        fgraph.replace_all_validate([pair for pair in pairs if pair[0] in fgraph.clients], "merge")
    except DestroyError:
        return False
    return True


merge_optimizer = MergeOptimizer()
