"""Chains of sums and of products: ``(a + b + ...) - (x + y + ...)``, ``(a * b * ...) / (x * y * ...)``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.classic.graph_terms import same, with_rank
from esat.egraph.terms import SCALAR
from esat.egraph.uniform import bare, broadcast_of
from esat.extract.nary import PlanStep, plan_product, plan_sum
from esat.graph import Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.records import record

_SIDES = {
    "add": (0, 0),
    "sub": (0, 1),
    "neg": (1,),
    "mul": (0, 0),
    "div": (0, 1),
    "reciprocal": (1,),
    "sqr": (0, 0),
}
SUMS = ("add", "sub", "neg")
"""Ops that sums are made of."""

PRODUCTS = ("mul", "div", "reciprocal", "sqr")
"""Ops that products are made of."""


@record(frozen=True, slots=True)
class Chain:
    """A sum, or a product, flattened through inner nodes that are used only once.

    Attributes
    ----------
    above, below
        What is added and what is subtracted; what is multiplied and what it is divided by.
    nodes
        How many nodes it is made of.
    """

    above: tuple[Variable, ...]
    below: tuple[Variable, ...]
    nodes: int


def chain_of(output: Variable, names: Sequence[str]) -> Chain:
    """The chain of ``SUMS`` or ``PRODUCTS`` that ends in a Variable, or the Variable alone."""
    sides: tuple[list[Variable], list[Variable]] = ([], [])
    nodes = 0
    pending = [(output, 0)]
    while pending:
        variable, side = pending.pop()
        node = variable.owner
        chained = (
            node is not None
            and node.op.name in names
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
            (operand, side ^ flip) for operand, flip in zip(reversed(operands), reversed(flips), strict=True)
        ]
    return Chain(tuple(sides[0]), tuple(sides[1]), nodes)


def is_inner(output: Variable, names: Sequence[str]) -> bool:
    """Whether a Variable is part of a longer chain."""
    clients = output.clients or []
    if len(clients) != 1 or clients[0][0] == "output":
        return False
    user = clients[0][0]
    return user.op.name in names and user.outputs[0].tensor_type.dtype == output.tensor_type.dtype


def plan(names: Sequence[str], above: Sequence[Variable], below: Sequence[Variable]) -> Sequence[PlanStep]:
    """The steps that compute a chain, small operands first."""
    operands = [*above, *below]
    shapes = [_sizes(operand) for operand in operands]
    if names is SUMS:
        return plan_sum(shapes, len(above))
    identities = [next(j for j, other in enumerate(operands) if same(other, one)) for one in operands]
    return plan_product(identities, shapes, len(above))


def follow(steps: Sequence[PlanStep], operands: Sequence[Variable]) -> Variable:
    """The Variable that steps compute from operands."""
    values = [bare(operand) for operand in operands]
    for step in steps:
        used = [values[step.left]] if step.right is None else [values[step.left], values[step.right]]
        if step.exponent:
            used.append(constant(np.asarray(step.exponent, used[0].tensor_type.dtype)))
        rank = max(0 if broadcast_of(operand) == SCALAR else operand.tensor_type.ndim for operand in used)
        result: Variable = op_named(step.op)(*(with_rank(operand, rank) for operand in used))
        values.append(result)
    return values[-1]


def product(above: Sequence[Variable], below: Sequence[Variable]) -> Variable:
    """The quotient of two products; ``above`` or ``below`` may be empty, not both."""
    return chained(PRODUCTS, above, below)


def chained(names: Sequence[str], above: Sequence[Variable], below: Sequence[Variable]) -> Variable:
    """The difference of two sums, or the quotient of two products; one of the two may be empty."""
    return follow(plan(names, above, below), [*above, *below])


def _sizes(variable: Variable) -> tuple[float, ...]:
    if broadcast_of(variable) == SCALAR:
        return ()
    return tuple(64.0 if size is None else float(size) for size in variable.tensor_type.shape)
