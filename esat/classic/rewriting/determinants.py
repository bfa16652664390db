"""Determinants, inverses and solutions: forms that neither overflow nor invert."""

from __future__ import annotations

from esat.classic.local import Transformed, local_optimizer
from esat.classic.rewriting.parts import fitting
from esat.graph import Apply, Variable
from esat.graph.registry import op_named
from esat.ops.contraction import MatMul, swap_last_axes
from esat.ops.elementwise.record import Elementwise
from esat.ops.linalg.inverse import DETERMINANT, INVERSE, SLOGDET
from esat.ops.linalg.solve import SOLVE


@local_optimizer([Elementwise])
def local_log_det(node: Apply) -> Transformed:
    """log(det(a)) and log(abs(det(a))) by the logarithm of the pivots, whose product may overflow.

    A negative determinant has no logarithm: ``log(sign)`` is 0, minus infinity or NaN.
    """
    if node.op.name != "log":
        return False
    inside = node.inputs[0].owner
    absolute = inside is not None and inside.op.name == "abs"
    source = inside.inputs[0].owner if inside is not None and absolute else inside
    if source is None or source.op != DETERMINANT or node.outputs[0].tensor_type.kind != "f":
        return False
    sign, logarithm = SLOGDET(source.inputs[0])
    return fitting(node, logarithm if absolute else op_named("add")(logarithm, op_named("log")(sign)))


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
