"""Norms of vectors and matrices, and what is computed from singular values, after ``numpy.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import AxisError, ParameterError, describe
from esat.frontend.arrays.shaping import moveaxis
from esat.frontend.elements import reductions
from esat.frontend.linear_algebra.linalg_functions import inv, slogdet, svdvals
from esat.graph.calls.arguments import flag_of
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.view import expand_dims
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axes, ordered_axes
from esat.ops.linalg.algebra import identity_like
from esat.ops.linalg.record import check_matrices, check_square, inexact_operands

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


def cond(x: Any, p: Any = None) -> Variable:
    """The condition number: the norm of ``x`` times that of its inverse.

    Parameters
    ----------
    x
        ``(..., m, n)``; square unless ``p`` is None, 2 or -2.
    p
        None or 2: largest singular value by the smallest; -2: the inverse of that; else as for :func:`norm`.

    Returns
    -------
    One number for each matrix; infinite for a singular one.
    """
    (matrix,) = inexact_operands("cond", [x])
    check_matrices("cond", [matrix])
    switch = op_named("switch")
    if p in (None, 2, -2):
        values = svdvals(matrix)
        first, last = values[..., 0], values[..., -1]
        ratio = op_named("div")(*((last, first) if p == -2 else (first, last)))
    else:
        check_square("cond", matrix, [matrix])
        # The inverse of a singular matrix is an error: that of another stands in its place.
        singular = expand_dims(op_named("eq")(slogdet(matrix)[0], 0), (-2, -1))
        regular = switch(singular, identity_like(matrix), matrix)
        inverse = switch(singular, np.inf, inv(regular))
        ratio = matrix_norm(matrix, ord=p) * matrix_norm(inverse, ord=p)
    unknown = reductions.any(op_named("isnan")(matrix), (-2, -1))
    infinite = op_named("logical_and")(op_named("isnan")(ratio), op_named("logical_not")(unknown))
    condition: Variable = switch(infinite, np.inf, ratio)
    return condition


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Variable:
    """Norm of vectors or matrices, as ``numpy.linalg.norm``.

    Parameters
    ----------
    x
        A Variable or array; integers are computed in float64.
    ord
        None: the Euclidean norm of all elements along ``axis``. Over one axis: a number p, inf, -inf or 0.
        Over two: "fro", "nuc", 1, -1 (column sums), inf, -inf (row sums), 2, -2 (singular values).
    axis
        One axis, two, or None: then all, of which there are one or two if ``ord`` is given.
    keepdims
        Whether the axes stay with size 1.

    Raises
    ------
    AxisError
        For an axis out of range, or ``ord`` over more than two axes.
    ParameterError
        For an ``ord`` that is no norm of so many axes.
    """
    variable = as_variable(x)
    rank = variable.tensor_type.ndim
    axes = tuple(range(rank)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if ord is None and (axis is None or len(axes) == 2):
        return reductions.norm(variable, None, tuple(axes), keepdims)
    if len(axes) == 1:
        return vector_norm(variable, axes[0], keepdims, 2 if ord is None else ord)
    if len(axes) != 2:
        raise AxisError(describe("norm", [variable.type], f"ord={ord!r} is a norm of one axis or two"))
    first, second = ordered_axes("norm", axes, rank)
    kept = matrix_norm(moveaxis(variable, (first, second), (-2, -1)), True, ord)
    restored = moveaxis(kept, (-2, -1), (first, second))
    order = tuple(index for index in range(rank) if index not in (first, second))
    return restored if keepdims else dimshuffle(restored, order)


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Variable:
    """Vector norm over an axis, the elements along several, or all; ``ord`` a number p, inf, -inf or 0."""
    variable = as_variable(x)
    if isinstance(ord, str) or ord is None:
        raise ParameterError(describe("vector_norm", [variable.type], f"ord={ord!r} is no norm of vectors"))
    axes = normalize_axes("vector_norm", axis, variable.tensor_type.ndim)
    real = cast(variable, "float64") if variable.tensor_type.kind in "biu" else variable
    return reductions.norm_over(real, ord, axes, keepdims)


def matrix_norm(x: Any, keepdims: bool = False, ord: Any = "fro") -> Variable:
    """Norm of the matrices in the last two axes; ``ord`` as for :func:`norm` over two axes."""
    variable, keepdims = as_variable(x), flag_of("matrix_norm", "keepdims", keepdims)
    if variable.tensor_type.ndim < 2:
        raise AxisError(describe("matrix_norm", [variable.type], "takes matrices, in the last two axes"))
    rank = variable.tensor_type.ndim
    rows, columns = rank - 2, rank - 1
    if ord in ("fro", None):
        return reductions.norm(variable, "fro", (rows, columns), keepdims)
    if ord in (2, -2, "nuc"):
        combine = reductions.sum if ord == "nuc" else reductions.max if ord == 2 else reductions.min
        single = combine(svdvals(variable), -1)
        return dimshuffle(single, (*range(rank - 2), "x", "x")) if keepdims else single
    if ord not in (1, -1, np.inf, -np.inf):
        raise ParameterError(describe("matrix_norm", [variable.type], f"ord={ord!r} is no norm of matrices"))
    real = cast(variable, "float64") if variable.tensor_type.kind in "biu" else variable
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = reductions.sum(op_named("abs")(real), summed, None, True)
    extreme = (reductions.max if ord > 0 else reductions.min)(sums, compared, True)
    return extreme if keepdims else dimshuffle(extreme, tuple(range(rank - 2)))
