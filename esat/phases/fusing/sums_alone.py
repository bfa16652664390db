"""Sums whose bits do not depend on what else is computed.

Adding up floats rounds, so the order of additions shows in the result. Kernels choose it by what they
compute beside the sum and by the layout of what they read. Where results are to be those of the graph as
written, to the last bit, neither may matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from esat.graph import Apply
from esat.ops.normalization import Normalization
from esat.ops.reduction import Reduction
from esat.phases.fusing.fusion import KernelRules


def adds_up(nodes: Iterable[Apply]) -> bool:
    """Whether a kernel of these nodes combines elements in an order that it chooses."""
    return any(isinstance(node.op, Reduction | Normalization) for node in nodes)


class SumsAlone:
    """Rules for kernels that do nothing beside what adds up elements.

    Parameters
    ----------
    rules
        What can be lowered to kernels.
    """

    def __init__(self, rules: KernelRules) -> None:
        self._rules = rules
        self.limits = rules.limits

    def supported(self, node: Apply) -> bool:
        """Whether the node can be part of a kernel."""
        return self._rules.supported(node)

    def can_fuse(self, nodes: Sequence[Apply]) -> bool:
        """Whether these nodes, in topological order, can be one kernel."""
        return (len(nodes) == 1 or not adds_up(nodes)) and self._rules.can_fuse(nodes)
