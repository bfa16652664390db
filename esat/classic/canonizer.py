"""Canonical sums and products: Theano's add and mul canonizers.

``(a + b + c + ...) - (z + x + y + ...)`` and ``(a * b * c * ...) / (z * x * y * ...)``: a chain is
flattened through inner nodes used only once, what stands on both sides cancels, constants are folded.
"""

from __future__ import annotations

from collections.abc import Sequence

from esat.classic.local import LocalOptimizer, Transformed
from esat.classic.terms import bare, broadcast_of, fitted, is_tensor, same, value_of, with_rank
from esat.egraph.terms import SCALAR
from esat.extract.nary import Step, plan_product, plan_sum
from esat.graph import Apply, Op, Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named

_SIDES = {
    "add": (0, 0),
    "sub": (0, 1),
    "neg": (1,),
    "mul": (0, 0),
    "div": (0, 1),
    "reciprocal": (1,),
    "sqr": (0, 0),
}
_SUMS = ("add", "sub", "neg")
_PRODUCTS = ("mul", "div", "reciprocal", "sqr")


class Canonizer(LocalOptimizer):
    """Rewrites chains of one kind to their canonical form if that is shorter.

    Parameters
    ----------
    kind
        ``add`` or ``mul``.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names = _SUMS if kind == "add" else _PRODUCTS
        self.name = f"local_{kind}_canonizer"

    def follows(self, op: Op) -> bool:
        return op.name in self.names

    def transform(self, node: Apply) -> Transformed:
        if not self.follows(node.op) or not is_tensor(node.outputs[0]):
            return False
        output = node.outputs[0]
        kind = output.tensor_type.kind
        if kind == "b" or (kind in "iu" and self.kind == "mul" and node.op.name in ("div", "reciprocal")):
            return False
        if _inner_use(output, self.names):
            return False  # part of a longer chain, which is met later
        above, below, nodes = self._flatten(output)
        top, bottom = _cancelled(above, below)
        top, bottom = self._fold(top, bottom, output)
        if len(top) + len(bottom) >= len(above) + len(below) or not (top or bottom):
            return False
        steps = self._plan(top, bottom)
        if len(steps) >= nodes:
            return False
        result = fitted(_follow(steps, [*top, *bottom]), output)
        return False if result is None else [result]

    def _flatten(self, output: Variable) -> tuple[list[Variable], list[Variable], int]:
        sides: tuple[list[Variable], list[Variable]] = ([], [])
        nodes = 0
        pending = [(output, 0)]
        while pending:
            variable, side = pending.pop()
            node = variable.owner
            chained = (
                node is not None
                and node.op.name in self.names
                and variable.tensor_type.dtype == output.tensor_type.dtype
                and (variable is output or len(variable.clients or ()) == 1)
            )
            if node is None or not chained:
                sides[side].append(variable)
                continue
            nodes += 1
            operands = node.inputs * 2 if node.op.name == "sqr" else node.inputs
            flips = _SIDES[node.op.name]
            pending += [
                (operand, side ^ flip)
                for operand, flip in zip(reversed(operands), reversed(flips), strict=True)
            ]
        return sides[0], sides[1], nodes

    def _fold(
        self, above: list[Variable], below: list[Variable], output: Variable
    ) -> tuple[list[Variable], list[Variable]]:
        """Scalar constants of the chain as one, and none at all where it changes nothing."""
        if output.tensor_type.dtype != "float64":
            return above, below
        unit = 0.0 if self.kind == "add" else 1.0
        total, found = unit, 0
        kept: tuple[list[Variable], list[Variable]] = ([], [])
        for side, operands in enumerate((above, below)):
            for operand in operands:
                value = value_of(operand)
                if value is None or broadcast_of(operand) != SCALAR or (self.kind == "mul" and value == 0):
                    kept[side].append(operand)
                    continue
                found += 1
                if self.kind == "add":
                    total += -value if side else value
                else:
                    total = total / value if side else total * value
        if found < 1 or (found == 1 and total != unit) or not (kept[0] or kept[1]):
            return above, below
        if total != unit:
            kept[0].append(constant(total))
        return kept

    def _plan(self, above: Sequence[Variable], below: Sequence[Variable]) -> Sequence[Step]:
        operands = [*above, *below]
        shapes = [_sizes(operand) for operand in operands]
        if self.kind == "add":
            return plan_sum(shapes, len(above))
        identities = [next(j for j, other in enumerate(operands) if same(other, one)) for one in operands]
        return plan_product(identities, shapes, len(above))


def _sizes(variable: Variable) -> tuple[float, ...]:
    if broadcast_of(variable) == SCALAR:
        return ()
    return tuple(64.0 if size is None else float(size) for size in variable.tensor_type.shape)


def _inner_use(output: Variable, names: Sequence[str]) -> bool:
    clients = output.clients or []
    if len(clients) != 1 or clients[0][0] == "output":
        return False
    user = clients[0][0]
    return user.op.name in names and user.outputs[0].tensor_type.dtype == output.tensor_type.dtype


def _cancelled(above: Sequence[Variable], below: Sequence[Variable]) -> tuple[list[Variable], list[Variable]]:
    top, bottom = list(above), []
    for operand in below:
        match = next((index for index, other in enumerate(top) if same(other, operand)), None)
        if match is None:
            bottom.append(operand)
        else:
            del top[match]
    return top, bottom


def _follow(steps: Sequence[Step], operands: Sequence[Variable]) -> Variable:
    values = [bare(operand) for operand in operands]
    for step in steps:
        used = [values[step.left]] if step.right is None else [values[step.left], values[step.right]]
        rank = max(0 if broadcast_of(operand) == SCALAR else operand.tensor_type.ndim for operand in used)
        result: Variable = op_named(step.op)(*(with_rank(operand, rank) for operand in used))
        values.append(result)
    return values[-1]
