"""Sums over products with sparse matrices, which are never formed: by rows, each while it is in registers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
from numba.core import types

from esat.codegen import cache
from esat.codegen.ground.target import Target
from esat.codegen.llvm.views import corrected, rounding_error
from esat.codegen.sparse.sparse_calls import TURNS, SparseCalls, types_of_sparse
from esat.codegen.sparse.sparse_rows import add_row_of_bilinear, add_row_of_quadratic
from esat.codegen.template import NUMBA_TYPES
from esat.codegen.threads.tasks import in_parallel
from esat.graph.op import Array
from esat.ops.sparse.low_rank import SQUARES_AND_QUADRATIC, USMM_PRODUCT
from esat.ops.sparse.sums import (
    SPARSE_BILINEAR,
    SQUARES_AND_BILINEAR,
    SparseBilinear,
    SquaresAndBilinear,
)

ROWS = 64
"""Rows whose terms are added one by one, whatever the threads: results do not depend on how many there are.
The sums of such parts are added with their rounding errors."""

_SOURCE = """
def some_parts(begin, end, {operands}, sums):
    sparse = (pointers, indices, values)
    for part in range(begin, end):
        line = sums[part]
        for column in range({width} + 1):
            line[column] = 0
        for row in range(part * {rows}, min(pointers.size - 1, (part + 1) * {rows})):
            {add_row}
        for column in range(1, {width}):
            line[0] += line[column]

def total(sums, column):
    found = sums[0, column]
    error = found - found
    for part in range(1, sums.shape[0]):
        error += rounding_error(found, sums[part, column])
        found += sums[part, column]
    return corrected(found, error)

def product({parameters}, sums, output, pool, threads):
    arguments = ({operands}, sums)
    in_parallel(pool, threads, sums.shape[0], {turns}, some_parts, arguments)
    output[0] = {result}
"""
_BILINEAR = "pointers, indices, values, dense, other"
_ADD_BILINEAR = """
            if pointers[row] < pointers[row + 1]:
                add_row_of_bilinear(row, sparse, dense, other, line, {width}, {squares})
