"""Products of a matrix with a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import esat
from esat.codegen.ground.blas_library import blas_function
from esat.codegen.matmul.blas import _matrix_vector

GENERATOR = np.random.default_rng(6)


def numbers(*shape: int, dtype: str = "float32") -> Any:
    return GENERATOR.normal(size=shape).astype(dtype)


@pytest.mark.parametrize("scales", [(1.0, 0.0), (-0.5, 0.0), (2.0, 1.0), (1.0, -0.25)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (70, 33), (33, 70), (800, 700)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products(order: Any, shape: tuple[int, int], scales: tuple[float, float]) -> None:
    alpha, beta = scales
    matrix, vector = np.asarray(numbers(*shape), order=order), numbers(shape[1])
    output = numbers(shape[0]) if beta else np.full(shape[0], np.nan, "float32")
    wanted = alpha * matrix.astype("float64") @ vector + (beta * output if beta else 0.0)
    _matrix_vector(blas_function("sgemv"), alpha, matrix, vector, beta, output, 1)
    np.testing.assert_allclose(output, wanted, rtol=1e-4, atol=1e-4)


def test_products_of_programs() -> None:
    a, x, y = (
        esat.matrix("a", dtype="float32"),
        esat.vector("x", dtype="float32"),
        esat.vector("y", dtype="float32"),
    )
    function = esat.compile(
        esat.Graph([a, x, y], [a @ x, y @ a, a.T @ y + x]), esat.Mode("fast_run", threads=1)
    )
    matrix, right, left = numbers(900, 800), numbers(800), numbers(900)
    product, row, added = function(matrix, right, left)
    np.testing.assert_allclose(product, matrix @ right, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(row, left @ matrix, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(added, matrix.T @ left + right, rtol=1e-3, atol=1e-3)
