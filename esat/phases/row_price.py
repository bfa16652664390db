"""Predicted seconds that a kernel takes besides, for each row, where rows are short.

A kernel that reduces along rows goes through them one by one. Each row fills vectors of its own, and has
numbers of its own, which are computed alone: what a row takes whatever its length is much where it has eight
elements, and little where it has a hundred. Large kernels with few columns are written for their number, and
vectors run over the rows (:mod:`esat.codegen.kernel.narrow`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from esat.extract.machine import MachineProfile
from esat.graph import Apply, Family, Variable
from esat.ops.normalization import Normalization
from esat.ops.reduction import LOGSUMEXP, Reduction
from esat.phases.group import Group

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
