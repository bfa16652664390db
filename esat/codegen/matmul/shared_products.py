"""Products of large matrices in parts that several threads share, each part by BLAS in one thread.

OpenBLAS's own threads wait for one another several times a product: where another process has a processor,
products take up to thirty times as long. Helpers of the pool are not waited for before they begin. Parts
follow from the shapes alone, so that results are the same bits in any number of threads. They are small
enough for OpenBLAS's kernels that read operands where they are, without copying them into blocks first,
where it has such kernels: that takes half to three quarters of the time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.ground.blas_calls import call_blas
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.matmul.small_products import function_address, order_in_memory
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import granted_threads
from esat.codegen.threads.choice import Choices
from esat.codegen.threads.tasks import in_parallel
from esat.graph.op import Array

SMALL_PRODUCT = 10**6
"""Multiplications up to which OpenBLAS takes a product for a small one."""
SHARED_FROM = 1 << 19
"""Multiplications from which products of matrices are shared: some 20 microseconds for one thread."""
READ_FROM = 1 << 19
"""Elements of a matrix from which its product with a vector is shared: 30 to 60 microseconds."""
_READ_AT_ONCE = 1 << 17
"""Elements of a matrix that a part of such a product reads, where that leaves enough parts."""
_LEAST_ROWS, _LEAST_PIECE = 8, 512
"""Rows that are read at once, as BLAS does; elements of a column that are, where columns lie in one piece."""
_PARTS = 8
"""Parts there shall be at least; partial results, where a sum is cut into parts."""
_LETTERS = {"f": "s", "d": "d"}
"""The first letter of BLAS's functions by the character of a dtype: asking for its name takes as long as half
of a call."""
_VECTOR = 16
_LEAST_STEP = 2 * _VECTOR

_OF_MATRICES = """
def multiply(blas, transposed, alpha, left, left_step, right, right_step, beta, output):
    columns, sizes = right.shape[1], (left.shape[0], right.shape[0])
    call_blas(
        blas,
        (*transposed, columns, *sizes, alpha, right, right_step, left, left_step, beta, output, columns),
    )
"""
"""Row-major matrices are the transposed column-major ones that BLAS takes, and ``(AB)' = B'A'``."""

_WITH_A_COLUMN = """
def multiply(blas, transposed, alpha, left, left_step, right, right_step, beta, output):
    sizes = left.shape if transposed[1] else left.shape[::-1]  # as columns are stored
    call_blas(
        blas, (not transposed[1], *sizes, alpha, left, left_step, right, right_step, beta, output, 1)
    )
"""

_BY_ROWS = """

def some_rows(begin, end, blas, step, transposed, alpha, left, left_step, right, right_step, beta, output):
    for part in range(begin, end):
        some = left[part * step : (part + 1) * step]
        multiply(blas, transposed, alpha, some, left_step, right, right_step, beta, output[part * step :])


def product(blas, step, transposed, alpha, left, left_step, right, right_step, beta, output, pool, threads):
    units = (left.shape[0] + step - 1) // step
    in_parallel(
        pool, threads, units, 4, some_rows,
        (blas, step, transposed, alpha, left, left_step, right, right_step, beta, output),
    )
"""

_BY_SUMS = """

def some_sums(begin, end, blas, step, transposed, left, left_step, right, right_step, sums):
    inner = right.shape[0]
    length = ((inner + step - 1) // step + sums.shape[0] - 1) // sums.shape[0] * step
    for part in range(begin, end):
        output = sums[part]
        output[:] = zero
        for first in range(part * length, min((part + 1) * length, inner), step):
            some, others = left[:, first : first + step], right[first : first + step]
            multiply(blas, transposed, one, some, left_step, others, right_step, one, output)


def product(
    blas, step, transposed, alpha, left, left_step, right, right_step, beta, output, sums, pool, threads
):
    in_parallel(
        pool, threads, sums.shape[0], 1, some_sums,
        (blas, step, transposed, left, left_step, right, right_step, sums),
    )
    for row in range(output.shape[0]):
        for column in range(output.shape[1]):
            total = sums[0, row, column]
            for part in range(1, sums.shape[0]):
                total += sums[part, row, column]
            kept = zero if beta == zero else beta * output[row, column]
            output[row, column] = alpha * total + kept
"""

_TYPES: Any = types
_choices = Choices()
"""By sizes of products. All functions share them: what other processes do is the same for all."""


