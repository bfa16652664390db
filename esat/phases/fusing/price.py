"""Predicted seconds of a fusion plan: what a call of the program should take.

Where the choice of e-nodes has to assume what will be fused, here the kernels are known: each pays for
entering it, for its arithmetic, and for the bytes of what it reads and writes.

A kernel that reduces along rows goes through them one by one. Each row fills vectors of its own, and has
numbers of its own, which are computed alone: what a row takes whatever its length is much where it has eight
elements, and little where it has a hundred. Large kernels with few columns are written for their number, and
vectors run over the rows (:mod:`esat.codegen.kernel.narrow`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from esat.egraph.analyses.uniform import as_tensor
from esat.extract.prices.cost import REDUCING, CostModel, flops_of
from esat.extract.prices.indexed_cost import masked_seconds
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.structured_cost import normal_seconds
from esat.extract.prices.value import UNKNOWN_SIZE, Value
from esat.graph import Apply, Family, Variable
from esat.graph.sparse_type import SparseType
from esat.graph.types import DTYPE_NUMBER
from esat.ops.accumulate import AccumulateProduct
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.contraction import MatMul
from esat.ops.index.basic import Subtensor
from esat.ops.index.part import part_of
from esat.ops.linalg.row_blocks import RowBlocks
from esat.ops.linalg.rows_product import RowsProduct
from esat.ops.normalization import Normalization
from esat.ops.reduction import LOGSUMEXP, Reduction
from esat.ops.sparse.record import EXPECTED_DENSITY
from esat.phases.fusing.group import Group
from esat.phases.native import has_native_steps, is_constant, is_native_view, runs_by_python

Sizes = Callable[[Variable], tuple[float, ...]]

_PLAIN, _FUNCTION, _FUNCTION_OF_ROWS = 1.0, 2.0, 5.0
"""What one more of these takes for each row, in rows of the profile: a reduction, an elementary function of a
row's elements, and one of a number that a row has."""
_NORMALIZED = {
    "softmax": 2 * _PLAIN + 2 * _FUNCTION,  # maximum, powers, their sum, and the division
    "log_softmax": 2 * _PLAIN + _FUNCTION + _FUNCTION_OF_ROWS,
}
_LOGSUMEXP = 2 * _PLAIN + _FUNCTION + _FUNCTION_OF_ROWS
_FUNCTION_FLOPS = 8.0
"""Additions that an op takes as long as, beyond which it is an elementary function."""
_WRITTEN_OUT, _FEW_COLUMNS, _FEW_OF_FUNCTIONS = 1 << 15, 4.0, 12.0
"""Elements from which kernels with few columns are written for their number, and how many columns are few,
without elementary functions and with such."""
_SHARE_WRITTEN_OUT = 0.3
"""What each element takes then in a kernel with elementary functions, in rows of the profile."""


def row_seconds(group: Group, machine: MachineProfile, sizes: Sizes) -> float:
    """Predicted seconds that the rows of a kernel take besides what their elements do; 0 without reductions
    along rows.

    Parameters
    ----------
    group
        What the kernel computes.
    machine
        Tells what a row takes.
    sizes
        The expected sizes of a variable's axes.
    """
    reduced = [sizes(node.inputs[0]) for node in group.nodes if _along_rows(node)]
    if not reduced:
        return 0.0
    count, length = max((prod(shape[:-1]), shape[-1]) for shape in reduced)
    steps = sum(_steps(node, count, length, sizes) for node in group.nodes)
    with_functions = any(_is_function(node) for node in group.nodes)
    few = _FEW_OF_FUNCTIONS if with_functions else _FEW_COLUMNS
    if count * length >= _WRITTEN_OUT and length <= few:
        return machine.row * _SHARE_WRITTEN_OUT * count * length if with_functions else 0.0
    return machine.row * count * steps


def _along_rows(node: Apply) -> bool:
    """Whether it reduces the last axis of its operand, and leaves others."""
    if not isinstance(node.op, Reduction | Normalization):
        return False
    rank = node.inputs[0].tensor_type.ndim
    return rank - 1 in node.op.axes and len(node.op.axes) < rank


