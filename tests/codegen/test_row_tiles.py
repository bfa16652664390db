"""Products and sums of short rows: exact where numbers are, for vectors of any width."""

import numba
import numpy as np
import pytest

from esat.codegen import processor, row_tiles
from esat.codegen.row_tiles import add_rows, lanes_of, multiply_rows


@pytest.fixture(params=[16, 32, 64])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of a vector; LLVM makes several of one that is too long for the processor."""
    monkeypatch.setattr(row_tiles, "vector_bytes", lambda: request.param)
    return request.param


def compiled(intrinsic: object) -> object:
    @numba.njit  # type: ignore[untyped-decorator]
    def call(matrix, low, high, along, across, *ahead):  # type: ignore[no-untyped-def]
        intrinsic(matrix, low, high, along, across, *ahead)  # type: ignore[operator]

    return call


def sizes(lanes: int) -> list[tuple[int, int]]:
    """Rows and columns: whole vectors and parts of them, tiles of each width, several of the widest."""
    columns = [lanes, lanes + 1, 2 * lanes, 3 * lanes - 1, 7 * lanes, 8 * lanes, 15 * lanes + 1, 25 * lanes]
    return [(rows, one) for rows in (0, 1, 2, lanes - 1, lanes, 3 * lanes + 1) for one in columns]


def integers(*shape: int, dtype: str) -> np.ndarray:
    """Small ones, whose sums of products are exact."""
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_rows(width: int, dtype: str) -> None:
    multiply, lanes = compiled(multiply_rows), lanes_of(np.dtype(dtype).itemsize)
    for rows, columns in sizes(lanes):
        matrix, vector = integers(rows + 5, columns + 3, dtype=dtype), integers(columns, dtype=dtype)
        products = np.full(rows + 2, np.nan, dtype)
        multiply(matrix, 4, 4 + rows, vector, products)  # type: ignore[operator]
        assert np.array_equal(products[:rows], matrix[4 : 4 + rows, :columns] @ vector)
        assert np.isnan(products[rows:]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_multiples_of_rows(width: int, dtype: str) -> None:
    add, lanes = compiled(add_rows), lanes_of(np.dtype(dtype).itemsize)
    for rows, columns in sizes(lanes):
        matrix, factors = integers(rows + 5, columns + 3, dtype=dtype), integers(rows, dtype=dtype)
        total = integers(columns, dtype=dtype)
        right = total + factors @ matrix[2 : 2 + rows, :columns]
        add(matrix, 2, 2 + rows, total, factors, rows)  # type: ignore[operator]
        assert np.array_equal(total, right)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_two_vectors_have_in_common_counts_once(width: int, value: float) -> None:
    lanes = lanes_of(8)
    matrix, vector = np.ones((lanes + 1, 2 * lanes - 1)), np.ones(2 * lanes - 1)
    matrix[:, lanes - 1], products = value, np.zeros(lanes + 1)
    compiled(multiply_rows)(matrix, 0, lanes + 1, vector, products)  # type: ignore[operator]
    assert np.array_equal(products, np.full(lanes + 1, value), equal_nan=True)
    vector[lanes - 1] = 0.0
    matrix[:, lanes - 1] = 7.0
    compiled(multiply_rows)(matrix, 0, lanes + 1, vector, products)  # type: ignore[operator]
    assert np.array_equal(products, np.full(lanes + 1, 2.0 * lanes - 2.0))
    total = np.zeros(2 * lanes - 1)
    compiled(add_rows)(matrix, 0, lanes + 1, total, np.ones(lanes + 1), 0)  # type: ignore[operator]
    assert np.array_equal(total, matrix.sum(axis=0))


@pytest.mark.parametrize(
    ("features", "width"), [({"+avx", "+avx512f"}, 64), ({"+avx", "-avx512f"}, 32), ({"+sse2", "-avx"}, 16)]
)
def test_the_processor_says_how_long_vectors_are(
    features: set[str], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_features", lambda: features)
    assert processor.vector_bytes.__wrapped__() == width
