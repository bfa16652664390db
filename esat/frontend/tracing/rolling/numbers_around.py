"""Loops within others, of which each step has one: their numbers are told by what is around.

Before: the loop of step 3 reads ``K[2, w]``, that of the step which stands for others ``K[i - 1, w]``. After:
both read ``K[p, w]``, and are one loop, which is told ``p``.
"""

from __future__ import annotations

from collections.abc import Set

from esat.graph.algorithms.traversal import inputs_of, toposort
from esat.graph.constants import constant
from esat.graph.types import TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.index.basic import SetSubtensor, Subtensor
from esat.ops.index.entries import OPERAND
from esat.ops.loops.parts import LoopParts


def take_numbers_from_around(parts: LoopParts, numbers: Set[Variable]) -> None:
    """Have an invariant for each number that the body uses where it uses it: constants, and what is computed
    of the ``numbers`` of the loops around."""
    copies: dict[Variable, Variable] = {}
    told = {own: outer for own, outer in parts.invariants.items() if _is_of(outer, numbers)}
    found: dict[Variable, Variable] = {}

    def taken(operand: Variable) -> Variable:
        outer = told.get(operand, operand)
        if outer is operand and not (isinstance(operand, Constant) and not operand.tensor_type.ndim):
            return copies.get(operand, operand)
        own = Variable(outer.type)
        found[own] = outer
        return own

    for node in toposort(parts.results, stop=set(parts.inputs)):
        op = node.op
        operands = list(node.inputs)
        if type(op) in (Subtensor, SetSubtensor):
            assert isinstance(op, Subtensor | SetSubtensor)
            first = 1 if type(op) is Subtensor else 2
            rest = iter(operands[first:])
            sizes = operands[0].tensor_type.shape
            entries = [entry if type(entry) is not int or entry < 0 else OPERAND for entry in op.entries]
            del operands[first:]
            for given, entry in zip(op.entries, entries, strict=True):
                if entry is OPERAND:
                    operands.append(next(rest) if given is OPERAND else constant(given, "int64"))
            operands += rest
            op = op if tuple(entries) == op.entries or None in sizes else type(op)(tuple(entries))
            operands = operands if op is not node.op else list(node.inputs)
        made = (
            op.make_node(*map(taken, operands))
            if op is not node.op
            else node.clone_with([*map(taken, operands)])
        )
        if [one.type for one in made.outputs] != [one.type for one in node.outputs]:
            return
        made.where = node.where
        copies.update(zip(node.outputs, made.outputs, strict=True))
    parts.replace({one: copies[one] for one in parts.results if one in copies})
    parts.invariants.update(found)


def _is_of(variable: Variable, numbers: Set[Variable]) -> bool:
    """Whether a scalar is computed of some others alone."""
    type = variable.type
    if isinstance(variable, Constant) or not isinstance(type, TensorType) or type.ndim:
        return False
    inputs = inputs_of([variable])
    return bool(inputs) and all(one in numbers for one in inputs)
