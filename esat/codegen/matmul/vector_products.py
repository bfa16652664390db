"""Products of a large matrix with a vector by one call of BLAS, without the interpreter's lock.

Such a product takes as long as memory does to read the matrix, which drives the interpreter's data out of the
caches: the checks around ``numpy.dot`` then take some 20 microseconds, a tenth of a product of two million
elements of float32. For float64 that is half as much, and NumPy's library, whose kernels are for narrower
vectors than SciPy's here, reads such matrices 2 to 5 % faster.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from numba.core import types

from esat.codegen import cache
from esat.codegen.ground.blas_calls import call_blas
from esat.codegen.ground.blas_library import Package, one_thread
from esat.codegen.matmul.small_products import function_address
from esat.graph.op import Array

HANDED_TO_NUMPY = 1 << 19
"""Multiplications from which products go through NumPy: there its fixed cost is below one percent."""
_DTYPE = "f"
"""Character of the dtype it is done for."""

_SOURCE = """
def product(blas, by_columns, rows, columns, alpha, matrix, vector, beta, output):
    call_blas(blas, (not by_columns, rows, columns, alpha, matrix, rows, vector, 1, beta, output, 1))
"""


def package_of(dtype: str, elements: int) -> Package:
    """Whose library multiplies a matrix of so many elements with a vector, in one thread."""
    return "numpy" if dtype == "float64" and elements >= HANDED_TO_NUMPY else "scipy"


def multiply_vector(alpha: float, matrix: Array, vector: Array, beta: float, output: Array) -> bool:
    """``output = alpha * matrix @ vector + beta * output``; whether it was done.

    It is not done for dtypes other than float32, for operands that do not lie in one piece, or where SciPy's
    BLAS cannot be kept to one thread.

    Parameters
    ----------
    matrix
        Of shape (m, k), not empty.
    vector, output
        Of shapes (k,) and (m,); the output is contiguous and shares memory with neither operand.
    """
    alone = one_thread()
    if matrix.dtype.char != _DTYPE or alone is None or not vector.flags.c_contiguous:
        return False
    by_columns = matrix.flags.f_contiguous
    if by_columns:
        rows, columns = matrix.shape
    elif matrix.flags.c_contiguous:
        columns, rows = matrix.shape
    else:
        return False
    kernel, blas = _kernel(), function_address("sgemv")
    if alone.count() == 1:
        kernel(blas, by_columns, rows, columns, alpha, matrix, vector, beta, output)
    else:
        with alone:
            kernel(blas, by_columns, rows, columns, alpha, matrix, vector, beta, output)
    return True


@functools.cache
def _kernel() -> Callable[..., None]:
    number, word = types.float32, types.int64
    matrix, vector = types.Array(number, 2, "A"), types.Array(number, 1, "C")
    signature = types.void(word, types.boolean, word, word, number, matrix, vector, number, vector)
    return cache.load_or_compile(_SOURCE, "product", signature, {"call_blas": call_blas}).function
