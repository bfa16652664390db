"""Loops for structured matrices where BLAS has none, compiled by numba through the kernel cache."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types

from esat.codegen import cache
from esat.codegen.cache import CompiledKernel
from esat.codegen.ground.target import Target
from esat.codegen.template import NUMBA_TYPES


def mirror(matrix: Any) -> None:
    """Copy what is below the diagonal of a square matrix to above it, by tiles of a cache line of float64."""
    size = matrix.shape[0]
    for top in range(0, size, 8):
        for left in range(0, top + 1, 8):
            for column in range(left, min(left + 8, size)):
                for row in range(max(top, column + 1), min(top + 8, size)):
                    matrix[column, row] = matrix[row, column]


def diagonal_matmul(diagonal: Any, operand: Any, output: Any) -> None:
    """``output = D @ operand`` for the matrix D with this diagonal."""
    rows, columns = operand.shape
    for row in range(rows):
        factor = diagonal[row]
        for column in range(columns):
            output[row, column] = factor * operand[row, column]


def matmul_diagonal(diagonal: Any, operand: Any, output: Any) -> None:
    """``output = operand @ D`` for the matrix D with this diagonal."""
    rows, columns = operand.shape
    for row in range(rows):
        for column in range(columns):
            output[row, column] = operand[row, column] * diagonal[column]


def tridiagonal_matmul(below: Any, diagonal: Any, above: Any, operand: Any, output: Any) -> None:
    """``output = T @ operand`` for the tridiagonal T of these diagonals."""
    rows, columns = operand.shape
    last = rows - 1
    for column in range(columns):
        output[0, column] = diagonal[0] * operand[0, column]
    if last > 0:
        for column in range(columns):
            output[0, column] += above[0] * operand[1, column]
    for row in range(1, last):
        before, here, after = below[row - 1], diagonal[row], above[row]
        for column in range(columns):
            output[row, column] = (
                before * operand[row - 1, column]
                + here * operand[row, column]
                + after * operand[row + 1, column]
            )
    if last > 0:
        for column in range(columns):
            output[last, column] = (
                below[last - 1] * operand[last - 1, column] + diagonal[last] * operand[last, column]
            )


def matmul_tridiagonal(below: Any, diagonal: Any, above: Any, operand: Any, output: Any) -> None:
    """``output = operand @ T`` for the tridiagonal T of these diagonals."""
    rows, columns = operand.shape
    last = columns - 1
    for row in range(rows):
        output[row, 0] = operand[row, 0] * diagonal[0]
        if last > 0:
            output[row, 0] += operand[row, 1] * below[0]
            for column in range(1, last):
                output[row, column] = (
                    operand[row, column - 1] * above[column - 1]
                    + operand[row, column] * diagonal[column]
                    + operand[row, column + 1] * below[column]
                )
            output[row, last] = operand[row, last - 1] * above[last - 1] + operand[row, last] * diagonal[last]


@functools.cache
def compiled(function: Callable[..., None], dtype: str, target: Target, *ranks: int) -> CompiledKernel:
    """A function of this module as machine code, for aligned C-contiguous arrays of one dtype.

    Raises
    ------
    CompileError
        When numba refuses it.
    """
    signature = types.void(*(types.Array(NUMBA_TYPES[dtype], rank, "C") for rank in ranks))
    options = cache.CompileOptions(target, noalias=(function.__name__,))
    source = f"from typing import Any\n\n\n{inspect.getsource(function)}"
    return cache.load_or_compile(source, function.__name__, signature, {}, options)
