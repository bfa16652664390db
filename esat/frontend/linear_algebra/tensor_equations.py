"""Linear equations of arrays of any rank, after ``numpy.linalg``: as those of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from esat.errors import MatrixShapeError, ParameterError, describe
from esat.frontend.arrays.shaping import ravel
from esat.frontend.linear_algebra.linalg_functions import inv, solve
from esat.graph.op import as_variable
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.view import reshape
from esat.ops.inference.axes import normalize_axes

__all__ = ["tensorinv", "tensorsolve"]


def _known(name: str, variable: Variable) -> tuple[int, ...]:
    shape = variable.tensor_type.shape
    if None in shape:
        raise MatrixShapeError(describe(name, [variable.type], "takes an array of known sizes"))
    return tuple(int(size) for size in shape if size is not None)


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Variable:
    """``x`` with ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a
        Of shape ``b.shape + x.shape``, known, with as many elements in either part.
    b
        Of any shape.
    axes
        Those of ``a`` that are moved to the end first.

    Raises
    ------
    ShapeError
        When the parts have not as many elements, or a size is not known.
    LinearAlgebraError
        At run time, when ``a`` is singular.
    """
    matrix, right = as_variable(a), as_variable(b)
    if axes is not None:
        rank = matrix.tensor_type.ndim
        last = normalize_axes("tensorsolve", tuple(axes), rank)
        matrix = dimshuffle(matrix, (*(axis for axis in range(rank) if axis not in last), *last))
    shape = _known("tensorsolve", matrix)
    wanted = shape[right.tensor_type.ndim :]
    count = math.prod(wanted)
    if math.prod(shape) != count * count:
        reason = "the axes of b and those of the solution have not as many elements"
        raise MatrixShapeError(describe("tensorsolve", [matrix.type, right.type], reason))
    return reshape(solve(reshape(matrix, (count, count)), ravel(right)), wanted)


def tensorinv(a: Any, ind: int = 2) -> Variable:
    """The inverse of ``a`` as a linear map from its last axes to its first ``ind`` ones.

    Raises
    ------
    ShapeError
        When the two groups of axes have not as many elements, or a size is not known.
    ParameterError
        When ``ind`` is not positive.
    LinearAlgebraError
        At run time, when ``a`` is singular.
    """
    matrix = as_variable(a)
    if matrix.tensor_type.ndim == 0:
        raise MatrixShapeError(describe("tensorinv", [matrix.type], "takes an array of one axis or more"))
    if ind <= 0:
        raise ParameterError(describe("tensorinv", [f"ind={ind!r}"], "ind is positive"))
    shape = _known("tensorinv", matrix)
    first, last = shape[:ind], shape[ind:]
    if math.prod(first) != math.prod(last):
        reason = "the first and the last axes have not as many elements"
        raise MatrixShapeError(describe("tensorinv", [matrix.type], reason))
    count = math.prod(first)
    return reshape(inv(reshape(matrix, (count, count))), (*last, *first))
