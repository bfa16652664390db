from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from esat.graph import Apply, Family, FunctionGraph, SharedVariable, Variable
from esat.ops import table
from esat.ops.dimshuffle import DimShuffle
from esat.phases.fusion import fuse
from esat.phases.group import Group
from esat.runtime import Executable
from esat.runtime.program import KernelCall


@pytest.fixture(scope="session", autouse=True)
def _ops() -> None:
    table.register_all()


class AllFuse:
    """Rules of a generator that lowers every elementwise op, reduction and permutation, in any company."""

    def supported(self, node: Apply) -> bool:
        return node.op.family in (Family.ELEMENTWISE, Family.REDUCTION) or isinstance(node.op, DimShuffle)

    def can_fuse(self, nodes: Sequence[Apply]) -> bool:
        return True


def interpreted_kernel(group: Group) -> KernelCall:
    """A kernel that runs its nodes with NumPy and stores into the outputs as a compiled one does."""
    inputs = tuple(variable for variable in group.inputs)

    def run(*arrays: Any, contiguous: bool) -> None:
        outputs, operands = arrays[: len(group.outputs)], arrays[len(group.outputs) :]
        assert all(array.flags.c_contiguous and array.flags.writeable for array in outputs)
        assert all(array.flags.aligned for array in arrays)
        assert not contiguous or all(array.flags.c_contiguous for array in operands)
        known = dict(zip(inputs, operands, strict=True))
        for array in outputs:
            array.fill(77)  # a kernel may write anything before its results are complete
        for node in group.nodes:
            known.update(zip(node.outputs, node.op.perform([known[v] for v in node.inputs]), strict=True))
        for array, variable in zip(outputs, group.outputs, strict=True):
            assert array.shape == known[variable].shape
            assert array.dtype == known[variable].dtype
            array[...] = known[variable]

    def contiguous(*arrays: Any) -> None:
        run(*arrays, contiguous=True)

    def strided(*arrays: Any) -> None:
        run(*arrays, contiguous=False)

    return KernelCall(inputs, contiguous, strided, str(group))


def matmul_into(node: Apply) -> Callable[..., Any] | None:
    """A routine for matrix products that fills the given array."""
    if node.op.name != "matmul":
        return None
    return lambda left, right, output: np.matmul(left, right, out=output)


def build(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    updates: dict[SharedVariable, Variable] | None = None,
    kernels: bool = True,
) -> Executable:
    updates = updates or {}
    graph = FunctionGraph(inputs, [*outputs, *updates.values()])
    plan = fuse(graph, AllFuse() if kernels else None)
    return Executable(graph, plan, interpreted_kernel, tuple(updates), matmul_into)


@pytest.fixture
def compiled() -> Callable[..., Executable]:
    """``compiled(inputs, outputs, updates={}, kernels=True)``: an Executable of the graph."""
    return build
