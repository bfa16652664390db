"""Operands of matrix products as BLAS takes them: transposes as views, scalars where they cost nothing.

A product reads a transposed view as fast as a matrix, but what a kernel computes of a transposed view is
written against the order of memory. So transposes move from before elementwise work to behind it, next to
the product. A scalar that would be the only reason to write a scaled copy of an operand moves to the
result, where the kernel that reads it multiplies for nothing. A sign becomes that of a number which scales
the same. A diagonal matrix that is added is its diagonal, added in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.classic.optimizers.global_optimizers import FromFunctionOptimizer
from esat.classic.simplify import axes_agree
from esat.egraph.analyses.uniform import may_shrink
from esat.graph import Apply, Constant, Family, FunctionGraph, Variable
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.ops.arrays.creation import arange
from esat.ops.arrays.diagonal import DiagonalOf
from esat.ops.arrays.dimshuffle import DimShuffle, Order, dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.contraction import MatMul
from esat.ops.index.advanced import AdvancedIncSubtensor
from esat.ops.index.entries import ARRAY

_IN_LOOPS = (Family.ELEMENTWISE, Family.REDUCTION)


def lift_transposes(graph: FunctionGraph) -> None:
    """Let operands of products be transposed views of elementwise results, not such results of views."""
    for node, place in _operands_of_products(graph):
        operand = node.inputs[place]
        if isinstance(operand.owner and operand.owner.op, DimShuffle):
            continue
        found = _untransposed(graph, operand)
        if found is not None:
            base, order = found
            graph.replace(operand, dimshuffle(base, order), "lift_transposes")


def scale_products(graph: FunctionGraph) -> None:
    """Multiply the results of products by scalars instead of operands that are needed unscaled anyway."""
    for node, place in _operands_of_products(graph):
        scaled = node.inputs[place]
        order: Order | None = None
        if scaled.owner is not None and isinstance(scaled.owner.op, DimShuffle):
            order = scaled.owner.op.order
            if not _has_one_client(graph, scaled) or len(set(order)) < len(order) or "x" in order:
                continue
            scaled = scaled.owner.inputs[0]
        factor = _scale(graph, scaled)
        result = node.outputs[0]
        if factor is None or not _is_read_in_loops(graph, result):
            continue
        name, scalar, operand = factor
        if (
            may_shrink(name, scalar)
            or not _is_kept_anyway(graph, operand)
            or scalar.tensor_type.ndim != result.tensor_type.ndim
        ):
            continue
        operands = list(node.inputs)
        operands[place] = operand if order is None else dimshuffle(operand, order)
        product = node.op.make_node(*operands)
        product.where = node.where
        moved = op_named(name)(product.outputs[0], scalar)
        if moved.type == result.type:
            graph.replace(result, moved, "scale_products")


def signs_into_numbers(graph: FunctionGraph) -> None:
    """Let numbers have the sign of what they scale: ``-(x * 2)`` is ``x * -2``, and so are quotients."""
    for node in graph.toposort():
        inner = node.inputs[0].owner if node.inputs else None
        if node.op.name != "neg" or inner is None or inner.op.name not in ("mul", "div"):
            continue
        if node not in graph.apply_nodes or not _has_one_client(graph, node.inputs[0]):
            continue
        places = [place for place, operand in enumerate(inner.inputs) if _is_real_number(operand)]
        if places:
            operands = list(inner.inputs)
            operands[places[0]] = constant(-_number(operands[places[0]]))
            scaled = inner.op.make_node(*operands)
            scaled.where = node.where
            if scaled.outputs[0].type == node.outputs[0].type:
                graph.replace(node.outputs[0], scaled.outputs[0], "signs_into_numbers")


def add_diagonals(graph: FunctionGraph) -> None:
    """Let ``x + diag(v)`` add v to the diagonal of x: no matrix is made of v."""
    for node in graph.toposort():
        if node.op.name != "add" or node not in graph.apply_nodes:
            continue
        for matrix, other in (node.inputs, node.inputs[::-1]):
            made = other.owner
            if made is None or made.op != DiagonalOf() or matrix.type != node.outputs[0].type:
                continue
            if not all(axes_agree(matrix, axis, made.inputs[0], 0) for axis in (0, 1)):
                continue  # one element is stretched, and what does not fit is an error
            places = _numbered(made.inputs[0])
            added = AdvancedIncSubtensor((ARRAY, ARRAY)).make_node(matrix, made.inputs[0], places, places)
            added.where = node.where
            if added.outputs[0].type == node.outputs[0].type:
                graph.replace(node.outputs[0], added.outputs[0], "add_diagonals")
                break


def _numbered(vector: Variable) -> Variable:
    """The numbers of a vector's elements, from 0."""
    size = vector.tensor_type.shape[0]
    return arange(size_of(vector, 0)) if size is None else constant(np.arange(size))