"""
_QUADRATIC = "pointers, indices, values, dense, alpha, other, square"
# Rows without stored values count here, too.
_ADD_QUADRATIC = "add_row_of_quadratic(row, sparse, dense, alpha, other, square, line, {width})"
_ENVIRONMENT = {"in_parallel": in_parallel, "rounding_error": rounding_error, "corrected": corrected}


def sparse_sum_routine(
    op: SparseBilinear | SquaresAndBilinear, dtype: str, target: Target, threads: int | None
) -> Callable[..., None]:
    """The routine of a sum over a product with a sparse matrix: the op's operands, then an output of no axes.

    Parameters
    ----------
    target
        What it is compiled for.
    threads
        The most it may use; None for what :func:`default_threads` says at each call.
    """
    squares = isinstance(op, SquaresAndBilinear)

    def refuse(sparse: Any, dense: Array, other: Array) -> None:
        op.refuse([sparse, dense, other], SPARSE_BILINEAR.fit([sparse, dense, other]))

    def kernel(sparse: Any, dense: Array, _other: Array) -> Callable[..., None]:
        return _kernel(dtype, sparse.indices.dtype, dense.shape[1], squares, target)

    calls = SparseCalls(dtype, threads, refuse, kernel, ("csr", "csc"))

    def add(alpha: Any, sparse: Any, dense: Array, other: Array, output: Array) -> None:
        run = calls(sparse, dense, other)
        if run is None:
            output[...] = op.perform([alpha, sparse, dense, other] if squares else [sparse, dense, other])[0]
            return
        if sparse.format == "csc":  # its columns are the rows of its transpose, and the other two swap
            dense, other = other, dense
        sums = np.empty((-(-other.shape[0] // ROWS), dense.shape[1] + 1), dtype)
        run(sparse.indptr, sparse.indices, sparse.data, dense, other, float(alpha), sums, output.reshape(1))

    def bilinear(sparse: Any, dense: Array, other: Array, output: Array) -> None:
        add(1.0, sparse, dense, other, output)

    return add if squares else bilinear


def sparse_quadratic_routine(dtype: str, target: Target, threads: int | None) -> Callable[..., None]:
    """The routine of :class:`SquaresAndQuadratic`: the op's operands, then an output of no axes.

    Where there is no kernel for all of it, the quadratic form is taken of the product of columns.
    """
    op = SQUARES_AND_QUADRATIC
    rest = sparse_sum_routine(SQUARES_AND_BILINEAR, dtype, target, threads)

    def refuse(*operands: Any) -> None:
        op.refuse(operands, USMM_PRODUCT.fit(operands))

    def kernel(sparse: Any, dense: Array, _other: Array, _square: Array) -> Callable[..., None] | None:
        if sparse.format != "csr":
            return None
        return _quadratic_kernel(dtype, sparse.indices.dtype, dense.shape[1], target)

    calls = SparseCalls(dtype, threads, refuse, kernel)

    def add(alpha: Array, sparse: Any, dense: Array, other: Array, square: Array, output: Array) -> None:
        run, scale = calls(sparse, dense, other, square), float(alpha)
        if run is None or not isfinite(scale):  # it would meet the zeros of rows that store nothing
            rest(alpha, sparse, dense, other, output)
            with np.errstate(all="ignore"):
                output += np.sum((other.T @ other) * square)
            return
        sums = np.empty((-(-other.shape[0] // ROWS), dense.shape[1] + 1), dtype)
        parts = sparse.indptr, sparse.indices, sparse.data
        run(*parts, dense, scale, other, square, sums, output.reshape(1))

    return add


@functools.cache
def _quadratic_kernel(dtype: str, index: np.dtype[Any], width: int, target: Target) -> Callable[..., None]:
    source = _SOURCE.format(
        operands=_QUADRATIC,
        parameters=_QUADRATIC,
        add_row=_ADD_QUADRATIC.format(width=width),
        result=f"total(sums, 0) + total(sums, {width})",
        width=width,
        rows=ROWS,
        turns=TURNS,
    )
    number, word = NUMBA_TYPES[dtype], types.int64
    matrix, vector = (types.Array(number, rank, "C") for rank in (2, 1))
    sparse = types_of_sparse(dtype, index)
    signature = types.void(*sparse, matrix, types.float64, matrix, matrix, matrix, vector, word, word)
    environment = {**_ENVIRONMENT, "add_row_of_quadratic": add_row_of_quadratic}
    options = cache.CompileOptions(target, noalias=("some_parts",))
    return cache.load_or_compile(source, "product", signature, environment, options).function


@functools.cache
def _kernel(
    dtype: str, index: np.dtype[Any], width: int, squares: bool, target: Target
) -> Callable[..., None]:
    source = _SOURCE.format(
        operands=_BILINEAR,
        parameters=f"{_BILINEAR}, alpha",
        add_row=_ADD_BILINEAR.format(width=width, squares=int(squares)).strip(),
        result=f"total(sums, {width}) + number(alpha) * total(sums, 0)" if squares else "total(sums, 0)",
        width=width,
        rows=ROWS,
        turns=TURNS,
    )
    number, word = NUMBA_TYPES[dtype], types.int64
    matrix, vector = (types.Array(number, rank, "C") for rank in (2, 1))
    signature = types.void(
        *types_of_sparse(dtype, index), matrix, matrix, types.float64, matrix, vector, word, word
    )
    environment = {
        **_ENVIRONMENT,
        "add_row_of_bilinear": add_row_of_bilinear,
        "number": np.dtype(dtype).type,
    }
    options = cache.CompileOptions(target)
    return cache.load_or_compile(source, "product", signature, environment, options).function
