"""Products of matrices by cuBLAS, called directly.

cupy's own products do not let themselves be recorded as part of a graph; cuBLAS does. The library, its
handles and the memory that it works in are cupy's.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, TypeAlias

from esat.base.records import record

_LARGEST = 2**31 - 1
"""Of the sizes that cuBLAS takes."""
_LETTERS = {"float32": "S", "float64": "D"}
_SCALARS: dict[str, Any] = {"float32": ctypes.c_float, "float64": ctypes.c_double}
_NAMES = ("libcublas.so.13", "libcublas.so.12")

Matrix: TypeAlias = Any
"""An array of cupy's."""


class CublasError(RuntimeError):
    """cuBLAS refused."""


@record(frozen=True, slots=True)
class Operand:
    """A matrix as cuBLAS reads it: by columns, so that one by rows is its transpose.

    Attributes
    ----------
    transposed
        Whether its memory runs along its columns.
    leading
        Elements from one row (or column) to the next.
    """

    transposed: bool
    leading: int


def operand_of(shape: tuple[int, int], strides: tuple[int, int]) -> Operand | None:
    """How a matrix of these strides, in elements, is read without a copy; None where it cannot be.

    >>> operand_of((3, 4), (4, 1))
    Operand(transposed=False, leading=4)
    >>> operand_of((4, 3), (1, 4))
    Operand(transposed=True, leading=4)
    """
    (rows, columns), (down, across) = shape, strides
    if across == 1 or columns == 1:
        leading = columns if rows == 1 else down
        return Operand(False, leading) if columns <= leading <= _LARGEST else None
    if down == 1 or rows == 1:
        leading = rows if columns == 1 else across
        return Operand(True, leading) if rows <= leading <= _LARGEST else None
    return None


class Cublas:
    """cuBLAS of a process.

    Parameters
    ----------
    arrays
        cupy.

    Raises
    ------
    OSError
        When the library that cupy loaded is not found.
    """

    def __init__(self, arrays: Any) -> None:
        self._arrays = arrays
        arrays.cuda.device.get_cublas_handle()  # which loads the library
        library = _loaded()
        self._set_stream = library.cublasSetStream_v2
        self._set_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        pointer, number, place = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
        self._gemm, self._batched = {}, {}
        for dtype, letter in _LETTERS.items():
            one = self._gemm[dtype] = getattr(library, f"cublas{letter}gemm_v2")
            sizes = [pointer, *[number] * 5]
            one.argtypes = [*sizes, pointer, *[pointer, number] * 2, pointer, pointer, number]
            many = self._batched[dtype] = getattr(library, f"cublas{letter}gemmStridedBatched")
            each = [pointer, number, place]
            many.argtypes = [*sizes, pointer, *each * 2, pointer, *each, number]

    def multiply(
        self, left: Matrix, right: Matrix, out: Matrix, alpha: float = 1.0, beta: float = 0.0
    ) -> bool:
        """``out = beta * out + alpha * left @ right``; False where cuBLAS does not take these arrays.

        Parameters
        ----------
        left, right
            Matrices, or batches of them with one axis more, of one dtype.
        out
            Contiguous in C order, of the product's shape; it shares no memory with the others.
        """
        dtype = out.dtype.name
        gemm = self._gemm.get(dtype)
        if gemm is None or not left.dtype == right.dtype == out.dtype:
            return False
        if out.ndim not in (2, 3) or not left.ndim == right.ndim == out.ndim:
            return False
        width = out.dtype.itemsize
        *batch, m, k = left.shape
        n = right.shape[-1]
        if min(m, n, k, *batch) < 1 or max(m, n, k, *batch) > _LARGEST:
            return False
        first = operand_of((m, k), _in_elements(left.strides[-2:], width))
        second = operand_of((k, n), _in_elements(right.strides[-2:], width))
        if first is None or second is None:
            return False
        scalar = _SCALARS[dtype]
        factors = ctypes.byref(scalar(alpha)), ctypes.byref(scalar(beta))
        handle = self._arrays.cuda.device.get_cublas_handle()
        self._set_stream(handle, self._arrays.cuda.get_current_stream().ptr)
        # By columns the product is out.T = right.T @ left.T, and memory by rows is the transpose already.
        head = (handle, int(second.transposed), int(first.transposed), n, m, k, factors[0])
        a, b, c = left.data.ptr, right.data.ptr, out.data.ptr
        if out.ndim == 2:
            status = gemm(*head, b, second.leading, a, first.leading, factors[1], c, n)
        else:
            steps = [array.strides[0] // width if array.shape[0] > 1 else 0 for array in (right, left)]
            parts = (b, second.leading, steps[0], a, first.leading, steps[1])
            status = self._batched[dtype](*head, *parts, factors[1], c, n, m * n, out.shape[0])
        if status:
            raise CublasError(f"cuBLAS refused a product of {left.shape} and {right.shape}: status {status}")
        return True


def _in_elements(strides: tuple[int, int], width: int) -> tuple[int, int]:
    return strides[0] // width, strides[1] // width


def _loaded() -> Any:
    """The library of that name that the process has loaded: another one would not know the handles."""
    for name in _NAMES if hasattr(os, "RTLD_NOLOAD") else ():
        try:
            return ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
        except OSError:
            continue
    raise OSError(f"none of {', '.join(_NAMES)} is loaded")