def _is_real_number(variable: Variable) -> bool:
    return isinstance(variable, Constant) and variable.data.size == 1 and variable.tensor_type.kind == "f"


def _number(variable: Variable) -> NDArray[Any]:
    assert isinstance(variable, Constant)
    return np.asarray(variable.data)


def _operands_of_products(graph: FunctionGraph) -> Iterator[tuple[Apply, int]]:
    """Matrix products with the places of their operands, as the graph stands when each is reached."""
    for node in graph.toposort():
        if isinstance(node.op, MatMul):
            for place in (0, 1):
                if node in graph.apply_nodes:
                    yield node, place


def _untransposed(graph: FunctionGraph, variable: Variable) -> tuple[Variable, Order] | None:
    """A variable and the order of axes in which it is the given one; None where it is no such view."""
    node = variable.owner
    if node is None or variable in graph.input_set:
        return None
    if isinstance(node.op, DimShuffle):
        order = node.op.order
        moves = len(order) == node.op.input_rank and "x" not in order and not node.op.is_identity
        return (node.inputs[0], order) if moves else None
    if node.op.family is not Family.ELEMENTWISE or not _is_read_by_one_kind(graph, variable):
        return None
    parts = [None if _is_uniform(operand) else _untransposed(graph, operand) for operand in node.inputs]
    orders = {part[1] for part in parts if part is not None}
    whole = all(part is not None or _is_uniform(v) for part, v in zip(parts, node.inputs, strict=True))
    if len(orders) != 1 or not whole:
        return None
    operands = [v if part is None else part[0] for part, v in zip(parts, node.inputs, strict=True)]
    moved = node.op.make_node(*operands)
    moved.where = node.where
    return moved.outputs[0], orders.pop()


def _is_read_by_one_kind(graph: FunctionGraph, variable: Variable) -> bool:
    """Whether only products read a variable, or one elementwise node."""
    clients = graph.clients[variable]
    if any(user == "output" for user, _ in clients):
        return False
    users = [user for user, _ in clients if user != "output"]
    return len(users) == 1 or all(isinstance(user.op, MatMul) for user in users)


def _has_one_client(graph: FunctionGraph, variable: Variable) -> bool:
    return len(graph.clients[variable]) == 1 and variable not in graph.input_set


def _is_uniform(variable: Variable) -> bool:
    return all(variable.tensor_type.broadcastable)


def _scale(graph: FunctionGraph, variable: Variable) -> tuple[str, Variable, Variable] | None:
    """The op, the scalar and the operand that a variable, read nowhere else, is the multiple of."""
    node = variable.owner
    if node is None or not _has_one_client(graph, variable) or node.op.name not in ("mul", "div"):
        return None
    first, second = node.inputs
    if _is_uniform(second) and not _is_uniform(first):
        return node.op.name, second, first
    if node.op.name == "mul" and _is_uniform(first) and not _is_uniform(second):
        return "mul", first, second
    return None


def _is_kept_anyway(graph: FunctionGraph, variable: Variable) -> bool:
    """Whether a variable is in memory whether or not it is scaled: nothing fuses it away."""
    node = variable.owner
    computed = node is not None and variable not in graph.input_set and node.op.family in _IN_LOOPS
    if not computed:
        return True
    return len(graph.clients[variable]) > 1


def _is_read_in_loops(graph: FunctionGraph, variable: Variable) -> bool:
    """Whether kernels read a variable, and nothing else does."""
    return all(
        user != "output" and user.op.family in (*_IN_LOOPS, Family.VIEW)
        for user, _ in graph.clients[variable]
    )


LIFT_TRANSPOSES = FromFunctionOptimizer(lift_transposes)
SIGNS_INTO_NUMBERS = FromFunctionOptimizer(signs_into_numbers)
SCALE_PRODUCTS = FromFunctionOptimizer(scale_products)
ADD_DIAGONALS = FromFunctionOptimizer(add_diagonals)
