"""Constant folding: what depends on Constants alone is computed at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from esat.errors import EsatError
from esat.graph.op import Family, Op
from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable

_NEVER = (Family.RANDOM, Family.CONTROL, Family.SPARSE)
GROWTH_LIMIT = 1 << 16
"""Bytes up to which a folded result may be larger than what it was computed from."""


def constant_of(variable: Variable) -> Constant | None:
    """The Constant that a Variable is, be it permuted, broadcast or cast; None where it is none."""
    steps: list[Apply] = []
    while not isinstance(variable, Constant):
        node = variable.owner
        if node is None or len(node.inputs) != 1 or len(node.outputs) != 1:
            return None
        steps.append(node)
        variable = node.inputs[0]
    for node in reversed(steps):
        folded = fold(node, [variable])
        if folded is None:
            return None
        (variable,) = folded
    return variable


def fold(node: Apply, inputs: Sequence[Variable]) -> tuple[Constant, ...] | None:
    """The outputs of a node as Constants, or None where they are not to be folded.

    A node is left alone when an input is not a Constant, when its op is impure, when the result
    would take much more memory than its inputs, and when computing it fails: then the failure
    belongs to run time, with the user's line.
    """
    constants = [variable for variable in inputs if isinstance(variable, Constant)]
    if len(constants) < len(inputs) or (node.op.family in _NEVER and not _is_check(node.op)):
        return None
    if any(not isinstance(variable.type, TensorType) for variable in (*inputs, *node.outputs)):
        return None
    given = sum(constant.data.nbytes for constant in constants)
    try:
        if _least_bytes(node, constants) > given + GROWTH_LIMIT:
            return None
        results = node.op.perform([constant.data for constant in constants])
    except (EsatError, ValueError, ArithmeticError, IndexError):
        return None
    if sum(result.nbytes for result in results) > given + GROWTH_LIMIT:
        return None
    return tuple(
        Constant(TensorType(output.tensor_type.dtype, shape=np.shape(result)), result, output.name)
        for output, result in zip(node.outputs, results, strict=True)
    )


def _is_check(op: Op) -> bool:
    """Whether an op hands an operand on once it has seen that it may, such as an assertion: that holds or
    fails for good where it is about constants."""
    return op.family is Family.CONTROL and op.view_map == {0: (0,)}


def _least_bytes(node: Apply, constants: Sequence[Constant]) -> int:
    """How much memory the results need, as far as their types tell: they are not to be made to find out."""
    types = [type for type in node.op.infer_types(constants) if isinstance(type, TensorType)]
    sizes = [type.numpy_dtype.itemsize * prod(size or 0 for size in type.shape) for type in types]
    return sum(sizes)