def _is_function(node: Apply) -> bool:
    if isinstance(node.op, Normalization) or (
        isinstance(node.op, Reduction) and node.op.reducer is LOGSUMEXP
    ):
        return True
    return node.op.family is Family.ELEMENTWISE and float(getattr(node.op, "flops", 1.0)) > _FUNCTION_FLOPS


def _steps(node: Apply, count: float, length: float, sizes: Sizes) -> float:
    """What a node takes for each of so many rows, in rows of the profile."""
    if _along_rows(node):
        if prod(sizes(node.inputs[0])[:-1]) != count:
            return 0.0
        if isinstance(node.op, Normalization):
            return _NORMALIZED[node.op.name]
        return _LOGSUMEXP if _is_function(node) else _PLAIN
    if isinstance(node.op, Reduction):  # of columns: each row is added to what there is
        *around, inner = sizes(node.inputs[0]) or (1.0,)
        return _PLAIN if inner == length and prod(around) == count else 0.0
    if not _is_function(node):
        return 0.0
    elements = prod(sizes(node.outputs[0]))
    return _FUNCTION if elements == count * length else _FUNCTION_OF_ROWS if elements == count else 0.0


Shapes = Mapping[Variable, tuple[int, ...]]
"""The shapes of variables, as far as they are known."""
NO_SHAPES: Shapes = MappingProxyType({})

VIEW_SECONDS = 1.0e-7
"""Seconds of making a view as a step of its own."""
PYTHON_SECONDS = 5.0e-6
"""Seconds that a step takes besides, which is no kernel and no product of matrices, where Python runs it: its
checks, and the way through NumPy or SciPy. Measured: 2.5 for a join, 12 for a write to a part."""
NATIVE_SECONDS = 1.0e-8
"""Seconds that a kernel, a copy or a routine takes besides in a native function."""
OP_SECONDS = 4.0e-9
"""The most that one op more takes in a kernel of these ops, whatever its size: what the choice of e-nodes
takes for it has a share of entering kernels in it."""


def plan_seconds(steps: Sequence[Group], model: CostModel, shapes: Shapes = NO_SHAPES) -> float:
    """Predicted seconds of one call of a program with these steps.

    An axis whose size neither the shapes given nor the type tell counts :data:`UNKNOWN_SIZE`.
    """
    machine = model.machine
    if not has_native_steps(steps):
        others = sum(group.kind == "library" and not _is_product(group.nodes[0]) for group in steps)
        around = machine.call + others * PYTHON_SECONDS
        return around + sum(group_seconds(group, model, shapes) for group in steps)
    return machine.call + sum(_native_seconds(group, model, shapes) for group in steps)


def _is_product(node: Apply) -> bool:
    return isinstance(node.op, MatMul | RowsProduct | RowBlocks | AccumulateProduct)


def _native_seconds(group: Group, model: CostModel, shapes: Shapes) -> float:
    """Predicted seconds of a step of a native function: what it does, and hardly anything around it."""
    node, machine = group.nodes[0], model.machine
    if group.kind == "view" or (group.kind == "library" and (is_native_view(node.op) or is_constant(node))):
        return 0.0
    if runs_by_python(group):
        return group_seconds(group, model, shapes) + PYTHON_SECONDS
    if group.kind == "kernel":
        entered = machine.kernel_call
    elif isinstance(node.op, MatMul):
        entered = machine.matrix_call
    else:
        entered = 0.0 if isinstance(node.op, RowsProduct | RowBlocks) else machine.library_call
    return max(group_seconds(group, model, shapes) - entered, 0.0) + NATIVE_SECONDS


def group_seconds(group: Group, model: CostModel, shapes: Shapes = NO_SHAPES) -> float:
    """Predicted seconds of one step; sizes as for :func:`plan_seconds`."""
    if group.kind == "view":
        return VIEW_SECONDS
    if group.kind == "library":
        return _library_seconds(group.nodes[0], model, shapes)
    machine = model.machine
    moved = _bytes_read(group, shapes) + sum(expected_bytes(variable, shapes) for variable in group.outputs)
    work = sum(_work_seconds(node, model, shapes) for node in group.nodes)
    work += row_seconds(group, machine, lambda variable: _shape(variable, shapes))
    return machine.kernel_call + machine.kernel(work, moved / machine.bandwidth(moved))


