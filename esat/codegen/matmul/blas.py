"""Matrix products through BLAS, into given buffers, without copies of transposed operands.

Small products are code of their own, or call SciPy's BLAS by the addresses of its functions, as native
functions do: SciPy's own way to them takes 1.3 us more. Larger ones go through SciPy, which neither allocates
nor looks at floating-point flags. Large ones go through NumPy, which lets other threads
run meanwhile. Integers, booleans and float16 have no BLAS and go through NumPy always.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from esat.base.records import record
from esat.codegen.ground.array_call import array_call
from esat.codegen.ground.blas_library import (
    LETTERS,
    WOKEN_FROM,
    WOKEN_FROM_VECTOR,
    blas_function,
    one_thread,
    scipy_is_faster,
    wakes_threads,
)
from esat.codegen.ground.builtin_function import is_available
from esat.codegen.ground.target import Target
from esat.codegen.matmul.shared_products import share_product, share_vector_product
from esat.codegen.matmul.small_products import order_of, product_pointers
from esat.codegen.matmul.structured import Routine
from esat.codegen.matmul.unrolled_products import unrolled_plan
from esat.codegen.threads import granted_threads
from esat.graph import Apply, TensorType
from esat.graph.op import Array
from esat.ops.accumulate import AccumulateProduct

HANDED_TO_NUMPY = 1 << 19
"""Multiplications from which products go through NumPy: there its fixed cost is below one percent."""
_AS_IT_IS = nullcontext()


@record(frozen=True, eq=False)
class ProductRoutine:
    """The routine ``(left, right, output)`` of a product of matrices, or of batches of them.

    Attributes
    ----------
    multiply
        What does it for large matrices.
    left, right, threads
        What that follows from: the operands' types, and the most threads; None for the default.
    largest_unrolled
        Multiplications up to which a product is code of its own.
    """

    multiply: Routine
    left: TensorType
    right: TensorType
    threads: int | None
    largest_unrolled: int

    def __reduce__(self) -> Any:
        return _routine_of_types, (self.left, self.right, self.threads, self.largest_unrolled)

    def __call__(self, left: Array, right: Array, output: Array) -> None:
        call = _small_product(
            self.largest_unrolled, left.dtype, left.shape, left.strides, right.shape, right.strides
        )
        if call is None:
            self.multiply(left, right, output)
        else:
            call(left, right, output)


@functools.lru_cache(maxsize=1024)
def _small_product(
    largest: int, dtype: np.dtype[Any], *layouts: tuple[int, ...]
) -> Callable[..., bool] | None:
    """What multiplies small arrays of these shapes and strides: code of their own, or BLAS by its address."""
    left, left_strides, right, right_strides = layouts
    plan = unrolled_plan(largest, dtype, left, left_strides, right, right_strides)
    if plan is not None:
        return plan[1]
    sizes, width = (*left, right[-1]), dtype.itemsize
    if len(left) != 2 or len(right) != 2 or 0 in sizes or wakes_threads(*sizes) or not is_available():
        return None
    if any(step % width for step in (*left_strides, *right_strides)):
        return None
    steps = [[step // width for step in strides] for strides in (left_strides, right_strides)]
    found = product_pointers(dtype.name, left, steps[0], right, steps[1])
    if found is None:
        return None
    address, arguments, kept = found
    names = ("left", "right", "output")
    order = [names.index(one) if isinstance(one, str) else None for one in arguments]
    numbers = [one for one in arguments if not isinstance(one, str)]
    return array_call(address, order, numbers, [(0, 0, 0)], kept=kept)


def product_routine(node: Apply, threads: int | None, target: Target) -> Routine:
    """The routine ``(left, right, output)`` of a product of matrices, or of batches of them.

    Sizes are seen at each call, as native functions see them: small products are code of their own, others a
    matrix times a matrix, a column or a row. Types tell batches of them, and a batch times one matrix, which
    is one product of the stacked rows.
    """
    left, right = (variable.tensor_type for variable in node.inputs)
    return _routine_of_types(left, right, threads, target.unrolled_product)


def _routine_of_types(
    left: TensorType, right: TensorType, threads: int | None, largest_unrolled: int
) -> Routine:
    multiply = _library_routine(left, right, threads)
    if left.dtype not in ("float32", "float64"):
        return multiply
    return ProductRoutine(multiply, left, right, threads, largest_unrolled)


def _library_routine(left: TensorType, right: TensorType, threads: int | None) -> Routine:
    letter = LETTERS.get(left.dtype)
    if letter is None:
        return _numpy_product
    functions = blas_function(f"{letter}gemm"), blas_function(f"{letter}gemv")
    multiply = functools.partial(_product, *functions, threads)
    if left.ndim == 2:
        return multiply
    return functools.partial(_stacked_product, multiply) if all(right.broadcastable[:-2]) else _numpy_product


def accumulate_product(
    alpha: float, left: Array, right: Array, beta: float, output: Array, threads: int | None = None
) -> None:
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
    threads
        The most it may use; None for what :func:`default_threads` says.
    """
    if share_product(alpha, left, right, beta, output, threads):
        return
    multiplications = left.shape[0] * right.size
    short = multiplications < HANDED_TO_NUMPY  # the library's threads would take longer
    alone = multiplications >= WOKEN_FROM and (short or granted_threads(threads) == 1)
    with (alone and one_thread()) or _AS_IT_IS:
        _scaled_product(blas_function(f"{LETTERS[left.dtype.name]}gemm"), alpha, left, right, beta, output)


