"""Loops within others, of which each step has one: their numbers are told by what is around.

Before: the loop of step 3 reads ``K[2, w]``, that of the step which stands for others ``K[i - 1, w]``. After:
both read ``K[p, w]``, and are one loop, which is told ``p``.
"""

from __future__ import annotations

from collections.abc import Set

from esat.graph.algorithms.copying import clone
from esat.graph.algorithms.traversal import inputs_of, toposort
from esat.graph.constants import constant
from esat.graph.op import Op
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND, Slice
from esat.ops.loops.parts import LoopParts


def close_with_numbers(parts: LoopParts, outside: Set[Variable], numbers: Set[Variable]) -> None:
    """Make what the body takes from around it invariants; each number that it uses, wherever it does, is one.

    Parameters
    ----------
    parts
        The loop.
    outside
        What its steps use that is no value of theirs.
    numbers
        Those of the loops around: what is computed of them alone is one number, as a constant is.
    """
    copies: dict[Variable, Variable] = {}
    told: dict[Variable, Variable] = {}

    def taken(operand: Variable) -> Variable:
        if not (_is_scalar_constant(operand) or _is_of(operand, numbers)):
            return copies.get(operand, operand)
        own = Variable(operand.type)
        told[own] = operand
        return own

    for node in toposort(parts.results, stop={*parts.inputs, *outside}):
        if not any(_is_of(one, numbers) for one in node.outputs):
            made = _asked(node).make_node(*map(taken, _operands(node)))
            made.where = node.where
            copies.update(zip(node.outputs, made.outputs, strict=True))
    if all(one.type == made.type for one, made in copies.items()):
        parts.replace({one: copies[one] for one in parts.results if one in copies})
    parts.close()
    outer = clone(list(parts.invariants.values()), told)[0]
    parts.invariants = dict(zip(parts.invariants, outer, strict=True))


def _asked(node: Apply) -> Op:
    """The op of a node, with operands in the place of the integers in its index."""
    op = node.op
    if type(op) not in (Subtensor, SetSubtensor):
        return op
    assert isinstance(op, Subtensor | SetSubtensor)
    return type(op)(tuple(OPERAND if type(entry) is int else entry for entry in op.entries))


def _operands(node: Apply) -> list[Variable]:
    """The operands of that."""
    op = node.op
    if type(op) not in (Subtensor, SetSubtensor):
        return list(node.inputs)
    assert isinstance(op, Subtensor | SetSubtensor)
    first = 1 if type(op) is Subtensor else 2
    found, rest = list(node.inputs[:first]), iter(node.inputs[first:])
    for entry in op.entries:
        if type(entry) is int:
            found.append(constant(entry, "int64"))
        elif entry is OPERAND:
            found.append(next(rest))
        elif isinstance(entry, Slice):
            found += [next(rest) for part in entry.parts() if part is OPERAND]
    return found


def _is_scalar_constant(variable: Variable) -> bool:
    return isinstance(variable, Constant) and isinstance(variable.type, TensorType) and not variable.type.ndim


def _is_of(variable: Variable, numbers: Set[Variable]) -> bool:
    """Whether a scalar is computed of some others alone."""
    type = variable.type
    if isinstance(variable, Constant) or not isinstance(type, TensorType) or type.ndim:
        return False
    inputs = inputs_of([variable])
    return bool(inputs) and all(one in numbers for one in inputs)
