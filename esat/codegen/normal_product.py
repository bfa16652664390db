"""``a' (a x)`` for a column ``x``: each row of the matrix is used twice while it is in cache.

Two products with a vector read a matrix twice, and memory sets their pace. This kernel takes a few rows at a
time: their products with ``x`` say which multiples of these same rows belong to the result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.blas_library import load_blas
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import granted_threads, pool_address
from esat.codegen.threads.tasks import in_parallel
from esat.codegen.vector_math.reduction import reassociating_multiply_add
from esat.graph.op import Array
from esat.ops.linalg.normal import NORMAL_PRODUCT

ROWS = 8
"""Rows that are used at a time: so many factors, and as much of the rows, fit into registers."""
PARTS = 8
"""Parts that the rows are cut into, whatever the threads: results do not depend on how many there are."""
SHARED_FROM = 1 << 17
"""Elements from which several threads share the parts: about 20 microseconds for one."""

_SOURCE = """
def some_parts(begin, end, matrix, vector, sums):
    rows, columns = matrix.shape
    for part in range(begin, end):
        output = sums[part]
        for column in range(columns):
            output[column] = 0
        first = part * rows // sums.shape[0]
        last = (part + 1) * rows // sums.shape[0]
        for row in range(first, last - {after}, {rows}):
            {names} = zero
            for column in range(columns):
                factor = vector[column]
                {products}
            for column in range(columns):
                total = output[column]
                {multiples}
                output[column] = total
        for row in range(last - (last - first) % {rows}, last):
            t0 = zero
            for column in range(columns):
                t0 = add(t0, matrix[row, column], vector[column])
            for column in range(columns):
                output[column] = add(output[column], t0, matrix[row, column])


def product(matrix, vector, sums, output, pool, threads):
    in_parallel(pool, threads, sums.shape[0], 1, some_parts, (matrix, vector, sums))
    for column in range(output.size):
        total = sums[0, column]
        for part in range(1, sums.shape[0]):
            total += sums[part, column]
        output[column] = total
"""


_LINE = "\n" + 16 * " "


def normal_routine(dtype: str, threads: int | None) -> Callable[[Array, Array, Array], None]:
    """The routine ``(matrix, operand, output)`` of ``matrix.T @ (matrix @ operand)``.

    Parameters
    ----------
    dtype
        float32 or float64.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """
    kernel = normal_kernel(dtype).function

    def multiply(matrix: Array, operand: Array, output: Array) -> None:
        one_pass = matrix.flags.c_contiguous and matrix.flags.aligned and operand.flags.aligned
        fits = operand.shape == (matrix.shape[1], 1) == output.shape
        if not (matrix.size and one_pass and fits):
            output[...] = NORMAL_PRODUCT.perform([matrix, operand])[0]
            return
        shared = granted_threads(threads)
        shared = shared if matrix.size >= SHARED_FROM else 1
        sums = np.empty((min(PARTS, matrix.shape[0]), matrix.shape[1]), dtype)
        vector = np.ascontiguousarray(operand).reshape(-1)
        kernel(matrix, vector, sums, output.reshape(-1), pool_address(shared), shared)

    return multiply


@functools.cache
def normal_kernel(dtype: str) -> cache.CompiledKernel:
    """The kernel ``(matrix, vector, sums, output, pool, threads)``.

    Its arrays are in C order and of shapes (m, n), (n,), (min(PARTS, m), n) and (n,). The pool is 0 for one
    thread.
    """
    load_blas()  # numba, once it loads a kernel, imports SciPy's BLAS for whatever core type that detects
    places = range(ROWS)
    source = _SOURCE.format(
        rows=ROWS,
        after=ROWS - 1,
        names=" = ".join(f"t{place}" for place in places),
        products=_LINE.join(f"t{n} = add(t{n}, matrix[row + {n}, column], factor)" for n in places),
        multiples=_LINE.join(f"total = add(total, matrix[row + {n}, column], t{n})" for n in places),
    )
    number, word = NUMBA_TYPES[dtype], types.int64
    matrix, vector = (types.Array(number, rank, "C") for rank in (2, 1))
    signature = types.void(matrix, vector, matrix, vector, word, word)
    environment = {
        "in_parallel": in_parallel,
        "add": reassociating_multiply_add,
        "zero": np.dtype(dtype).type(0),
    }
    options = cache.CompileOptions(noalias=("some_parts",))
    return cache.load_or_compile(source, "product", signature, environment, options)
