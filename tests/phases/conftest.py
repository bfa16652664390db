from collections.abc import Sequence

import pytest

from esat.graph import Apply, Family
from esat.ops import table
from esat.ops.dimshuffle import DimShuffle


@pytest.fixture(scope="session", autouse=True)
def _ops() -> None:
    table.register_all()


class AllFuse:
    """Rules of a generator that lowers every elementwise op, reduction and permutation, in any company."""

    def supported(self, node: Apply) -> bool:
        return node.op.family in (Family.ELEMENTWISE, Family.REDUCTION) or isinstance(node.op, DimShuffle)

    def can_fuse(self, nodes: Sequence[Apply]) -> bool:
        return True


@pytest.fixture
def rules() -> AllFuse:
    return AllFuse()
