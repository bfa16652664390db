"""Products of a large matrix with a vector by one call of BLAS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import esat
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.matmul import blas
from esat.codegen.matmul.vector_products import multiply_vector

GENERATOR = np.random.default_rng(6)

needs_control = pytest.mark.skipif(one_thread() is None, reason="SciPy's BLAS is no OpenBLAS")


def numbers(*shape: int, dtype: str = "float32") -> Any:
    return GENERATOR.normal(size=shape).astype(dtype)


@needs_control
@pytest.mark.parametrize("scales", [(1.0, 0.0), (-0.5, 0.0), (2.0, 1.0), (1.0, -0.25)])
@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (70, 33), (33, 70)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_products(order: Any, shape: tuple[int, int], scales: tuple[float, float]) -> None:
    alpha, beta = scales
    matrix, vector = np.asarray(numbers(*shape), order=order), numbers(shape[1])
    output = numbers(shape[0]) if beta else np.full(shape[0], np.nan, "float32")
    wanted = alpha * matrix.astype("float64") @ vector + (beta * output if beta else 0.0)
    assert multiply_vector(alpha, matrix, vector, beta, output)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


def test_others_are_left_alone() -> None:
    output = np.zeros(40, "float32")
    assert not multiply_vector(1.0, numbers(40, 60)[:, ::2], numbers(30), 0.0, output)
    assert not multiply_vector(1.0, numbers(40, 30), numbers(60)[::2], 0.0, output)
    wide = np.zeros(40)
    assert not multiply_vector(1.0, numbers(40, 30, dtype="float64"), numbers(30, dtype="float64"), 0.0, wide)
    assert not output.any()
    assert not wide.any()


@needs_control
def test_programs_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: Any) -> None:
        raise AssertionError("NumPy was asked")

    monkeypatch.setattr(blas, "_numpy_matrix_vector", refused)
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
