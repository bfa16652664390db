"""Products with sparse matrices by kernels of the width of the dense operand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from codegen.targets import HOST

import esat
from esat import sparse
from esat.codegen.sparse import sparse_calls
from esat.codegen.sparse.sparse_calls import LEAST_WORK, WIDEST
from esat.codegen.sparse.sparse_pass import sparse_routine
from esat.errors import ShapeError
from esat.ops.sparse.passes import USMM
from esat.ops.sparse.products import STRUCTURED_DOT

GENERATOR = np.random.default_rng(3)
TOLERANCE = {"float32": 1e-4, "float64": 1e-12}


def stored(format: str, dtype: str, shape: tuple[int, int] = (300, 200), density: float = 0.3) -> Any:
    matrix = scipy.sparse.random_array(shape, density=density, format=format, rng=GENERATOR)
    return matrix.astype(dtype)


def numbers(*shape: int, dtype: str = "float64") -> Any:
    return GENERATOR.normal(size=shape).astype(dtype)


def refused(*_arguments: Any) -> Any:
    raise AssertionError("SciPy was asked")


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 10, 15, 31, 32])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_product_and_its_addition(
    format: str, dtype: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix, dense = stored(format, dtype), numbers(200, width, dtype=dtype)
    added, output = numbers(300, width, dtype=dtype), np.full((300, width), np.nan, dtype)
    wanted = matrix @ dense
    assert matrix.nnz * width >= LEAST_WORK
    for op in (STRUCTURED_DOT, USMM):
        monkeypatch.setattr(type(op), "computed", refused)
    sparse_routine(STRUCTURED_DOT, dtype, HOST, 1)(matrix, dense, output)
    np.testing.assert_allclose(output, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    sparse_routine(USMM, dtype, HOST, 1)(np.array(-2.0, dtype), matrix, dense, added, output)
    np.testing.assert_allclose(output, added - 2 * wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("width", [0, 5, WIDEST + 1])
@pytest.mark.parametrize("density", [0.0, 0.001, 0.3])
@pytest.mark.parametrize("dtype", ["int64", "complex128", "float64"])
def test_all_others_by_scipy(width: int, density: float, dtype: str) -> None:
    matrix, dense = stored("csr", dtype, density=density), (10 * numbers(200, width)).astype(dtype)
    output = np.empty((300, width), dtype)
    sparse_routine(STRUCTURED_DOT, dtype, HOST, 1)(matrix, dense, output)
    np.testing.assert_allclose(output, matrix @ dense, rtol=1e-12, atol=1e-12)


def test_places_of_64_bits_and_operands_of_any_layout() -> None:
    matrix, dense = stored("csr", "float64"), np.asfortranarray(numbers(200, 10))
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    output = np.empty((300, 10))
    sparse_routine(STRUCTURED_DOT, "float64", HOST, 1)(matrix, dense, output)
    np.testing.assert_allclose(output, matrix @ dense, rtol=1e-12, atol=1e-12)


def test_what_is_not_finite_is_multiplied_where_it_is_stored() -> None:
    matrix, dense = stored("csr", "float64", (400, 400)), numbers(400, 9)
    dense[3, 4], dense[5, 6] = np.inf, np.nan
    output = np.empty((400, 9))
    sparse_routine(STRUCTURED_DOT, "float64", HOST, 1)(matrix, dense, output)
    np.testing.assert_allclose(output, matrix @ dense, rtol=1e-12, atol=1e-12)


def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_calls, "SHARED_FROM", 1)
    matrix, dense = stored("csr", "float64", (3001, 200)), numbers(200, 10)
    results = [np.empty((3001, 10)) for _ in range(3)]
    for threads, output in enumerate(results, 1):
        sparse_routine(STRUCTURED_DOT, "float64", HOST, threads)(matrix, dense, output)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="structured_dot"):
        sparse_routine(STRUCTURED_DOT, "float64", HOST, 1)(
            stored("csr", "float64"), numbers(201, 5), np.empty((300, 5))
        )


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_compiled_programs_use_the_kernels(format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = sparse.csr_matrix if format == "csr" else sparse.csc_matrix
    x, d, z, a = make("x"), esat.matrix("d"), esat.matrix("z"), esat.scalar("a")
    product = STRUCTURED_DOT(x, d)
    function = esat.compile(esat.Graph([x, d, z, a], [product, a * product + z]))
    matrix, dense, added = stored(format, "float64"), numbers(200, 10), numbers(300, 10)
    wanted = matrix @ dense
    for op in (STRUCTURED_DOT, USMM):
        monkeypatch.setattr(type(op), "computed", refused)
    for _ in range(2):
        plain, scaled = function(matrix, dense, added, 1.5)
        np.testing.assert_allclose(plain, wanted, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(scaled, 1.5 * wanted + added, rtol=1e-12, atol=1e-12)
    with pytest.raises(ShapeError):
        function(matrix, numbers(201, 10), added, 1.5)
