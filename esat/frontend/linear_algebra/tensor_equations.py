"""Linear equations of arrays of any rank, after ``numpy.linalg``: as those of matrices."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from esat.errors import MatrixShapeError, ParameterError, describe
from esat.frontend.arrays.shaping import ravel
from esat.frontend.linear_algebra.linalg_functions import inv, solve
from esat.graph.op import as_variable
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import known_size, sizes_of
from esat.ops.arrays.view import reshape
from esat.ops.inference.axes import normalize_axes

__all__ = ["tensorinv", "tensorsolve"]


def _known(sizes: Sequence[Variable]) -> list[Any]:
    """Sizes as numbers, where they are known."""
    return [size if (number := known_size(size)) is None else number for size in sizes]


def _count(sizes: Sequence[Any]) -> Any:
    """The number of elements, as a number where it is known."""
    return functools.reduce(operator.mul, sizes, 1)


def _check_counts(name: str, operands: Sequence[Variable], reason: str, *counts: Any) -> None:
    """Sizes that are not known are compared at run time, by what is reshaped."""
    if len({count for count in counts if isinstance(count, int)}) > 1:
        raise MatrixShapeError(describe(name, [one.type for one in operands], reason))


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Variable:
    """``x`` with ``tensordot(a, x, x.ndim) = b``.

    Parameters
    ----------
    a
        Of shape ``b.shape + x.shape``, with as many elements in either part.
    b
        Of any shape.
    axes
        Those of ``a`` that are moved to the end first.

    Raises
    ------
    ShapeError
        When the parts have not as many elements, at run time where sizes are not known.
    LinearAlgebraError
        At run time, when ``a`` is singular.
    """
    matrix, right = as_variable(a), as_variable(b)
    if axes is not None:
        rank = matrix.tensor_type.ndim
        last = normalize_axes("tensorsolve", tuple(axes), rank)
        matrix = dimshuffle(matrix, (*(axis for axis in range(rank) if axis not in last), *last))
    sizes = _known(sizes_of(matrix))
    own, wanted = sizes[: right.tensor_type.ndim], sizes[right.tensor_type.ndim :]
    count = _count(wanted)
    reason = "the axes of b and those of the solution have not as many elements"
    _check_counts("tensorsolve", [matrix, right], reason, _count(own), count)
    return reshape(solve(reshape(matrix, (count, count)), ravel(right)), wanted)


def tensorinv(a: Any, ind: int = 2) -> Variable:
    """The inverse of ``a`` as a linear map from its last axes to its first ``ind`` ones.

    Raises
    ------
    ShapeError
        When the two groups of axes have not as many elements, at run time where sizes are not known.
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
    sizes = _known(sizes_of(matrix))
    first, last = sizes[:ind], sizes[ind:]
    count = _count(first)
    reason = "the first and the last axes have not as many elements"
    _check_counts("tensorinv", [matrix], reason, count, _count(last))
    return reshape(inv(reshape(matrix, (count, count))), (*last, *first))