def share_product(
    alpha: float, left: Array, right: Array, beta: float, output: Array, threads: int | None
) -> bool:
    """``output = alpha * left @ right + beta * output`` in parts; whether it was done.

    It is not done where one thread takes less, where the product has no long axis, where rows or columns of
    an operand do not lie in one piece each, or where SciPy's BLAS cannot be kept to one thread.

    Parameters
    ----------
    left, right
        Matrices of shapes (m, k) and (k, n) of dtype float32 or float64.
    output
        C-contiguous, of shape (m, n), sharing memory with neither operand.
    threads
        The most it may use; None for what :func:`default_threads` says.
    """
    (rows, inner), columns = left.shape, right.shape[1]
    if rows * inner * columns < SHARED_FROM or left.dtype.char not in _LETTERS:
        return False
    count = granted_threads(threads)
    step = _step(rows, inner * columns)
    if step:
        return _share(alpha, left, right, beta, output, count, step, by_rows=True)
    step = _step(inner, rows * columns)
    return step > 0 and _share(alpha, left, right, beta, output, count, step, by_rows=False)


def _step(length: int, across: int) -> int:
    """Places of a long axis that make a part; 0 where they would be too few for it to be worth while."""
    most = SMALL_PRODUCT // across // _VECTOR * _VECTOR
    step = min(most, -(-length // (_PARTS * _VECTOR)) * _VECTOR)
    return step if step >= _LEAST_STEP and length > 2 * step else 0


def share_vector_product(
    alpha: float, matrix: Array, vector: Array, beta: float, output: Array, threads: int | None
) -> bool:
    """``output = alpha * matrix @ vector + beta * output`` in parts; whether it was done.

    That is so under conditions like those of :func:`share_product`, and in several threads only: one reads a
    matrix up to a tenth faster as a whole. So results in one thread may differ by rounding.

    Parameters
    ----------
    matrix
        Of shape (m, k) and dtype float32 or float64.
    vector, output
        Of shapes (k,) and (m,); the output is contiguous and shares memory with neither operand.
    threads
        The most it may use; None for what :func:`default_threads` says.
    """
    count = granted_threads(threads)
    if matrix.size < READ_FROM or matrix.dtype.char not in _LETTERS or count == 1:
        return False
    rows, inner = matrix.shape
    # Rows and columns that lie in one piece are read whole where there are enough of them.
    least = _LEAST_ROWS if matrix.strides[0] >= matrix.strides[1] else _LEAST_PIECE
    by_rows = rows >= _PARTS * least
    length, across = (rows, inner) if by_rows else (inner, rows)
    step = max(least if by_rows else 1, min(_READ_AT_ONCE // across, -(-length // _PARTS)))
    return _share(alpha, matrix, vector[:, None], beta, output[:, None], count, step, by_rows)


def _share(
    alpha: float,
    left: Array,
    right: Array,
    beta: float,
    output: Array,
    threads: int,
    step: int,
    by_rows: bool,
) -> bool:
    """A product in parts of ``step`` rows of the left matrix or, if not by rows, of so many columns of it."""
    left_order, right_order, alone = order_in_memory(left), order_in_memory(right), one_thread()
    if left_order is None or right_order is None or alone is None:
        return False
    dtype, columns = left.dtype, right.shape[1]
    transposed = right_order[0] == "F", left_order[0] == "F"
    operands = (
        transposed,
        dtype.type(alpha),
        left,
        left_order[1],
        right,
        right_order[1],
        dtype.type(beta),
        output,
    )
    partial = () if by_rows else (np.empty((_PARTS, *output.shape), dtype),)
    blas = function_address(_LETTERS[dtype.char] + ("gemv" if columns == 1 else "gemm"))
    kernel = _kernel(dtype.char, by_rows, columns == 1)
    if threads == 1:
        with alone:
            kernel(blas, step, *operands, *partial, 0, 1)
        return True
    choice = _choices.of((dtype.char, left.shape, columns, transposed, threads))
    with alone:
        choice.run(threads, kernel, blas, step, *operands, *partial)
    return True


@functools.cache
def _kernel(character: str, by_rows: bool, is_column: bool) -> Callable[..., None]:
    scalar = np.dtype(character).type
    number, word = NUMBA_TYPES[np.dtype(character).name], types.int64
    operand, result = types.Array(number, 2, "A"), types.Array(number, 2, "C")
    partial = () if by_rows else (types.Array(number, 3, "C"),)
    transposed = _TYPES.UniTuple(types.boolean, 2)
    signature = types.void(
        word, word, transposed, number, operand, word, operand, word, number, result, *partial, word, word
    )
    environment = {
        "in_parallel": in_parallel,
        "call_blas": call_blas,
        "zero": scalar(0),
        "one": scalar(1),
    }
    source = (_WITH_A_COLUMN if is_column else _OF_MATRICES) + (_BY_ROWS if by_rows else _BY_SUMS)
    return cache.load_or_compile(source, "product", signature, environment).function
