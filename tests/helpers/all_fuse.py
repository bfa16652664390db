"""Rules for kernels in tests, which do not ask what a generator can lower."""

from collections.abc import Sequence

from esat.graph import Apply, Family
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.phases.fusing.fusion import Limits


class AllFuse:
    """Rules of a generator that lowers every elementwise op, reduction and permutation, in any company."""

    limits = Limits()

    def supported(self, node: Apply) -> bool:
        return node.op.family in (Family.ELEMENTWISE, Family.REDUCTION) or isinstance(node.op, DimShuffle)

    def can_fuse(self, nodes: Sequence[Apply]) -> bool:
        return True
