"""Products of sparse matrices and narrow dense ones, by kernels made for the number of columns.

A row of the dense operand is a few vector registers wide, and so is a row of the result. By rows (CSR), that
of the result stays in registers while it is summed; by columns (CSC), that of the operand does while it is
added to many. SciPy's loops, which serve any number of columns, load and store both for every stored value.
A sum over the product is taken while its rows are in registers (:mod:`esat.codegen.sparse.sparse_sums`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.ground.target import Target
from esat.codegen.sparse.sparse_calls import TURNS, SparseCalls, types_of_sparse
from esat.codegen.sparse.sparse_rows import add_column_of_product, row_of_product, row_with_product
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads.tasks import in_parallel
from esat.graph.op import Array
from esat.graph.sparse_type import Format
from esat.ops.sparse.low_rank import USMM_PRODUCT
from esat.ops.sparse.products import USMM, StructuredDot, Usmm

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
# The rows of the square factor stay in registers, since the output is known to be elsewhere.
_WITH_PRODUCT = """
def some_rows(begin, end, pointers, indices, values, dense, scales, left, square, output):
    sparse = (pointers, indices, values)
    for row in range(begin, end):
        row_with_product(row, sparse, dense, scales, left, square, output, {width})


def product(pointers, indices, values, dense, alpha, beta, left, square, output, pool, threads):
    arguments = (pointers, indices, values, dense, (alpha, beta), left, square, output)
    in_parallel(pool, threads, output.shape[0], {turns}, some_rows, arguments)
"""


def sparse_product_routine(
    op: StructuredDot | Usmm, dtype: str, target: Target, threads: int | None
) -> Callable[..., None]:
    """The routine of a product with a sparse matrix: the op's operands, then an output of the result's shape.

    Parameters
    ----------
    target
        What it is compiled for.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """

    def refuse(sparse: Any, dense: Array, added: Array) -> None:
        fits = sparse.shape[1] == dense.shape[0] and added.shape == (sparse.shape[0], dense.shape[1])
        op.refuse([sparse, dense, added] if isinstance(op, Usmm) else [sparse, dense], fits)

    def kernel(sparse: Any, dense: Array, _added: Array) -> Callable[..., None]:
        return _kernel(
            sparse.format, dtype, sparse.indices.dtype, dense.shape[1], isinstance(op, Usmm), target
        )

    calls = SparseCalls(dtype, threads, refuse, kernel)

    def multiply(sparse: Any, dense: Array, output: Array) -> None:
        run = calls(sparse, dense, output)
        if run is None:
            output[...] = op.perform([sparse, dense])[0]
        else:
            run(sparse.indptr, sparse.indices, sparse.data, dense, 1.0, output, output)

    def multiply_and_add(alpha: Array, sparse: Any, dense: Array, added: Array, output: Array) -> None:
        run = calls(sparse, dense, added)
        if run is None:
            output[...] = op.perform([alpha, sparse, dense, added])[0]
        else:
            run(sparse.indptr, sparse.indices, sparse.data, dense, float(alpha), added, output)

    return multiply_and_add if isinstance(op, Usmm) else multiply


def sparse_with_product_routine(dtype: str, target: Target, threads: int | None) -> Callable[..., None]:
    """The routine of :class:`UsmmProduct`: the op's operands, then an output of the result's shape.

    Where there is no kernel for all of it, the small product is made first, and the other one added to it.
    """
    op = USMM_PRODUCT
    usmm = sparse_product_routine(USMM, dtype, target, threads)

    def refuse(*operands: Any) -> None:
        op.refuse(operands, op.fit(operands))

    def kernel(sparse: Any, dense: Array, _left: Array, _square: Array) -> Callable[..., None] | None:
        if sparse.format != "csr":
            return None
        return _kernel_with_product(dtype, sparse.indices.dtype, dense.shape[1], target)

    calls = SparseCalls(dtype, threads, refuse, kernel)

    def multiply(
        alpha: Array, sparse: Any, dense: Array, left: Array, square: Array, beta: Array, output: Array
    ) -> None:
        run = calls(sparse, dense, left, square)
        if run is not None:
            parts = sparse.indptr, sparse.indices, sparse.data
            run(*parts, dense, float(alpha), float(beta), left, square, output)
            return
        with np.errstate(all="ignore"):
            np.matmul(left, square, out=output)
            if beta != 0:
                output += beta * left
        usmm(alpha, sparse, dense, output, output)

    return multiply


@functools.cache
def _kernel_with_product(dtype: str, index: np.dtype[Any], width: int, target: Target) -> Callable[..., None]:
    source = _WITH_PRODUCT.format(width=width, turns=TURNS)
    matrix, number, word = types.Array(NUMBA_TYPES[dtype], 2, "C"), types.float64, types.int64
    sparse = types_of_sparse(dtype, index)
    signature = types.void(*sparse, matrix, number, number, matrix, matrix, matrix, word, word)
    environment = {"in_parallel": in_parallel, "row_with_product": row_with_product}
    options = cache.CompileOptions(target, noalias=("some_rows",))
    return cache.load_or_compile(source, "product", signature, environment, options).function


@functools.cache
def _kernel(
    format: Format, dtype: str, index: np.dtype[Any], width: int, adds: bool, target: Target
) -> Callable[..., None]:
    template = _BY_ROWS if format == "csr" else _BY_COLUMNS
    start = "added[row, column]" if adds else "0"
    source = template.format(width=width, adds=int(adds), turns=TURNS, start=start)
    matrix, word = types.Array(NUMBA_TYPES[dtype], 2, "C"), types.int64
    signature = types.void(*types_of_sparse(dtype, index), matrix, types.float64, matrix, matrix, word, word)
    environment = {
        "in_parallel": in_parallel,
        "row_of_product": row_of_product,
        "add_column_of_product": add_column_of_product,
    }
    options = cache.CompileOptions(target)
    return cache.load_or_compile(source, "product", signature, environment, options).function