def _work_seconds(node: Apply, model: CostModel, shapes: Shapes) -> float:
    """Seconds of a node inside a kernel, operands in cache."""
    machine, operand, result = model.machine, node.inputs[0], node.outputs[0]
    if isinstance(node.op, DimShuffle):
        order = [axis for axis in node.op.order if axis != "x" and _shape(operand, shapes)[int(axis)] > 1]
        against = order != sorted(order, key=int)
        return expected_value(operand, shapes).size / machine.transposed_rate if against else 0.0
    if node.op.constructor in REDUCING:
        return min(machine.fused_op, OP_SECONDS) + model.reducing(
            node.op.constructor, expected_value(operand, shapes)
        )
    operands = [expected_value(variable, shapes) for variable in node.inputs]
    indexed = model.indexed(node.op, operands, expected_value(result, shapes))
    if indexed is not None:
        return indexed
    flops = flops_of(node.op) if node.op.family is Family.ELEMENTWISE else 1.0
    return min(machine.fused_op, OP_SECONDS) + model.arithmetic(flops, expected_value(result, shapes))


def _bytes_read(group: Group, shapes: Shapes) -> float:
    """Expected bytes that a kernel reads; of windows of one array no more than the array has."""
    read: dict[Variable, float] = {}
    for variable in _read_whole(group):
        source = _shown(variable)
        read[source] = read.get(source, 0.0) + expected_bytes(variable, shapes)
    return sum(min(moved, expected_bytes(source, shapes)) for source, moved in read.items())


def _shown(variable: Variable) -> Variable:
    """The array of which a variable is a part, as a view."""
    while variable.owner is not None and isinstance(variable.owner.op, Subtensor):
        variable = variable.owner.inputs[0]
    return variable


def _read_whole(group: Group) -> list[Variable]:
    """The inputs of a kernel, but for those of which parts alone are read or written."""
    read = {
        variable
        for node in group.nodes
        for place, variable in enumerate(node.inputs)
        if place or part_of(node) is None
    }
    return [variable for variable in group.inputs if variable in read]


def _library_seconds(node: Apply, model: CostModel, shapes: Shapes) -> float:
    values = [expected_value(variable, shapes) for variable in (*node.inputs, *node.outputs)]
    if isinstance(node.op, MatMul):
        left, right, result = values
        return model.product(node.op, left, right, result)
    if isinstance(node.op, RowsProduct):
        return normal_seconds(model.machine, values[0])
    if isinstance(node.op, RowBlocks):
        inner = [one for one in node.op.body.toposort() if one.op.family is not Family.VIEW]
        return sum(
            _library_seconds(one, model, shapes)
            if isinstance(one.op, MatMul)
            else _work_seconds(one, model, shapes)
            for one in inner
        )
    sizes = [tuple(map(int, value.shape)) for value in values]
    count = len(node.inputs)
    itemsizes = [value.itemsize for value in values]
    seconds = model.library_seconds(node.op, sizes[:count], sizes[count:], itemsizes)
    return masked_seconds(model.machine, node.op, values[:count]) + seconds


def expected_value(variable: Variable, shapes: Shapes = NO_SHAPES) -> Value:
    """Expected shape and dtype of a variable; all axes stay, those of size 1 too."""
    return Value(_shape(variable, shapes), DTYPE_NUMBER[as_tensor(variable.type).dtype])


def _shape(variable: Variable, shapes: Shapes) -> tuple[float, ...]:
    if variable in shapes and not isinstance(variable.type, SparseType):
        return tuple(map(float, shapes[variable]))
    sizes = as_tensor(variable.type).shape
    known = tuple(UNKNOWN_SIZE if size is None else float(size) for size in sizes)
    return (*known, EXPECTED_DENSITY * prod(known)) if isinstance(variable.type, SparseType) else known


def expected_bytes(variable: Variable, shapes: Shapes = NO_SHAPES) -> float:
    """Expected bytes of a variable."""
    value = expected_value(variable, shapes)
    return value.size * value.itemsize
