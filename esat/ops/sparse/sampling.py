"""Elements at the stored places of a sparse matrix: of a product of dense ones, of another sparse one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from esat.graph.sparse_type import Format, canonical
from esat.ops.sparse.record import places

LEAST_WORK = 1 << 14
"""Multiplications from which a compiled loop is worth its loading."""

LEAST_PLACES = 1 << 13
"""Stored places of both matrices from which a compiled merge is worth its loading."""

_BLOCK = 1 << 16
"""Elements that are gathered at a time."""


def sampled(pattern: Any, left: Any, right: Any) -> Any:
    """Elements of ``left @ right`` where ``pattern`` stores, in the order of storage.

    Parameters
    ----------
    pattern
        A sparse matrix ``(m, n)`` of SciPy's, CSR or CSC.
    left, right
        Arrays ``(m, k)`` and ``(k, n)`` of one dtype, that of the result.
    """
    flipped = np.ascontiguousarray(right.T)
    result = np.empty(pattern.nnz, left.dtype)
    if left.dtype == np.bool_ or pattern.nnz * left.shape[1] < LEAST_WORK:
        _by_gathering(pattern, left, flipped, result)
        return result
    outer, inner = (left, flipped) if pattern.format == "csr" else (flipped, left)
    _compiled(_dot_products)(
        pattern.indptr, pattern.indices, np.ascontiguousarray(outer), np.ascontiguousarray(inner), result
    )
    return result


def _by_gathering(pattern: Any, left: Any, flipped: Any, result: Any) -> None:
    rows, columns = places(pattern)
    step = max(1, _BLOCK // max(1, left.shape[1]))
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        result[part] = np.einsum("ij,ij->i", left[rows[part]], flipped[columns[part]])


def values_at(pattern: Any, source: Any) -> Any:
    """Elements of ``source`` where ``pattern`` stores, in its order; 0 where ``source`` stores none.

    Parameters
    ----------
    pattern, source
        Sparse matrices of SciPy's of one shape, each CSR or CSC, whose indices ascend without repetition.
    """
    if pattern.nnz + source.nnz < LEAST_PLACES:
        return _by_search(pattern, source)
    result = np.zeros(pattern.nnz, source.dtype)
    other = canonical(source, pattern.format, source.dtype)
    _compiled(_merge)(pattern.indptr, pattern.indices, other.indptr, other.indices, other.data, result)
    return result


def _by_search(pattern: Any, source: Any) -> Any:
    wanted, stored = (_linear_places(matrix, pattern.format) for matrix in (pattern, source))
    values = source.data
    if stored.size == 0:
        return np.zeros(wanted.size, values.dtype)
    if source.format != pattern.format:
        order = np.argsort(stored)
        stored, values = stored[order], values[order]
    found = np.minimum(np.searchsorted(stored, wanted), stored.size - 1)
    return np.where(stored[found] == wanted, values[found], values.dtype.type(0))


def _linear_places(matrix: Any, format: Format) -> Any:
    """The stored places as numbers that ascend in the order of storage of ``format``."""
    rows, columns = (part.astype(np.int64) for part in places(matrix))
    if format == "csr":
        return rows * matrix.shape[1] + columns
    return columns * matrix.shape[0] + rows


@cache
def _compiled(loop: Callable[..., None]) -> Callable[..., None]:
    from numba import njit

    compiled: Callable[..., None] = njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
    )(loop)
    return compiled


def _dot_products(pointers: Any, indices: Any, outer: Any, inner: Any, result: Any) -> None:
    for row in range(pointers.size - 1):
        for place in range(pointers[row], pointers[row + 1]):
            column = indices[place]
            total = result.dtype.type(0)
            for axis in range(outer.shape[1]):
                total += outer[row, axis] * inner[column, axis]
            result[place] = total


def _merge(
    pointers: Any, indices: Any, other_pointers: Any, other_indices: Any, values: Any, result: Any
) -> None:
    """Two ascending lists of places for each row, walked side by side."""
    for row in range(pointers.size - 1):
        stored, end = other_pointers[row], other_pointers[row + 1]
        for place in range(pointers[row], pointers[row + 1]):
            while stored < end and other_indices[stored] < indices[place]:
                stored += 1
            if stored < end and other_indices[stored] == indices[place]:
                result[place] = values[stored]
