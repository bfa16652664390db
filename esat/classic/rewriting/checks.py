"""Assertions: those that cannot fail, those said twice, and, where the user wants it, all."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.egraph.analyses.uniform import value_of
from esat.graph import Apply, Variable
from esat.graph.identity import is_among
from esat.ops.control import Assert


@local_optimizer([Assert])
def local_remove_useless_assert(node: Apply) -> Transformed:
    """Conditions that are known to hold, or are given twice, are not checked."""
    value, *conditions = node.inputs
    left: list[Variable] = []
    for condition in conditions:
        if value_of(condition) != 1 and not is_among(condition, left):
            left.append(condition)
    if len(left) == len(conditions):
        return False
    return [node.op.make_node(value, *left).outputs[0] if left else value]


@local_optimizer([Assert])
def local_remove_all_assert(node: Apply) -> Transformed:
    """No condition is checked: for input that is known to be valid."""
    return [node.inputs[0]]
