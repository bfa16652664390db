"""Products of sparse matrices and narrow dense ones, by kernels made for the number of columns.

A row of the dense operand is a few vector registers wide, and so is a row of the result. By rows (CSR), that
of the result stays in registers while it is summed; by columns (CSC), that of the operand does while it is
added to many. SciPy's loops, which serve any number of columns, load and store both for every stored value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.blas_library import load_blas
from esat.codegen.sparse_rows import add_column_of_product, row_of_product
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads import default_threads, pool_address
from esat.codegen.threads.tasks import in_parallel
from esat.graph.op import Array
from esat.graph.sparse_type import Format
from esat.ops.sparse.products import StructuredDot, Usmm

WIDEST = 32
"""Columns of a dense operand up to which a row of the result stays in registers."""
LEAST_WORK = 1 << 14
"""Multiplications from which a compiled kernel is worth its loading."""
SHARED_FROM = 1 << 23
"""Multiplications from which several threads share the rows: a millisecond or two for one. A thread that has
begun and loses its processor to another process keeps the others waiting longer than such a product takes."""
_TURNS = 4
"""Parts of the rows for each thread; rows store different numbers of values."""
_DTYPES = ("float32", "float64")

_BY_ROWS = """
def some_rows(begin, end, pointers, indices, values, dense, alpha, added, output):
    sparse = (pointers, indices, values)
    for row in range(begin, end):
        row_of_product(row, sparse, dense, alpha, added, output, {width}, {adds})


def product(pointers, indices, values, dense, alpha, added, output, pool, threads):
    arguments = (pointers, indices, values, dense, alpha, added, output)
    in_parallel(pool, threads, output.shape[0], {turns}, some_rows, arguments)
"""
# Columns add to the same rows: one thread takes them all.
_BY_COLUMNS = """
def product(pointers, indices, values, dense, alpha, added, output, pool, threads):
    for row in range(output.shape[0]):
        for column in range({width}):
            output[row, column] = {start}
    sparse = (pointers, indices, values)
    for column in range(pointers.size - 1):
        add_column_of_product(column, sparse, dense, alpha, added, output, {width}, {adds})
"""


def sparse_product_routine(op: StructuredDot | Usmm, dtype: str, threads: int | None) -> Callable[..., None]:
    """The routine of a product with a sparse matrix: the op's operands, then an output of the result's shape.

    Parameters
    ----------
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """
    if isinstance(op, Usmm):

        def multiply_and_add(alpha: Array, sparse: Any, dense: Array, added: Array, output: Array) -> None:
            fits = sparse.shape[1] == dense.shape[0] and added.shape == (sparse.shape[0], dense.shape[1])
            op.refuse([alpha, sparse, dense, added], fits)
            if not _by_kernel(dtype, threads, sparse, dense, alpha, added, output):
                output[...] = op.perform([alpha, sparse, dense, added])[0]

        return multiply_and_add

    def multiply(sparse: Any, dense: Array, output: Array) -> None:
        op.refuse([sparse, dense], sparse.shape[1] == dense.shape[0])
        if not _by_kernel(dtype, threads, sparse, dense, None, output, output):
            output[...] = op.perform([sparse, dense])[0]

    return multiply


def _by_kernel(
    dtype: str, threads: int | None, sparse: Any, dense: Array, alpha: Any, added: Array, output: Array
) -> bool:
    """``output = sparse @ dense``, or ``alpha`` times it plus ``added``; whether it was done."""
    width = dense.shape[1]
    pointers, indices, values = sparse.indptr, sparse.indices, sparse.data
    work = int(pointers[-1]) * width
    if dtype not in _DTYPES or not 0 < width <= WIDEST or work < LEAST_WORK:
        return False
    operands = (pointers, indices, values, dense, added)
    if pointers.dtype != indices.dtype or not all(array.flags.aligned for array in (*operands, output)):
        return False
    shared = default_threads() if threads is None else threads
    shared = shared if work >= SHARED_FROM and sparse.format == "csr" else 1
    kernel = _kernel(sparse.format, dtype, indices.dtype, width, alpha is not None)
    pointers, indices, values, dense, added = map(np.ascontiguousarray, operands)
    scale = 1.0 if alpha is None else float(alpha)
    kernel(pointers, indices, values, dense, scale, added, output, pool_address(shared), shared)
    return True


@functools.cache
def _kernel(format: Format, dtype: str, index: np.dtype[Any], width: int, adds: bool) -> Callable[..., None]:
    load_blas()  # numba, once it loads a kernel, imports SciPy's BLAS for whatever core type that detects
    template = _BY_ROWS if format == "csr" else _BY_COLUMNS
    start = "added[row, column]" if adds else "0"
    source = template.format(width=width, adds=int(adds), turns=_TURNS, start=start)
    number, place = NUMBA_TYPES[dtype], NUMBA_TYPES[index.name]
    vectors = [types.Array(item, 1, "C") for item in (place, place, number)]
    matrix = types.Array(number, 2, "C")
    word = types.int64
    signature = types.void(*vectors, matrix, types.float64, matrix, matrix, word, word)
    environment = {
        "in_parallel": in_parallel,
        "row_of_product": row_of_product,
        "add_column_of_product": add_column_of_product,
    }
    return cache.load_or_compile(source, "product", signature, environment).function
