"""Matrix products through BLAS, into given buffers, without copies of transposed operands.

Small products go through SciPy's BLAS: it neither allocates nor looks at floating-point flags,
half of what a small ``numpy.matmul`` takes. Large ones go through NumPy, which lets other threads
run meanwhile. Integers, booleans and float16 have no BLAS and go through NumPy always.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from esat.graph import Apply
from esat.graph.op import Array
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul

Routine: TypeAlias = Callable[..., Any]
"""Called as ``routine(*operands, output)``; fills the C-contiguous output and returns nothing of use. For
``gemm`` the output is the array that it adds to, of any layout, and no operand."""

_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_HANDED_TO_NUMPY = 1 << 19
"""Multiplications from which a product goes through NumPy: there its fixed cost is below one percent."""
_WIDE_CORE = "SkylakeX"


def routine_for(node: Apply) -> Routine | None:
    """The routine that computes a node into a given buffer; None for what is no matrix product.

    ``gemm`` has one in place only. The types decide which: a matrix times a matrix, a column or a row;
    batches of them; a batch times one matrix, which is one product of the stacked rows.
    """
    if isinstance(node.op, AccumulateProduct):
        return _accumulating(node.op) if node.op.inplace else None
    if not isinstance(node.op, MatMul):
        return None
    left, right = (variable.tensor_type for variable in node.inputs)
    letter = _LETTERS.get(left.dtype)
    if letter is None:
        return _numpy_product
    if left.ndim == 2:
        if right.broadcastable[1]:
            return functools.partial(_times_column, _function(f"{letter}gemv"))
        if left.broadcastable[0]:
            return functools.partial(_row_times, _function(f"{letter}gemv"))
        return functools.partial(_product, _function(f"{letter}gemm"))
    if all(right.broadcastable[:-2]):
        return functools.partial(_stacked_product, _function(f"{letter}gemm"))
    return _numpy_product


def accumulate_product(alpha: float, left: Array, right: Array, beta: float, output: Array) -> None:
    """``output = alpha * left @ right + beta * output``, in place.

    Parameters
    ----------
    left, right
        Matrices of shapes (m, k) and (k, n), of one dtype that BLAS has: float32, float64,
        complex64 or complex128. C- and Fortran-ordered ones are read where they are.
    alpha, beta
        With ``beta`` 0 the output is not read.
    output
        C-contiguous, of shape (m, n), sharing memory with neither operand.
    """
    _scaled_product(_function(f"{_LETTERS[left.dtype.name]}gemm"), alpha, left, right, beta, output)


def _accumulating(op: AccumulateProduct) -> Routine:
    """The routine ``(alpha, left, right, beta, output)`` of a ``gemm`` in place."""

    def accumulate(alpha: Array, left: Array, right: Array, beta: Array, output: Array) -> None:
        scale, kept = float(alpha), float(beta)
        # BLAS leaves out products with 0, also those with what is not finite.
        if scale == 0.0 or kept == 0.0 or not output.flags.c_contiguous:
            op.perform([output, alpha, left, right, beta])
        elif output.ndim == 2:
            accumulate_product(scale, left, right, kept, output)
        elif op.dropped == 1:
            _accumulate_column(scale, left, right, kept, output)
        else:
            _accumulate_column(scale, right.T, left, kept, output)

    return accumulate


def _accumulate_column(alpha: float, matrix: Array, vector: Array, beta: float, output: Array) -> None:
    """``output = alpha * matrix @ vector + beta * output``, for a vector of shape (k, 1) or (1, k)."""
    gemv = _function(f"{_LETTERS[matrix.dtype.name]}gemv")
    if not matrix.size:
        np.multiply(output, beta, out=output)
    elif matrix.flags.c_contiguous:
        gemv(alpha, matrix.T, vector.reshape(-1), beta, output, 0, 1, 0, 1, 1, 1)
    else:
        gemv(alpha, matrix, vector.reshape(-1), beta, output, 0, 1, 0, 1, 0, 1)


def _product(gemm: Routine, left: Array, right: Array, output: Array) -> None:
    if left.shape[0] * right.size >= _HANDED_TO_NUMPY and left.shape[1] > 1 and not _scipy_is_faster():
        with np.errstate(all="ignore"):
            np.dot(left, right, output)
    else:
        _scaled_product(gemm, 1.0, left, right, 0.0, output)


def _scaled_product(
    gemm: Routine, alpha: float, left: Array, right: Array, beta: float, output: Array
) -> None:
    """Row-major matrices are the transposed column-major ones, and ``(AB)' = B'A'``."""
    if not (left.size and right.size):
        if output.size:
            np.multiply(output, beta, out=output) if beta else output.fill(0)
        return
    first, turn_first = (right.T, 0) if right.flags.c_contiguous else (right, 1)
    second, turn_second = (left.T, 0) if left.flags.c_contiguous else (left, 1)
    gemm(alpha, first, second, beta, output.T, turn_first, turn_second, 1)


