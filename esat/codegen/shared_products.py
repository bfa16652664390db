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
from esat.codegen.blas_calls import call_blas
from esat.codegen.blas_library import LETTERS, load_blas, one_thread
from esat.codegen.small_products import function_address, order_in_memory
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import default_threads, pool_address
from esat.codegen.threads.tasks import in_parallel
from esat.graph.op import Array

SMALL_PRODUCT = 10**6
"""Multiplications up to which OpenBLAS takes a product for a small one."""
SHARED_FROM = 1 << 19
"""Multiplications from which products are shared: some 20 microseconds for one thread."""
READ_FROM = 1 << 17
"""Elements of a matrix from which its product with a vector is shared."""
_READ_AT_ONCE = 1 << 15
_PARTS = 8
"""Parts there shall be at least; partial results, where a sum is cut into parts."""
_VECTOR = 16
_LEAST_STEP = 2 * _VECTOR

_PRODUCT = """
def some_rows(begin, end, blas, step, turned, alpha, left, left_step, right, right_step, beta, output):
    for part in range(begin, end):
        some = left[part * step : (part + 1) * step]
        sizes = right.shape[1], some.shape[0], right.shape[0]
        results = output[part * step :]
        call_blas(
            blas,
            (*turned, *sizes, alpha, right, right_step, some, left_step, beta, results, right.shape[1]),
        )


def by_rows(blas, step, turned, alpha, left, left_step, right, right_step, beta, output, pool, threads):
    units = (left.shape[0] + step - 1) // step
    in_parallel(
        pool, threads, units, 4, some_rows,
        (blas, step, turned, alpha, left, left_step, right, right_step, beta, output),
    )
"""

_SUM = """
def some_sums(begin, end, blas, step, turned, left, left_step, right, right_step, sums):
    inner = right.shape[0]
    length = ((inner + step - 1) // step + sums.shape[0] - 1) // sums.shape[0] * step
    for part in range(begin, end):
        output = sums[part]
        output[:] = zero
        for first in range(part * length, min((part + 1) * length, inner), step):
            some, others = left[:, first : first + step], right[first : first + step]
            sizes = right.shape[1], left.shape[0], others.shape[0]
            call_blas(
                blas,
                (*turned, *sizes, one, others, right_step, some, left_step, one, output, right.shape[1]),
            )


def by_sums(blas, step, turned, alpha, left, left_step, right, right_step, beta, output, sums, pool, threads):
    in_parallel(
        pool, threads, sums.shape[0], 1, some_sums,
        (blas, step, turned, left, left_step, right, right_step, sums),
    )
    for row in range(output.shape[0]):
        for column in range(output.shape[1]):
            total = sums[0, row, column]
            for part in range(1, sums.shape[0]):
                total += sums[part, row, column]
            kept = zero if beta == zero else beta * output[row, column]
            output[row, column] = alpha * total + kept
"""
"""Row-major matrices are the transposed column-major ones that BLAS takes, and ``(AB)' = B'A'``."""

_TYPES: Any = types
_Kernel = Callable[..., None]


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
    if rows * inner * columns < SHARED_FROM or left.dtype.kind != "f":
        return False
    step = _step(rows, inner * columns)
    depth = 0 if step else _step(inner, rows * columns)
    left_order, right_order, alone = order_in_memory(left), order_in_memory(right), one_thread()
    if not (step or depth) or left_order is None or right_order is None or alone is None:
        return False
    turned = right_order[0] == "F", left_order[0] == "F"
    number = left.dtype.type
    operands = turned, number(alpha), left, left_order[1], right, right_order[1], number(beta), output
    blas = function_address(f"{LETTERS[left.dtype.name]}gemm")
    count = default_threads() if threads is None else threads
    pool = pool_address(count)
    with alone:
        if step:
            _kernel("by_rows", left.dtype.name)(blas, step, *operands, pool, count)
        else:
            sums = np.empty((min(_PARTS, -(-inner // depth)), rows, columns), left.dtype)
            _kernel("by_sums", left.dtype.name)(blas, depth, *operands, sums, pool, count)
    return True


def _step(length: int, across: int) -> int:
    """Places of a long axis that make a part; 0 where they would be too few for it to be worth while."""
    most = SMALL_PRODUCT // across // _VECTOR * _VECTOR
    step = min(most, -(-length // (_PARTS * _VECTOR)) * _VECTOR)
    return step if step >= _LEAST_STEP and length > 2 * step else 0


@functools.cache
def _kernel(entry: str, dtype: str) -> _Kernel:
    load_blas()  # numba, once it loads a kernel, imports SciPy's BLAS for whatever core type that detects
    number, word = NUMBA_TYPES[dtype], types.int64
    operand, result = types.Array(number, 2, "A"), types.Array(number, 2, "C")
    sums = (types.Array(number, 3, "C"),) if entry == "by_sums" else ()
    turned = _TYPES.UniTuple(types.boolean, 2)
    signature = types.void(
        word, word, turned, number, operand, word, operand, word, number, result, *sums, word, word
    )
    scalar = np.dtype(dtype).type
    environment = {
        "in_parallel": in_parallel,
        "call_blas": call_blas,
        "zero": scalar(0),
        "one": scalar(1),
    }
    source = _SUM if entry == "by_sums" else _PRODUCT
    return cache.load_or_compile(source, entry, signature, environment).function
