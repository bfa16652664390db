"""Between which numbers integers are, whatever the inputs of a program: of labels, remainders and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from esat.graph.types import TensorType
from esat.graph.variables import Apply, Constant, Variable
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.arrays.view import Reshape
from esat.ops.cast import Cast
from esat.ops.index.advanced import AdvancedSubtensor
from esat.ops.index.basic import Subtensor
from esat.ops.reduction import Reduction

Bounds: TypeAlias = tuple[int, int]
"""The least and the greatest number that there may be."""
MOST_STEPS = 50
"""Nodes that are looked through, one after the other."""


def integer_bounds(variable: Variable, steps: int = MOST_STEPS) -> Bounds:
    """Bounds of integers or booleans: those of the dtype, or closer ones.

    Parameters
    ----------
    variable
        Of any shape, and of a dtype of integers or booleans.
    steps
        How many nodes may be looked through.
    """
    if isinstance(variable, Constant) and variable.data.size:
        return int(variable.data.min()), int(variable.data.max())
    dtype = variable.tensor_type.numpy_dtype
    least, greatest = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if variable.owner is not None and steps:
        found = _of_node(variable.owner, steps - 1)
        if found is not None and least <= found[0] and found[1] <= greatest:  # else it wraps around
            return found
    return least, greatest


def _of_node(node: Apply, steps: int) -> Bounds | None:
    op, operands = node.op, node.inputs
    if isinstance(op, Reduction) and op.name in ("argmax", "argmin"):
        sizes = [operands[0].tensor_type.shape[axis] for axis in op.axes]
        return (0, sizes[0] - 1) if len(sizes) == 1 and sizes[0] else None
    if any(not isinstance(one.type, TensorType) or one.tensor_type.kind not in "biu" for one in operands):
        return None
    if isinstance(op, Cast | DimShuffle | Reshape | Subtensor | AdvancedSubtensor):
        return integer_bounds(operands[0], steps)
    return (
        _COMBINED[op.name](*(integer_bounds(one, steps) for one in operands))
        if op.name in _COMBINED
        else None
    )


def _remainder(number: Bounds, divisor: Bounds) -> Bounds | None:
    return (0, divisor[1] - 1) if divisor[0] > 0 else None


_COMBINED: Mapping[str, Callable[..., Bounds | None]] = {
    "mod": _remainder,
    "minimum": lambda one, other: (min(one[0], other[0]), min(one[1], other[1])),
    "maximum": lambda one, other: (max(one[0], other[0]), max(one[1], other[1])),
    "clip": lambda one, low, high: (min(max(one[0], low[0]), high[0]), min(max(one[1], low[1]), high[1])),
}
