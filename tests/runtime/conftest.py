from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from all_fuse import AllFuse
from assembled import assembled

from esat.graph import Apply, Family, FunctionGraph, SharedVariable, Variable
from esat.ops import table
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.group import Group
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import work_in_place
from esat.runtime import Executable
from esat.runtime.program import KernelCall


@pytest.fixture(scope="session", autouse=True)
def _ops() -> None:
    table.register_all()


class InterpretedKernels:
    """Kernels that run their nodes with NumPy and store into the outputs as compiled ones do."""

    def overwritable(self, group: Group) -> list[tuple[Variable, Variable]]:
        """Any input of an output's type, where no node but those for scalars moves elements."""
        moving = (n for n in group.nodes if n.op.family is not Family.ELEMENTWISE)
        if not all(all(node.inputs[0].tensor_type.broadcastable) for node in moving):
            return []
        return [(o, v) for o in group.outputs for v in group.inputs if o.type == v.type]

    def compile(self, group: Group, taken: Mapping[Variable, Variable]) -> KernelCall:
        inputs = tuple(variable for variable in group.inputs if variable not in set(taken.values()))

        def run(*arrays: Any, contiguous: bool) -> None:
            outputs, operands = arrays[: len(group.outputs)], arrays[len(group.outputs) :]
            assert all(array.flags.c_contiguous and array.flags.writeable for array in outputs)
            assert all(array.flags.aligned for array in arrays)
            assert not contiguous or all(array.flags.c_contiguous for array in operands)
            for array in outputs:
                assert not any(np.may_share_memory(array, other) for other in arrays if other is not array)
            known = dict(zip(inputs, operands, strict=True))
            for array, variable in zip(outputs, group.outputs, strict=True):
                if variable in taken:
                    known[taken[variable]] = array.copy()
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

        return KernelCall(inputs, contiguous, strided, group.__str__)


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
    donate: Sequence[int] = (),
    inplace: bool = True,
) -> Executable:
    updates = updates or {}
    graph = FunctionGraph(inputs, [*outputs, *updates.values()])
    permissions = Permissions(frozenset(donate), tuple(updates))
    if inplace:
        graph = work_in_place(graph, permissions)
    plan = fuse(graph, AllFuse() if kernels else None, permissions=permissions)
    return assembled(graph, plan, permissions, InterpretedKernels(), matmul_into, inplace)


@pytest.fixture
def compiled() -> Callable[..., Executable]:
    """``compiled(inputs, outputs, updates={}, kernels=True, donate=(), inplace=True)``: an Executable."""
    return build
