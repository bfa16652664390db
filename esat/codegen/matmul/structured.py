"""Routines for products with structured matrices: what BLAS has for them, and loops for the rest.

An operand that breaks what the op's name promises gives an undefined product. Only sizes are looked at:
what is not square after all, or lies unaligned in memory, is multiplied as any matrix.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.cache import CompiledKernel
from esat.codegen.ground.blas_library import LETTERS, blas_function, one_thread
from esat.codegen.ground.target import Target
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import granted_threads
from esat.graph.op import Array
from esat.ops.linalg.structured import StructuredProduct


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


Routine: TypeAlias = Callable[..., Any]
"""Called as ``routine(*operands, output)``; fills the C-contiguous output and returns nothing of use. For
``gemm`` in place the output is the array that it adds to, of any layout, and no operand."""

WOKEN_FROM = 1 << 12
"""Multiplications from which OpenBLAS may wake its threads."""
SHARED_FROM = 1 << 28
"""Multiplications from which its threads are worth waking, some milliseconds for one: where other processes
have a processor, waiting for a thread takes four milliseconds, a thousand times as long as short products."""
SHARED_FROM_VECTOR = 1 << 24
"""The same for products with a vector, which memory sets the pace of: elements of the matrix."""


def structured_routine(
    op: StructuredProduct, dtype: str, target: Target, threads: int | None = None
) -> Routine:
    """The routine of a structured product of matrices of a dtype.

    Sizes alone decide whether the library's threads share the work: results differ by rounding then.

    Parameters
    ----------
    target
        What its own loops are compiled for.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """
    routine = _routine(op, dtype, target)
    if op.structure in ("diagonal", "tridiagonal"):  # no products of the library's
        return routine
    return functools.partial(_in_few_threads, routine, threads)


def _in_few_threads(
    routine: Routine, threads: int | None, first: Array, second: Array, output: Array
) -> None:
    """Compute in the calling thread alone where the library's threads would not pay, or must not be used."""
    work = first.size * output.shape[1]
    shared_from = SHARED_FROM_VECTOR if 1 in output.shape else SHARED_FROM
    if work < WOKEN_FROM or (work >= shared_from and granted_threads(threads) > 1):
        routine(first, second, output)
        return
    with one_thread() or nullcontext():
        routine(first, second, output)


def _routine(op: StructuredProduct, dtype: str, target: Target) -> Routine:
    letter = LETTERS[dtype]
    if op.structure == "gram":
        syrk = blas_function(f"{letter}syrk")
        return functools.partial(_gram, syrk, compiled(mirror, dtype, target, 2).function)
    multiply: Routine
    if op.structure in ("lower", "upper"):
        trmm, trmv = (blas_function(letter + name) for name in ("trmm", "trmv"))
        multiply = functools.partial(_triangular, trmm, trmv, op.structure == "lower")
    elif op.structure == "symmetric":
        multiply = functools.partial(_symmetric, blas_function(f"{letter}symv"))
    elif op.structure == "diagonal":
        multiply = _diagonal
    else:
        function = matmul_tridiagonal if op.side == "right" else tridiagonal_matmul
        multiply = functools.partial(_tridiagonal, compiled(function, dtype, target, 1, 1, 1, 2, 2).function)
    return functools.partial(_one_sided, multiply, op.side == "right")


def _one_sided(multiply: Routine, right: bool, first: Array, second: Array, output: Array) -> None:
    """``multiply(matrix, other, right, output)``, where the matrix is square and there is something to do."""
    matrix, other = (second, first) if right else (first, second)
    if not output.size:
        return
    if matrix.shape[0] == matrix.shape[1] and matrix.flags.aligned and other.flags.aligned:
        multiply(matrix, other, right, output)
    else:
        with np.errstate(all="ignore"):
            np.matmul(first, second, out=output)


def _triangular(
    trmm: Routine, trmv: Routine, lower: bool, matrix: Array, other: Array, right: bool, output: Array
) -> None:
    """In place, in a copy of the other operand.

    Row-major matrices are the transposed column-major ones: ``(LB)' = B'L'``, so that sides change, and the
    triangle of an array read as its transpose is the other one.
    """
    output[...] = other
    transposed = matrix.flags.c_contiguous
    stored = matrix.T if transposed else matrix
    if output.size == matrix.shape[0]:  # one column or one row
        vector = output.reshape(-1)
        trmv(stored, vector, 0, 1, lower != transposed, int(transposed != right), 0, 1)
    else:
        trmm(1.0, stored, output.T, int(not right), lower != transposed, int(not transposed), 0, 1)


def _symmetric(symv: Routine, matrix: Array, other: Array, right: bool, output: Array) -> None:
    """A symmetric matrix times a column, or a row times it."""
    stored = matrix.T if matrix.flags.c_contiguous else matrix
    symv(1.0, stored, other.reshape(-1), 0.0, output.reshape(-1), 0, 1, 0, 1, 0, 1)


def _diagonal(matrix: Array, other: Array, right: bool, output: Array) -> None:
    factors = np.diagonal(matrix)
    with np.errstate(all="ignore"):
        np.multiply(other, factors if right else factors[:, None], out=output)


def _tridiagonal(loops: Routine, matrix: Array, other: Array, right: bool, output: Array) -> None:
    diagonals = [np.ascontiguousarray(np.diagonal(matrix, offset)) for offset in (-1, 0, 1)]
    loops(*diagonals, np.ascontiguousarray(other), output)


def _gram(syrk: Routine, reflect: Routine, left: Array, right: Array, output: Array) -> None:
    """``left @ left.T``: one triangle, and its mirror image."""
    if not left.size:
        output.fill(0)
    elif left.flags.c_contiguous:
        syrk(1.0, left.T, 0.0, output.T, 1, 0, 1)
        reflect(output)
    else:
        syrk(1.0, left, 0.0, output.T, 0, 0, 1)
        reflect(output)
