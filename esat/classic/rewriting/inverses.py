"""Products with inverses: solutions of systems."""

from __future__ import annotations

from esat.classic.optimizers.local import Transformed, local_optimizer
from esat.classic.rewriting.indices.parts import fitting
from esat.graph import Apply, Variable
from esat.ops.contraction import MatMul, swap_last_axes
from esat.ops.linalg.inverse import INVERSE
from esat.ops.linalg.solve import SOLVE


@local_optimizer([MatMul])
def local_inverse_to_solve(node: Apply) -> Transformed:
    """inv(a) @ b -> solve(a, b), and b @ inv(a) -> solve(a.T, b.T).T."""
    left, right = (_inverted(operand) for operand in node.inputs)
    if left is not None:
        return fitting(node, SOLVE(left, node.inputs[1]))
    if right is not None:
        turned: Variable = SOLVE(swap_last_axes(right), swap_last_axes(node.inputs[0]))
        return fitting(node, swap_last_axes(turned))
    return False


def _inverted(operand: Variable) -> Variable | None:
    node = operand.owner
    return node.inputs[0] if node is not None and node.op == INVERSE else None