def accumulating_routine(op: AccumulateProduct, letter: str, threads: int | None) -> Routine:
    """The routine of a ``gemm``: ``(alpha, left, right, beta, output)``, after the addend if not in place."""
    gemv, in_place = blas_function(f"{letter}gemv"), replace(op, inplace=True)

    def accumulate(alpha: Array, left: Array, right: Array, beta: Array, output: Array) -> None:
        scale, kept = float(alpha), float(beta)
        if output.ndim == 2 and not output.flags.c_contiguous:
            left, right, output = right.T, left.T, output.T  # it may be the view of a transposed matrix
        # BLAS leaves out products with 0, also those with what is not finite.
        if scale == 0.0 or kept == 0.0 or not output.flags.c_contiguous:
            in_place.perform([output, alpha, left, right, beta])
        elif right.shape[1] == 1:  # a product of two matrices is slow for one column
            _matrix_vector(gemv, scale, left, right, kept, output, threads)
        elif left.shape[0] == 1:
            _matrix_vector(gemv, scale, right.T, left, kept, output, threads)
        else:
            accumulate_product(scale, left, right, kept, output, threads)

    def copy_and_accumulate(
        held: Array, alpha: Array, left: Array, right: Array, beta: Array, output: Array
    ) -> None:
        np.copyto(output, held)
        accumulate(alpha, left, right, beta, output)

    return accumulate if op.inplace else copy_and_accumulate


def _matrix_vector(
    gemv: Routine,
    alpha: float,
    matrix: Array,
    vector: Array,
    beta: float,
    output: Array,
    threads: int | None,
) -> None:
    """``output = alpha * matrix @ vector + beta * output``, for contiguous ones of one column or one row."""
    vector, output = vector.reshape(-1), output.reshape(-1)
    if not matrix.size:
        np.multiply(output, beta, out=output) if beta else output.fill(0)
        return
    if share_vector_product(alpha, matrix, vector, beta, output, threads):
        return
    if matrix.size >= HANDED_TO_NUMPY:
        _numpy_matrix_vector(alpha, matrix, vector, beta, output)
        return
    stored, transposed = _by_columns(matrix)
    with (matrix.size >= WOKEN_FROM_VECTOR and one_thread()) or _AS_IT_IS:
        gemv(alpha, stored, vector, beta, output, 0, 1, 0, 1, int(transposed), 1)


def _by_columns(matrix: Array) -> tuple[Array, bool]:
    """A matrix, or its transpose, by columns, and which it is: as native functions have it, whose sums of
    products are in another order for the one than for the other. What lies in neither order is copied by
    rows."""
    if matrix.flags.c_contiguous:
        return matrix.T, True
    down, across = (stride // matrix.itemsize for stride in matrix.strides)
    order = order_of(matrix.shape, (down, across))
    if order is not None and order[0] == "F":
        return matrix, False
    return np.ascontiguousarray(matrix).T, True


def _numpy_matrix_vector(alpha: float, matrix: Array, vector: Array, beta: float, output: Array) -> None:
    """The same through NumPy: memory sets the pace, whatever the core type, and what is added is short."""
    with np.errstate(all="ignore"), one_thread("numpy") or _AS_IT_IS:
        if alpha == 1.0 and beta == 0.0:
            np.dot(matrix, vector, output)
            return
        product = np.dot(matrix, vector)
        if beta != 1.0:
            np.multiply(output, beta, out=output) if beta else output.fill(0)
        if alpha == -1.0:
            np.subtract(output, product, out=output)
        else:
            product *= alpha
            np.add(output, product, out=output)


def _product(
    gemm: Routine, gemv: Routine, threads: int | None, left: Array, right: Array, output: Array
) -> None:
    if right.shape[1] == 1:
        times_column(gemv, threads, left, right, output)
        return
    if left.shape[0] == 1:
        _row_times(gemv, threads, left, right, output)
        return
    multiplications = left.shape[0] * right.size
    if multiplications < HANDED_TO_NUMPY or left.shape[1] == 1:
        with (multiplications >= WOKEN_FROM and one_thread()) or _AS_IT_IS:
            _scaled_product(gemm, 1.0, left, right, 0.0, output)
    elif not share_product(1.0, left, right, 0.0, output, threads):
        alone = granted_threads(threads) == 1
        if scipy_is_faster():
            with (alone and one_thread()) or _AS_IT_IS:
                _scaled_product(gemm, 1.0, left, right, 0.0, output)
        else:
            with np.errstate(all="ignore"), (alone and one_thread("numpy")) or _AS_IT_IS:
                np.dot(left, right, output)


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


def times_column(gemv: Routine, threads: int | None, left: Array, right: Array, output: Array) -> None:
    """Write the product of a matrix with a column."""
    _matrix_vector(gemv, 1.0, left, right, 0.0, output, threads)


def _row_times(gemv: Routine, threads: int | None, left: Array, right: Array, output: Array) -> None:
    times_column(gemv, threads, right.T, left, output)


def _stacked_product(multiply: Routine, left: Array, right: Array, output: Array) -> None:
    """A batch of matrices times one matrix: where the batch lies in one piece, one product."""
    inner, columns = right.shape[-2:]
    if left.flags.c_contiguous and inner and columns:
        flat = output.reshape(-1, columns)
        multiply(left.reshape(-1, inner), right.reshape(inner, columns), flat)
    else:
        _numpy_product(left, right, output)


def _numpy_product(left: Array, right: Array, output: Array) -> None:
    with np.errstate(all="ignore"):
        np.matmul(left, right, out=output)
