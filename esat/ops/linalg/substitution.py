"""Substitution for many right sides at once, in the order of rows in which arrays are.

Row by row ``x`` with ``a x = b`` is column by column ``y`` with ``y a' = b'``, which BLAS solves from the
right: nothing is transposed, and it is faster than from the left, where ``x`` is column by column, unless
``b`` has hardly any columns.
"""

from __future__ import annotations

import numpy as np

from esat.base.scipy_extensions import blas
from esat.graph.op import Array

BY_ROWS_FROM = 8
"""Right sides from which BLAS works by rows."""


def substituted(
    matrix: Array, sides: Array, lower: bool, transpose: bool = False, unit_diagonal: bool = False
) -> Array:
    """Solutions for a triangular matrix, or for its transpose, by rows; infinite or NaN for a zero on the
    diagonal."""
    check_sizes(matrix, sides)
    dtype = np.result_type(matrix, sides, np.float32)
    trsm = blas("trsm", dtype)
    if matrix.flags.c_contiguous:  # its transpose is by columns, as BLAS takes it, and the other triangle
        matrix, lower, transpose = matrix.T, not lower, not transpose
    result: Array = np.array(sides, dtype, order="C")
    form = {"side": 1, "lower": lower, "trans_a": not transpose, "diag": unit_diagonal}
    trsm(1.0, matrix, result.T, **form, overwrite_b=1)
    return result


def check_sizes(matrix: Array, sides: Array) -> None:
    """Raise ValueError where a matrix is not square, or has not as many rows as right sides."""
    if not matrix.shape[0] == matrix.shape[1] == sides.shape[0]:
        raise ValueError(f"{matrix.shape[0]} equations do not fit right sides of {sides.shape[0]} rows")


def refuse_singular(triangle: Array) -> None:
    """Raise ``numpy.linalg.LinAlgError`` for a zero on the diagonal, as LAPACK does."""
    zeros = np.flatnonzero(np.diagonal(triangle) == 0)
    if len(zeros):
        raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {zeros[0]}")
