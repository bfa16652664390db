"""Products in parts: NumPy's values for all shapes and layouts, the same bits in any number of threads."""

import os
from typing import Any

import numpy as np
import pytest
from callers import call_at_once

from esat.codegen.ground.blas_library import OneThread, one_thread, wakes_threads
from esat.codegen.matmul import shared_products
from esat.codegen.matmul.blas import accumulate_product
from esat.codegen.matmul.shared_products import share_product, share_vector_product

TOLERANCE = {"float32": 1e-4, "float64": 1e-12}
ORDERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "rows apart": lambda a: np.concatenate([a, a], axis=1)[:, : a.shape[1]],
    "columns apart": lambda a: np.concatenate([a, a], axis=0).copy("F")[: a.shape[0]],
}
LONG = [(3001, 40, 25), (40, 3001, 25), (2500, 9, 70), (9, 4000, 40), (4100, 16, 8), (320, 60, 50)]

pytestmark = pytest.mark.skipif(one_thread() is None, reason="SciPy's BLAS is not the OpenBLAS of its wheel")


def operands(sizes: tuple[int, int, int], dtype: str, orders: tuple[str, str]) -> tuple[Any, Any]:
    rows, inner, columns = sizes
    generator = np.random.default_rng(rows + inner)
    left, right = generator.normal(size=(rows, inner)), generator.normal(size=(inner, columns))
    return ORDERS[orders[0]](left.astype(dtype)), ORDERS[orders[1]](right.astype(dtype))


def close(found: Any, wanted: Any, dtype: str) -> None:
    np.testing.assert_allclose(
        found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * np.abs(wanted).max()
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", LONG, ids=str)
def test_all_layouts_in_any_number_of_threads(sizes: tuple[int, int, int], dtype: str) -> None:
    for first in ORDERS:
        for second in ORDERS:
            left, right = operands(sizes, dtype, (first, second))
            results = []
            for threads in (1, 2, 5):
                results.append(np.full((sizes[0], sizes[2]), np.nan, dtype))
                assert share_product(1.0, left, right, 0.0, results[-1], threads)
            close(results[0], left.astype("float64") @ right.astype("float64"), dtype)
            assert np.array_equal(results[0], results[1])
            assert np.array_equal(results[0], results[2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", [(4003, 150), (150, 4003), (5, 110_000), (110_000, 5), (800, 801)], ids=str)
def test_columns_in_several_threads(sizes: tuple[int, int], dtype: str) -> None:
    for order in ORDERS:
        matrix, column = operands((*sizes, 2), dtype, (order, "F"))
        for vector in (column[:, 0], np.ascontiguousarray(column)[:, 1]):
            results = []
            for threads in (2, 3, 5):
                results.append(np.full(sizes[0], np.nan, dtype))
                assert share_vector_product(1.0, matrix, vector, 0.0, results[-1], threads)
            close(results[0], matrix.astype("float64") @ vector.astype("float64"), dtype)
            assert np.array_equal(results[0], results[1])
            assert np.array_equal(results[0], results[2])
            output = results[0].copy()
            assert share_vector_product(-0.5, matrix, vector, 2.0, output, 2)
            close(output, 1.5 * results[0], dtype)


@pytest.mark.parametrize("sizes", LONG, ids=str)
def test_scaled_and_added_in_place(sizes: tuple[int, int, int]) -> None:
    left, right = operands(sizes, "float64", ("C", "C"))
    start = np.random.default_rng(1).normal(size=(sizes[0], sizes[2]))
    for alpha, beta in ((-0.5, 1.0), (2.0, 0.25)):
        output = start.copy()
        accumulate_product(alpha, left, right, beta, output, 2)
        close(output, alpha * (left @ right) + beta * start, "float64")


@pytest.mark.parametrize(
    ("sizes", "orders", "dtype"),
    [
        ((20, 20, 20), ("C", "C"), "float64"),
        ((700, 600, 800), ("C", "C"), "float64"),
        ((3001, 40, 25), ("C", "C"), "complex128"),
    ],
    ids=str,
)
def test_what_is_not_shared_is_left_alone(
    sizes: tuple[int, int, int], orders: tuple[str, str], dtype: str
) -> None:
    left, right = operands(sizes, dtype, orders)
    output = np.full((sizes[0], sizes[2]), 7, dtype)
    assert not share_product(1.0, left, right, 0.0, output, 2)
    assert (output == 7).all()


def test_operands_in_no_order_are_left_alone() -> None:
    left, right = operands((3001, 80, 25), "float64", ("C", "C"))
    output = np.full((3001, 25), 7.0)
    assert not share_product(1.0, left[:, ::2], right[:40], 0.0, output, 2)
    assert not share_product(1.0, left[::-1], right, 0.0, output, 2)
    matrix, vector = np.ones((1500, 1500)), np.ones(1500)
    assert not share_vector_product(1.0, matrix[:, ::2], vector[:750], 0.0, vector.copy(), 2)
    assert not share_vector_product(1.0, matrix, vector[::-1], 0.0, vector.copy(), 2)
    assert not share_vector_product(1.0, matrix, vector, 0.0, vector.copy(), 1)


def test_another_blas_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_products, "one_thread", lambda: None)
    left, right = operands((3001, 40, 25), "float64", ("C", "C"))
    assert not share_product(1.0, left, right, 0.0, np.empty((3001, 25)), 2)


def test_what_is_not_finite_spreads() -> None:
    left, right = operands((40, 3001, 25), "float64", ("C", "C"))
    left[3, 2000] = np.inf
    right[2000, 4] = 0.0
    output = np.empty((40, 25))
    assert share_product(1.0, left, right, 0.0, output, 2)
    with np.errstate(invalid="ignore"):
        wanted = left @ right
    assert np.array_equal(np.isnan(output), np.isnan(wanted))
    assert np.array_equal(np.isinf(output), np.isinf(wanted))


def test_several_python_threads_may_call_at_once() -> None:
    left, right = operands((3001, 40, 25), "float64", ("C", "C"))
    wanted = np.empty((3001, 25))
    assert share_product(1.0, left, right, 0.0, wanted, 1)

    def call() -> None:
        for _ in range(50):
            output = np.empty((3001, 25))
            assert share_product(1.0, left, right, 0.0, output, 3)
            assert np.array_equal(output, wanted)

    call_at_once(call, 4)


class _Library:
    """A library's number of threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def count(self) -> int:
        return self.threads

    def limit(self, threads: int) -> None:
        self.threads = threads


def test_the_library_has_its_threads_again_when_the_last_one_leaves() -> None:
    library = _Library(4)
    alone = OneThread(library.count, library.limit)
    with alone:
        assert library.threads == 1
        with alone:
            assert library.threads == 1
        assert library.threads == 1
    assert library.threads == 4
    with pytest.raises(ZeroDivisionError), alone:
        raise ZeroDivisionError
    assert library.threads == 4


def test_which_products_wake_threads() -> None:
    assert wakes_threads(64, 64, 64)
    assert wakes_threads(96, 96, 1)
    assert wakes_threads(1, 96, 96)
    assert not wakes_threads(64, 63, 64)
    assert not wakes_threads(95, 95, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_those_inside() -> None:
    library = _Library(4)
    alone = OneThread(library.count, library.limit)
    with alone:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                entered = library.threads == 4
                with alone:
                    entered = entered and library.threads == 1
                status = 0 if entered and library.threads == 4 else 1
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert library.threads == 4
