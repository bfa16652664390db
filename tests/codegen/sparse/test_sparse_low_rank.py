"""Products with a sparse matrix together with what has low rank, by kernels and where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from codegen.targets import HOST

from esat.codegen.sparse import sparse_calls
from esat.codegen.sparse.sparse_calls import LEAST_WORK, WIDEST
from esat.codegen.sparse.sparse_pass import ROWS, sparse_routine
from esat.errors import ShapeError
from esat.ops.sparse.passes import SQUARES_AND_QUADRATIC, USMM_PRODUCT, USMM_SHIFTED_PRODUCT

GENERATOR = np.random.default_rng(5)
SHAPE = (301, 200)


def stored(format: str, dtype: str, shape: tuple[int, int] = SHAPE, density: float = 0.3) -> Any:
    matrix = scipy.sparse.random_array(shape, density=density, format=format, rng=GENERATOR)
    return matrix.astype(dtype)


def operands(width: int, dtype: str = "float64", rows: int = SHAPE[0]) -> list[Any]:
    """Dense operands: that of the sparse matrix, the one beside its product, and the square one."""
    shapes = (SHAPE[1], width), (rows, width), (width, width)
    return [GENERATOR.normal(size=shape).astype(dtype) for shape in shapes]


def product_of(matrix: Any, others: list[Any], beta: float, threads: int | None = 1) -> Any:
    dtype = matrix.dtype.name
    output = np.full((matrix.shape[0], others[0].shape[1]), np.nan, dtype)
    op, shift = (USMM_SHIFTED_PRODUCT, [np.array(beta, dtype)]) if beta else (USMM_PRODUCT, [])
    sparse_routine(op, dtype, HOST, threads)(np.array(-2.0, dtype), matrix, *others, *shift, output)
    return output


def sum_of(matrix: Any, others: list[Any], threads: int | None = 1, alpha: float = -2.0) -> Any:
    dtype = matrix.dtype.name
    output = np.full((), np.nan, dtype)
    sparse_routine(SQUARES_AND_QUADRATIC, dtype, HOST, threads)(
        np.array(alpha, dtype), matrix, *others, output
    )
    return output


def check(matrix: Any, others: list[Any]) -> None:
    dense, left, square = (operand.astype(np.float64) for operand in others)
    plain = matrix.astype(np.float64)
    eps = np.finfo(matrix.dtype).eps
    for beta in (0.0, 0.3):
        wanted = -2.0 * (plain @ dense) + left @ square + beta * left
        size = 2.0 * (abs(plain) @ abs(dense)) + abs(left) @ abs(square) + beta * abs(left)
        found = product_of(matrix, others, beta)
        np.testing.assert_array_less(abs(found - wanted), 32 * eps * size + 1e-300)
    product = plain @ dense
    wanted = np.sum(plain.data**2) - 2.0 * np.sum(left * product) + np.sum(left * (left @ square))
    size = np.sum(abs(left) * (2.0 * (abs(plain) @ abs(dense)) + abs(left) @ abs(square))) + wanted + 1.0
    assert abs(float(sum_of(matrix, others)) - wanted) <= 32 * eps * abs(size)


def refused(*_arguments: Any) -> Any:
    raise AssertionError("computed without a kernel")


@pytest.mark.parametrize("width", [1, 2, 3, 7, 10, 16, 31, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels(width: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert round(0.3 * SHAPE[0] * SHAPE[1]) * width >= LEAST_WORK
    monkeypatch.setattr(np, "matmul", refused)
    for op in (USMM_PRODUCT, SQUARES_AND_QUADRATIC):
        monkeypatch.setattr(type(op), "computed", refused)
    check(stored("csr", dtype), operands(width, dtype))


@pytest.mark.parametrize("width", [0, 4, WIDEST + 1])
@pytest.mark.parametrize("density", [0.0, 0.001, 0.3])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_few_values_many_columns_and_the_other_format(format: str, density: float, width: int) -> None:
    check(stored(format, "float64", density=density), operands(width))


def test_places_of_64_bits_and_operands_of_any_layout() -> None:
    matrix, (dense, left, square) = stored("csr", "float64"), operands(10)
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    check(matrix, [np.asfortranarray(dense), np.repeat(left, 2, axis=0)[::2], square.T])


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_calls, "SHARED_FROM", 1)
    matrix = stored("csr", "float32", (40 * ROWS + 1, SHAPE[1]))
    others = operands(6, "float32", matrix.shape[0])
    products, sums = set(), set()
    for threads in (1, 2, 3):
        products.add(product_of(matrix, others, 0.5, threads).tobytes())
        sums.add(sum_of(matrix, others, threads).tobytes())
    assert len(products) == len(sums) == 1


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_no_product_with_a_scale_of_nothing(format: str) -> None:
    matrix, (dense, left, square) = stored(format, "float64"), operands(4)
    left[7, 1] = np.inf
    square[1] = [1.0, 2.0, 3.0, 4.0]
    found = product_of(matrix, [dense, left, square], 0.0)
    np.testing.assert_array_equal(found[7], np.inf)
    assert np.isfinite(np.delete(found, 7, axis=0)).all()
    found = product_of(matrix, [dense, left, square], -1e300)
    assert not np.isinf(found[7, 1]) or found[7, 1] < 0
    left[8, 2] = np.nan
    assert np.isnan(product_of(matrix, [dense, left, square], 0.0)[8]).all()
    assert np.isnan(sum_of(matrix, [dense, left, square]))


def test_rows_that_store_nothing_count_in_the_quadratic_form() -> None:
    matrix, others = stored("csr", "float64", density=0.2), operands(8)
    matrix.data[matrix.indptr[7] : matrix.indptr[20]] = 0
    matrix.eliminate_zeros()
    assert matrix.indptr[7] == matrix.indptr[20]
    check(matrix, others)
    # An infinite scale meets no zero that is not stored.
    dense, left, square = (abs(operand) for operand in others)
    assert sum_of(matrix, [dense, left, square], alpha=np.inf) == np.inf


def test_sizes_that_do_not_fit() -> None:
    matrix, (dense, left, square) = stored("csr", "float64"), operands(5)
    for others in ([dense[1:], left, square], [dense, left[1:], square], [dense, left, square[1:]]):
        with pytest.raises(ShapeError, match="usmm_product"):
            product_of(matrix, others, 0.0)
        with pytest.raises(ShapeError, match="squares_and_quadratic"):
            sum_of(matrix, others)
