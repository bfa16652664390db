"""The rule of Blockwise, which applies an op to each part of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from esat.errors import ShapeError
from esat.frontend.derivatives.batching import vectorize
from esat.frontend.elements import reductions
from esat.frontend.pytensor.foreign import Foreign
from esat.frontend.pytensor.indexing import index_of
from esat.frontend.pytensor.matrices import MATRIX_RULES
from esat.frontend.pytensor.steps import NoRuleError, PyTensorStep, Rule, label
from esat.graph.algorithms.traversal import toposort
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.shape import element_count, size_of, sizes_of
from esat.ops.arrays.view import expand_dims, squeeze
from esat.ops.cast import cast
from esat.ops.contraction import matmul
from esat.ops.control import assert_
from esat.ops.inference.batching import repeated

_LEAST = -1
"""No size is less, nor the number that stands for one that is to be found."""


def _blockwise(step: PyTensorStep) -> Any:
    """Products and functions of matrices take batches themselves; other ops are applied to an element, and
    that graph is made one of the batch."""
    core, name = step.op.core_op, type(step.op.core_op).__name__
    if name == "Dot":
        return matmul(*step.operands)
    if name in MATRIX_RULES:
        return MATRIX_RULES[name](replace(step, op=core))
    batch = step.node.inputs[0].type.ndim - len(step.op.inputs_sig[0])
    if name == "Subtensor" and all(one.type.ndim == 0 for one in step.node.inputs[1:]):
        return step.first[(*[slice(None)] * batch, *index_of(core, step.operands[1:]))]
    operands = _without_batches_of_sizes(name, step.operands, batch)
    elements = [one.type.clone(shape=one.type.shape[batch:])() for one in step.node.inputs]
    results = _in_batches(step, core.make_node(*elements), operands, batch)
    return [_of_all(one, step.operands, batch) for one in results]


def _without_batches_of_sizes(name: str, operands: Sequence[Variable], batch: int) -> list[Variable]:
    """Operands, of those that are sizes one for the whole batch: all are equal, or there would be no array of
    the results."""
    begin = {"ARange": 0, "Alloc": 1, "Convolve1d": 2, "Reshape": 1}.get(name)
    if begin is None or (name == "ARange" and any(one.tensor_type.kind == "f" for one in operands)):
        return list(operands)
    axes = tuple(range(batch))
    found = list(operands[:begin])
    if name == "Reshape" and not all(operands[1].tensor_type.broadcastable[:batch]):
        operands = [operands[0], _all_sizes(operands[0], operands[1], batch)]
    for operand in operands[begin:]:
        if all(operand.tensor_type.broadcastable[:batch]):
            found.append(operand)
            continue
        sizes = cast(operand, "int64")
        common = reductions.max(sizes, axis=axes, keepdims=True, initial=_LEAST)
        equal = op_named("eq")(sizes, common)
        found.append(assert_(common, equal, message=f"{name}: sizes differ within a batch", error=ShapeError))
    return found


def _of_all(result: Variable, operands: Sequence[Variable], batch: int) -> Variable:
    """A result repeated along axes of a batch that only those operands have which are sizes."""
    sizes = list(sizes_of(result))
    repeated_axes = False
    for axis in range(batch):
        own = [one for one in operands if not one.tensor_type.broadcastable[axis]]
        if own and result.tensor_type.broadcastable[axis]:
            sizes[axis], repeated_axes = size_of(own[0], axis), True
    return alloc(result, *sizes) if repeated_axes else result


def _all_sizes(array: Variable, shape: Variable, batch: int) -> Variable:
    """Shapes along the last axis for elements of a batch, with a number for each size that is to be found."""
    count = element_count(array, range(batch, array.tensor_type.ndim))
    known = op_named("neg")(reductions.prod(shape, axis=-1, keepdims=True))
    rest = op_named("floor_div")(count, op_named("maximum")(known, 1))
    found: Variable = op_named("switch")(op_named("eq")(shape, _LEAST), rest, shape)
    return found


def _in_batches(step: PyTensorStep, node: Any, operands: Sequence[Variable], depth: int) -> list[Variable]:
    """The results of a node for operands with so many axes of batches in front."""
    if not depth:
        found = step.translate(node, operands)
        if any(isinstance(one.op, Foreign) for one in toposort(found, stop=set(operands))):
            raise NoRuleError(f"batches of {label(node.op)}")
        return found
    elements, batches = [], {}
    for operand in operands:
        type = operand.tensor_type
        if type.broadcastable[0]:
            known = constant(operand.data[0]) if isinstance(operand, Constant) else None
            elements.append(squeeze(operand, 0) if known is None else known)
            continue
        element = type.with_shape(type.shape[1:]).make_variable()
        elements.append(element)
        batches[element] = operand
    results = _in_batches(step, node, elements, depth - 1)
    if not batches:
        return [expand_dims(one, 0) for one in results]
    size = size_of(next(iter(batches.values())), 0)
    return [one if flag else repeated(one, size) for one, flag in vectorize(results, batches)]


RULES: dict[str, Rule] = {"Blockwise": _blockwise}
