"""Sums over products with sparse matrices by kernels of the width of the dense operands."""

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
from esat.ops.sparse.passes import SPARSE_BILINEAR, SQUARES_AND_BILINEAR

GENERATOR = np.random.default_rng(4)


def stored(format: str, dtype: str, shape: tuple[int, int] = (301, 200), density: float = 0.3) -> Any:
    matrix = scipy.sparse.random_array(shape, density=density, format=format, rng=GENERATOR)
    return matrix.astype(dtype)


def numbers(*shape: int, dtype: str = "float64") -> Any:
    return GENERATOR.normal(size=shape).astype(dtype)


def refused(*_arguments: Any) -> Any:
    raise AssertionError("computed without a kernel")


def by_numpy(alpha: float, matrix: Any, dense: Any, other: Any) -> tuple[float, float, float]:
    """Both sums in float64, and the sum of the magnitudes of their terms."""
    matrix, dense, other = (operand.astype(np.float64) for operand in (matrix, dense, other))
    product = float(np.sum(other * (matrix @ dense)))
    size = float(np.sum(abs(other) * (abs(matrix) @ abs(dense))))
    return product, float(np.sum(matrix.data**2)) + alpha * product, size


def check(format: str, dtype: str, width: int, threads: int | None = 1, density: float = 0.3) -> list[float]:
    matrix, dense = stored(format, dtype, density=density), numbers(200, width, dtype=dtype)
    other = numbers(301, width, dtype=dtype)
    results = []
    wanted = by_numpy(-2.0, matrix, dense, other)
    output = np.full((), np.nan, dtype)
    sparse_routine(SPARSE_BILINEAR, dtype, HOST, threads)(matrix, dense, other, output)
    results.append(float(output))
    sparse_routine(SQUARES_AND_BILINEAR, dtype, HOST, threads)(
        np.array(-2.0, dtype), matrix, dense, other, output
    )
    results.append(float(output))
    np.testing.assert_allclose(results, wanted[:2], rtol=0, atol=8 * np.finfo(dtype).eps * (wanted[2] + 1e4))
    return results


@pytest.mark.parametrize("width", [1, 2, 3, 7, 10, 16, 31, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sums(format: str, dtype: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert round(0.3 * 301 * 200) * width >= LEAST_WORK
    for op in (SPARSE_BILINEAR, SQUARES_AND_BILINEAR):
        monkeypatch.setattr(type(op), "computed", refused)
    check(format, dtype, width)


@pytest.mark.parametrize("width", [0, 4, WIDEST + 1])
@pytest.mark.parametrize("density", [0.0, 0.001, 0.3])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_few_values_and_many_columns(format: str, density: float, width: int) -> None:
    check(format, "float64", width, density=density)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_threads_do_not_change_a_bit(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_calls, "SHARED_FROM", 1)
    matrix, dense = stored(format, "float32", (40 * ROWS + 1, 300)), numbers(300, 6, dtype="float32")
    other = numbers(40 * ROWS + 1, 6, dtype="float32")
    results = []
    for threads in (1, 2, 3):
        routine = sparse_routine(SQUARES_AND_BILINEAR, "float32", HOST, threads)
        for _ in range(4):  # in several threads first, then in one
            output = np.empty((), "float32")
            routine(np.float32(0.5), matrix, dense, other, output)
            results.append(output.tobytes())
    assert len(set(results)) == 1


def test_what_is_not_stored_counts_as_nothing() -> None:
    matrix = stored("csr", "float64")
    matrix.data[matrix.indptr[7] : matrix.indptr[8]] = 0
    matrix.eliminate_zeros()
    dense, other = numbers(200, 8), numbers(301, 8)
    wanted = np.sum(np.delete(other * (matrix @ dense), 7, axis=0))
    other[7] = np.inf
    for one in (matrix, matrix.tocsc()):
        output = np.empty(())
        sparse_routine(SPARSE_BILINEAR, "float64", HOST, 1)(one, dense, other, output)
        np.testing.assert_allclose(output, wanted, rtol=1e-10)
        np.testing.assert_allclose(SPARSE_BILINEAR.perform([one, dense, other])[0], wanted, rtol=1e-10)


def test_places_of_64_bits_and_operands_of_any_layout() -> None:
    matrix, dense = stored("csr", "float64"), np.asfortranarray(numbers(200, 10))
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    other = numbers(602, 10)[::2]
    output = np.empty(())
    sparse_routine(SPARSE_BILINEAR, "float64", HOST, 1)(matrix, dense, other, output)
    np.testing.assert_allclose(output, np.sum(other * (matrix @ dense)), rtol=1e-10)


def test_many_sums_in_single_precision_are_accurate() -> None:
    matrix = stored("csr", "float32", (30_000, 40), 0.5)
    dense, other = np.ones((40, 3), "float32"), np.ones((30_000, 3), "float32")
    output = np.empty((), "float32")
    sparse_routine(SPARSE_BILINEAR, "float32", HOST, 1)(matrix, dense, other, output)
    np.testing.assert_allclose(output, 3 * np.sum(matrix.data, dtype=np.float64), rtol=1e-6)


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="sparse_bilinear"):
        sparse_routine(SPARSE_BILINEAR, "float64", HOST, 1)(
            stored("csr", "float64"), numbers(200, 5), numbers(300, 5), np.empty(())
        )
