"""Products of large matrices in parts that several threads share, each part by BLAS in one thread.

OpenBLAS's own threads wait for one another several times a product: where another process has a processor,
products take up to thirty times as long. Helpers of the pool are not waited for before they begin. Parts
follow from the shapes alone, so that results are the same bits in any number of threads. They are small
enough for OpenBLAS's kernels that read operands where they are, without copying them into blocks first,
where it has such kernels: that takes half to three quarters of the time.
"""

from __future__ import annotations

import functools
import struct

import numpy as np

from esat.base.native import Library
from esat.base.native.annotations import address_of
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.matmul.product_tasks import PLAIN, TRANSPOSED, some_rows, some_sums
from esat.codegen.matmul.small_products import function_address, order_in_memory
from esat.codegen.threads import granted_threads
from esat.codegen.threads.choice import Choices
from esat.codegen.threads.thread_pool import run_task
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
"""Numbers that the steps of a part are multiples of: float32 in the longest vectors."""
_LEAST_STEP = 2 * _VECTOR
"""Numbers of a step at least; products with fewer are not shared."""

_WORDS = {"f": struct.Struct("18qf4xf4x"), "d": struct.Struct("18qdd")}
"""What the data of a task are packed by: see :mod:`.product_tasks`."""

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
    dtype, (rows, inner), columns = left.dtype, left.shape, right.shape[1]
    width, letter = dtype.itemsize, _LETTERS[dtype.char]
    letters = [TRANSPOSED if order == "F" else PLAIN for order in (left_order[0], right_order[0])]
    target = output if by_rows else np.zeros((_PARTS, rows, columns), dtype)
    scales = (alpha, beta) if by_rows else (1.0, 1.0)
    data = _WORDS[dtype.char].pack(
        function_address(letter + ("gemv" if columns == 1 else "gemm")),
        *(*letters, columns == 1, rows, inner, columns, step, _PARTS),
        *(left_order[1], *left.strides, right_order[1], right.strides[0], width * columns),
        *(address_of(left), address_of(right), address_of(target), *scales),
    )
    task, (units, turns) = _task(by_rows), (-(-rows // step), 4) if by_rows else (_PARTS, 1)
    with alone:
        if threads == 1:
            run_task(task, data, units, turns, 0, 1)
        else:
            choice = _choices.of((dtype.char, left.shape, columns, *letters, threads))
            choice.run(threads, run_task, task, data, units, turns)
    if not by_rows:
        _add_up(target, alpha, beta, output)
    return True


def _add_up(parts: Array, alpha: float, beta: float, output: Array) -> None:
    """``output = alpha * parts.sum(axis=0) + beta * output``."""
    if alpha == 1.0 and beta == 0.0:
        np.add.reduce(parts, axis=0, out=output)
        return
    total = np.add.reduce(parts, axis=0)
    total *= output.dtype.type(alpha)
    if beta:
        total += output.dtype.type(beta) * output
    output[...] = total


_LIBRARY = Library((some_rows, some_sums))


@functools.cache
def _task(by_rows: bool) -> int:
    return _LIBRARY.address(some_rows if by_rows else some_sums)