def _times_column(gemv: Routine, left: Array, right: Array, output: Array) -> None:
    _matrix_vector(gemv, left, right.reshape(-1), output)


def _row_times(gemv: Routine, left: Array, right: Array, output: Array) -> None:
    _matrix_vector(gemv, right.T, left.reshape(-1), output)


def _matrix_vector(gemv: Routine, matrix: Array, vector: Array, output: Array) -> None:
    """``output = matrix @ vector`` for an output of shape (m, 1) or (1, m)."""
    if not matrix.size:
        output.fill(0)
        return
    flat = output.reshape(-1)
    if matrix.size >= _HANDED_TO_NUMPY:  # memory sets the pace, whatever the core type
        with np.errstate(all="ignore"):
            np.dot(matrix, vector, flat)
    elif matrix.flags.c_contiguous:
        gemv(1.0, matrix.T, vector, 0.0, flat, 0, 1, 0, 1, 1, 1)
    else:
        gemv(1.0, matrix, vector, 0.0, flat, 0, 1, 0, 1, 0, 1)


def _stacked_product(gemm: Routine, left: Array, right: Array, output: Array) -> None:
    """A batch of matrices times one matrix: where the batch lies in one piece, one product."""
    inner, columns = right.shape[-2:]
    if left.flags.c_contiguous and inner and columns:
        _product(gemm, left.reshape(-1, inner), right.reshape(inner, columns), output.reshape(-1, columns))
    else:
        _numpy_product(left, right, output)


def _numpy_product(left: Array, right: Array, output: Array) -> None:
    with np.errstate(all="ignore"):
        np.matmul(left, right, out=output)


# ---- the library


def _function(name: str) -> Routine:
    found: Routine = getattr(load_blas(), name)
    return found


@functools.cache
def load_blas() -> ModuleType:
    """SciPy's BLAS, loaded for the core type that :func:`core_type` chooses.

    OpenBLAS reads its environment variable once, while it is loaded. NumPy's own copy has been
    loaded long before; SciPy's, usually, has not.
    """
    chosen = core_type(os.environ, numpy_core(), "scipy.linalg" in sys.modules)
    if chosen is not None:
        os.environ["OPENBLAS_CORETYPE"] = chosen
    try:
        from scipy.linalg import blas
    finally:
        if chosen is not None:
            del os.environ["OPENBLAS_CORETYPE"]
    module: ModuleType = blas
    return module


@functools.cache
def _scipy_is_faster() -> bool:
    """Whether SciPy's copy runs kernels for wider vectors than NumPy's does.

    The library is asked: whoever imported another part of SciPy first may have loaded it already.
    """
    load_blas()
    return numpy_core() == "Haswell" and scipy_core() == _WIDE_CORE


def core_type(environment: Mapping[str, str], detected: str | None, loaded: bool) -> str | None:
    """The core type to ask OpenBLAS for, or None to leave its choice alone.

    OpenBLAS takes some processors that it does not know for a Haswell, without AVX-512, which
    halves the speed of products. Asked for is another type only where the processor has AVX-512,
    where the user has set nothing, and where the library is yet to be loaded.

    Parameters
    ----------
    environment
        The process's environment variables.
    detected
        The core type that NumPy's OpenBLAS detected; None where there is no such library.
    loaded
        Whether SciPy's library is loaded.
    """
    if loaded or detected != "Haswell" or "OPENBLAS_CORETYPE" in environment:
        return None
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    wide = all(features.get(name) for name in ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"))
    return _WIDE_CORE if wide else None


def numpy_core() -> str | None:
    """The core type that the OpenBLAS inside NumPy's wheel detected; None where NumPy has another BLAS."""
    return _core_of("numpy.libs", "scipy_openblas_get_corename64_")


def scipy_core() -> str | None:
    """The core type that the OpenBLAS inside SciPy's wheel runs; None where SciPy has another BLAS.

    Loads the library if it has not been loaded yet.
    """
    return _core_of("scipy.libs", "scipy_openblas_get_corename")


def _core_of(libraries: str, function: str) -> str | None:
    folder = Path(np.__file__).resolve().parent.parent / libraries
    for path in sorted(folder.glob("libscipy_openblas*")):
        try:
            report = getattr(ctypes.CDLL(str(path)), function)
        except (OSError, AttributeError):
            continue
        report.restype = ctypes.c_char_p
        return str(report().decode())
    return None
