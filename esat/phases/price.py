"""Predicted seconds of a fusion plan: what a call of the program should take.

Where the choice of e-nodes has to assume what will be fused, here the kernels are known: each pays for
entering it, for its arithmetic, and for the bytes of what it reads and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from esat.egraph.uniform import as_tensor
from esat.extract.cost import REDUCING, CostModel, flops_of
from esat.extract.structured_cost import normal_seconds
from esat.extract.value import UNKNOWN_SIZE, Value
from esat.graph import Apply, Family, Variable
from esat.graph.sparse_type import SparseType
from esat.graph.types import DTYPE_NUMBER
from esat.ops.contraction import MatMul
from esat.ops.dimshuffle import DimShuffle
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.sparse.record import EXPECTED_DENSITY
from esat.phases.group import Group

VIEW_SECONDS = 1.0e-7
"""Seconds of making a view as a step of its own."""


def plan_seconds(steps: Sequence[Group], model: CostModel) -> float:
    """Predicted seconds of one call of a program with these steps.

    An axis whose size the type does not tell counts :data:`UNKNOWN_SIZE`.
    """
    return model.machine.call + sum(group_seconds(group, model) for group in steps)


def group_seconds(group: Group, model: CostModel) -> float:
    """Predicted seconds of one step."""
    if group.kind == "view":
        return VIEW_SECONDS
    if group.kind == "library":
        return _library_seconds(group.nodes[0], model)
    machine = model.machine
    moved = sum(_bytes(variable) for variable in (*group.inputs, *group.outputs))
    work = sum(_work_seconds(node, model) for node in group.nodes)
    return machine.kernel_call + machine.kernel(work, moved / machine.bandwidth(moved))


def _work_seconds(node: Apply, model: CostModel) -> float:
    """Seconds of a node inside a kernel, operands in cache."""
    machine, operand, result = model.machine, node.inputs[0], node.outputs[0]
    if isinstance(node.op, DimShuffle):
        order = [axis for axis in node.op.order if axis != "x" and _shape(operand)[int(axis)] > 1]
        against = order != sorted(order, key=int)
        return expected_value(operand).size / machine.transposed_rate if against else 0.0
    if node.op.constructor in REDUCING:
        return machine.fused_op + model.reducing(node.op.constructor, expected_value(operand))
    flops = flops_of(node.op) if node.op.family is Family.ELEMENTWISE else 1.0
    return machine.fused_op + model.arithmetic(flops, expected_value(result))


def _library_seconds(node: Apply, model: CostModel) -> float:
    if isinstance(node.op, MatMul):
        left, right = map(expected_value, node.inputs)
        return model.product(node.op, left, right, expected_value(node.outputs[0]))
    if isinstance(node.op, RowsProduct):
        return normal_seconds(model.machine, expected_value(node.inputs[0]))
    if isinstance(node.op, RowBlocks):
        inner = [one for one in node.op.body.toposort() if one.op.family is not Family.VIEW]
        return sum(
            _library_seconds(one, model) if isinstance(one.op, MatMul) else _work_seconds(one, model)
            for one in inner
        )
    values = [expected_value(variable) for variable in (*node.inputs, *node.outputs)]
    shapes = [tuple(map(int, value.shape)) for value in values]
    count = len(node.inputs)
    itemsizes = [value.itemsize for value in values]
    return model.library_seconds(node.op, shapes[:count], shapes[count:], itemsizes)


def expected_value(variable: Variable) -> Value:
    """Expected shape and dtype of a variable; all axes stay, those of size 1 too."""
    return Value(_shape(variable), DTYPE_NUMBER[as_tensor(variable.type).dtype])


def _shape(variable: Variable) -> tuple[float, ...]:
    sizes = as_tensor(variable.type).shape
    known = tuple(UNKNOWN_SIZE if size is None else float(size) for size in sizes)
    return (*known, EXPECTED_DENSITY * prod(known)) if isinstance(variable.type, SparseType) else known


def _bytes(variable: Variable) -> float:
    value = expected_value(variable)
    return value.size * value.itemsize
