"""Branches that are computed lazily, kept apart while a graph is optimized.

What an op needs of its operands is true wherever the op runs: in ``ifelse(c, x + y, z)`` the sizes of x and y
are equal where c is true, and nowhere else. So the nodes of each branch read what is computed outside it
through a node that marks the place, and what is learnt of the marked value holds in the branch alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from esat.base.records import record
from esat.graph import Apply, Constant, Family, FunctionGraph, TensorType, Variable
from esat.graph.constants import constant
from esat.graph.op import Array, Op
from esat.graph.sparse_type import SparseType
from esat.graph.types import Type, may_stand_for
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.shape import size_of
from esat.ops.control import IfElse
from esat.phases.fusing.group import Guard
from esat.phases.fusing.laziness import conditions_first, find_guards


@record(frozen=True, eq=False, repr=False)
class Within(Op):
    """The operand itself, as a branch reads it; nothing of it is left in a program.

    Attributes
    ----------
    branch
        The number of the branch.
    """

    branch: int
    name, constructor, family = "within", "Within", Family.VIEW
    view_map = MappingProxyType({0: (0,)})
    is_free = True

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (inputs[0].type,)

    def perform(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return (inputs[0],)


def separate_branches(graph: FunctionGraph) -> None:
    """Mark what lazily computed nodes read that is computed outside their branch."""
    nodes = conditions_first(graph.toposort())
    guards = find_guards(nodes, graph.outputs)
    numbers = {guard: number for number, guard in enumerate(dict.fromkeys(guards.values()))}
    marked: dict[tuple[Variable, Guard], Variable] = {}
    for node, guard in guards.items():
        if isinstance(node.op, IfElse):
            continue  # it learns nothing of its operands
        for place, operand in enumerate(node.inputs):
            if _guard_of(operand, guards) == guard or not _has_sizes(operand):
                continue
            if (operand, guard) not in marked:
                marked[operand, guard] = Within(numbers[guard])(operand)
            graph.change_input((node, place), marked[operand, guard], "separate_branches")


def join_branches(graph: FunctionGraph) -> None:
    """Put what was marked in the place of its marks."""
    for node in graph.toposort():
        if isinstance(node.op, Within):
            marked, source = node.outputs[0], node.inputs[0]
            if not may_stand_for(marked.type, source.type):
                source = _never_read(marked, source)
            graph.replace(marked, source, "join_branches")


def _never_read(marked: Variable, source: Variable) -> Variable:
    """What a branch may read whose sizes contradict those outside it: it is never computed."""
    sizes = [
        size_of(source, axis) if size is None else size for axis, size in enumerate(marked.tensor_type.shape)
    ]
    return alloc(constant(0, marked.tensor_type.dtype), *sizes)


def _guard_of(variable: Variable, guards: dict[Apply, Guard]) -> Guard:
    return () if variable.owner is None else guards.get(variable.owner, ())


def _has_sizes(variable: Variable) -> bool:
    if isinstance(variable, Constant):
        return False
    return isinstance(variable.type, SparseType) or (
        isinstance(variable.type, TensorType) and variable.type.ndim > 0
    )
