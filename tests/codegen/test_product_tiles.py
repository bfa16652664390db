"""Products in tiles of registers: exact where numbers are, for all sizes, strides and widths of vectors."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from esat.codegen import processor, row_tiles
from esat.codegen.product_tiles import add_tiles, multiply_tiles, pack_columns, packed_size
from esat.codegen.row_tiles import lanes_of

ROWS, INNER = (1, 3, 4, 6, 7, 25), (1, 2, 9, 30)


@pytest.fixture(params=[16, 32, 64])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of a vector; LLVM makes several of one that is too long for the processor."""
    monkeypatch.setattr(row_tiles, "vector_bytes", lambda: request.param)
    return request.param


def products() -> Callable[..., None]:
    @numba.njit  # type: ignore[untyped-decorator]
    def multiply(left, right, packed, output):  # type: ignore[no-untyped-def]
        pack_columns(right, packed)
        multiply_tiles(left, packed, output)

    return multiply


def sums() -> Callable[..., None]:
    @numba.njit  # type: ignore[untyped-decorator]
    def add(left, right, packed, output, kept):  # type: ignore[no-untyped-def]
        pack_columns(right, packed)
        add_tiles(left, packed, output, kept)

    return add


def integers(*shape: int, dtype: str) -> np.ndarray:
    """Small ones, whose sums of products are exact."""
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


def columns_of(itemsize: int) -> list[int]:
    """Whole vectors and parts of them, one to six: tiles of each width."""
    lanes = lanes_of(itemsize)
    return [lanes, lanes + 1, 2 * lanes, 3 * lanes - 1, 3 * lanes, 5 * lanes - 2, 6 * lanes]


def guarded(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A matrix, and all of the memory that it is in the middle of."""
    memory = np.full((rows + 2, columns), 77, dtype)
    return memory[1:-1], memory


def assert_untouched(memory: np.ndarray) -> None:
    assert (memory[[0, -1]] == 77).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("turned", [False, True])
def test_products(width: int, turned: bool, dtype: str) -> None:
    multiply, itemsize = products(), np.dtype(dtype).itemsize
    for columns in columns_of(itemsize):
        for inner in INNER:
            shape = (columns, inner) if turned else (inner, columns)
            right = integers(*shape, dtype=dtype)
            right = right.T if turned else right
            packed = np.full(packed_size(inner, columns, itemsize) + 1, 77, dtype)
            for rows in ROWS:
                left, (output, memory) = integers(rows, inner, dtype=dtype), guarded(rows, columns, dtype)
                multiply(left, right, packed, output)
                assert np.array_equal(output, left @ right)
                assert_untouched(memory)
                assert packed[-1] == 77


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kept", [False, True])
def test_sums_over_rows(width: int, kept: bool, dtype: str) -> None:
    add, itemsize = sums(), np.dtype(dtype).itemsize
    for columns in columns_of(itemsize):
        for inner in INNER:
            right = integers(inner, columns, dtype=dtype)
            packed = np.empty(packed_size(inner, columns, itemsize), dtype)
            for rows in ROWS:
                left, (output, memory) = integers(inner, rows, dtype=dtype), guarded(rows, columns, dtype)
                output[...] = integers(rows, columns, dtype=dtype) if kept else np.nan
                wanted = left.T @ right + (output if kept else 0)
                add(left, right, packed, output, kept)
                assert np.array_equal(output, wanted)
                assert_untouched(memory)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_row_and_column(value: float) -> None:
    lanes = lanes_of(8)
    left, right = np.ones((7, 5)), np.ones((5, lanes + 1))
    left[6, 2] = right[1, lanes] = value
    output, packed = np.empty((7, lanes + 1)), np.empty(packed_size(5, lanes + 1, 8))
    products()(left, right, packed, output)
    assert np.array_equal(output, left @ right, equal_nan=True)


@pytest.mark.parametrize(
    ("features", "tiled"),
    [
        ({"+avx", "+avx2", "+fma"}, True),
        ({"+avx", "+avx2", "+fma", "+avx512f"}, False),
        ({"+avx", "+avx2", "-fma"}, False),
        ({"+avx", "-avx2"}, False),
    ],
)
def test_the_processor_says_whether_tiles_are_worth_it(
    features: set[str], tiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_features", lambda: features)
    for function in (processor.vector_bytes, processor.tiles_products):
        monkeypatch.setattr(processor, function.__name__, function.__wrapped__)
    assert processor.tiles_products() is tiled


def test_sums_do_not_depend_on_what_lies_beside(width: int) -> None:
    """Each row of a product is the same whichever rows it is computed with."""
    generator: Any = np.random.default_rng(1)
    left, right = generator.normal(size=(25, 30)), generator.normal(size=(30, 3 * lanes_of(8) + 1))
    packed, multiply = np.empty(packed_size(*right.shape, 8)), products()
    whole = np.empty((25, right.shape[1]))
    multiply(left, right, packed, whole)
    for low, high in ((0, 1), (3, 10), (13, 25)):
        part = np.empty((high - low, right.shape[1]))
        multiply(left[low:high], right, packed, part)
        assert part.tobytes() == whole[low:high].tobytes()
