"""Fills whose shape comes from an array that is computed for nothing else: from sizes instead.

A part of a graph that is found to be a constant has the shape of what it was written as, which may be a
product of matrices. Its sizes are those of inputs.
"""

from __future__ import annotations

from esat.classic.optimizers.global_optimizers import FromFunctionOptimizer
from esat.classic.simplify import traced_size
from esat.graph import Constant, FunctionGraph, Variable
from esat.graph.constants import constant
from esat.ops.arrays.creation import ALLOC
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.shape import ShapeI
from esat.ops.index.basic import Subtensor


def fills_by_sizes(graph: FunctionGraph) -> None:
    """Let fills have the sizes of what nothing else needs, and not the array."""
    for node in graph.toposort():
        if node not in graph.apply_nodes or node.op.constructor != "Fill":
            continue
        shaping, value = node.inputs
        if not _is_computed(graph, shaping) or not _is_only_a_shape(graph, shaping):
            continue
        sizes = [_size(shaping, value, axis) for axis in range(shaping.tensor_type.ndim)]
        if all(_is_known(graph, size) for size in sizes):
            filled = ALLOC(value, *sizes)
            if filled.type == node.outputs[0].type:
                graph.replace(node.outputs[0], filled, "fills_by_sizes")


def _size(shaping: Variable, value: Variable, axis: int) -> Variable:
    """That of an axis of a fill, which stretches either operand."""
    own = axis - shaping.tensor_type.ndim + value.tensor_type.ndim
    if not shaping.tensor_type.broadcastable[axis]:
        return traced_size(shaping, axis)
    if own < 0 or value.tensor_type.broadcastable[own]:
        return constant(1, "int64")
    return traced_size(value, own)


def _is_computed(graph: FunctionGraph, variable: Variable) -> bool:
    """Whether an array is more than a view of an input."""
    while variable.owner is not None and variable not in graph.input_set:
        if not isinstance(variable.owner.op, DimShuffle | Subtensor):
            return True
        variable = variable.owner.inputs[0]
    return False


def _is_only_a_shape(graph: FunctionGraph, variable: Variable) -> bool:
    """Whether fills read a variable for its shape, and nothing else does."""
    return all(
        user != "output" and user.op.constructor == "Fill" and place == 0
        for user, place in graph.clients[variable]
    )


def _is_known(graph: FunctionGraph, size: Variable) -> bool:
    """Whether a size is a number, or that of an input."""
    if isinstance(size, Constant):
        return True
    source = size.owner
    return source is not None and isinstance(source.op, ShapeI) and not _is_computed(graph, source.inputs[0])


FILLS_BY_SIZES = FromFunctionOptimizer(fills_by_sizes)
