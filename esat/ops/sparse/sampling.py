"""Elements of a product of dense matrices at the stored places of a sparse one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from esat.ops.sparse.record import places

LEAST_WORK = 1 << 17
"""Multiplications from which a compiled loop is worth its loading."""

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
    _compiled()(
        pattern.indptr, pattern.indices, np.ascontiguousarray(outer), np.ascontiguousarray(inner), result
    )
    return result


def _by_gathering(pattern: Any, left: Any, flipped: Any, result: Any) -> None:
    rows, columns = places(pattern)
    step = max(1, _BLOCK // max(1, left.shape[1]))
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        result[part] = np.einsum("ij,ij->i", left[rows[part]], flipped[columns[part]])


@cache
def _compiled() -> Callable[..., None]:
    from numba import njit

    compiled: Callable[..., None] = njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
    )(_loop)
    return compiled


def _loop(pointers: Any, indices: Any, outer: Any, inner: Any, result: Any) -> None:
    for row in range(pointers.size - 1):
        for place in range(pointers[row], pointers[row + 1]):
            column = indices[place]
            total = result.dtype.type(0)
            for axis in range(outer.shape[1]):
                total += outer[row, axis] * inner[column, axis]
            result[place] = total
