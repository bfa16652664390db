"""Functions of ``numpy.linalg`` that are others than those of the same names in ``numpy``.

They are those of the array API standard: of the matrices in the last two axes, or of vectors along one.
"""

from __future__ import annotations

from typing import Any

from esat.errors import ShapeError, describe
from esat.frontend.elements import reductions
from esat.frontend.linear_algebra import linear
from esat.graph.op import as_variable
from esat.graph.variables import Variable
from esat.ops.arrays import diagonal as diagonals

__all__ = ["cross", "diagonal", "outer", "tensordot", "trace", "vecdot"]


def diagonal(x: Any, /, *, offset: int = 0) -> Variable:
    """Diagonal ``offset`` of the matrices in the last two axes, as the last axis of the result."""
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Variable:
    """The sum of diagonal ``offset`` of the matrices in the last two axes, in ``dtype`` if it is given."""
    return reductions.sum(diagonal(x, offset=offset), -1, dtype)


def outer(x1: Any, x2: Any, /) -> Variable:
    """All products of an element of one vector and an element of the other, as a matrix.

    Raises
    ------
    ShapeError
        For operands that are no vectors.
    """
    first, second = as_variable(x1), as_variable(x2)
    if first.tensor_type.ndim != 1 or second.tensor_type.ndim != 1:
        raise ShapeError(describe("outer", [first.type, second.type], "takes vectors"))
    return linear.outer(first, second)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """Vector products of the vectors of three elements along ``axis``; other axes broadcast.

    Raises
    ------
    ShapeError
        When the size of the axis is not 3; at run time, where it was not known.
    """
    for operand in map(as_variable, (x1, x2)):
        shape = operand.tensor_type.shape
        if -len(shape) <= axis < len(shape) and shape[axis] == 2:
            raise ShapeError(describe("cross", [operand.type], "vectors have 2 elements, not 3"))
    return linear.cross(x1, x2, axis=axis)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Variable:
    """Sum of products along one axis, the first operand's conjugated; other axes broadcast."""
    return linear.vecdot(x1, x2, axis)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Variable:
    """Sum of products over pairs of axes, see :func:`esat.tensordot`."""
    return linear.tensordot(x1, x2, axes)
