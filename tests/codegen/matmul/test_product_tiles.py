"""Products in tiles of registers: exact where numbers are, for all sizes, strides and widths of vectors."""

from typing import Any

import numpy as np
import pytest
from codegen.targets import host_with
from numba.core import types

from esat.codegen.cache import CompiledKernel, CompileOptions, KernelCache
from esat.codegen.ground.target import Target
from esat.codegen.matmul.product_tiles import add_tiles, multiply_tiles, pack_columns, packed_size
from esat.codegen.matmul.row_tiles import lanes_of

KERNELS = KernelCache(None)
ROWS, INNER = (1, 3, 4, 6, 7, 25), (1, 2, 9, 30)


@pytest.fixture(params=[16, 32, 64])
def target(request: pytest.FixtureRequest) -> Target:
    """Machines with vectors of so many bytes."""
    return host_with(request.param)


def compiled(text: str, target: Target, dtype: str, *numbers: str) -> CompiledKernel:
    """A kernel that packs a matrix and multiplies by it; operands may be of any layout."""
    parameters = ", ".join(("left", "right", "packed", "output", *numbers))
    source = f"def kernel({parameters}):\n    pack_columns(right, packed)\n    {text}\n"
    number = getattr(types, dtype)
    matrix, vector, read = (types.Array(number, *kind) for kind in ((2, "C"), (1, "C"), (2, "A")))
    signature = types.void(matrix, read, vector, matrix, *(types.int64 for _ in numbers))
    environment = {
        "pack_columns": pack_columns,
        "multiply_tiles": multiply_tiles,
        "add_tiles": add_tiles,
    }
    return KERNELS.load_or_compile(source, "kernel", signature, environment, CompileOptions(target))


def products(target: Target, dtype: str = "float64") -> CompiledKernel:
    return compiled("multiply_tiles(left, packed, output)", target, dtype)


def sums(target: Target, dtype: str = "float64") -> CompiledKernel:
    return compiled("add_tiles(left, packed, output, kept)", target, dtype, "kept")


def integers(*shape: int, dtype: str) -> np.ndarray:
    """Small ones, whose sums of products are exact."""
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


def columns_of(target: Target, itemsize: int) -> list[int]:
    """Whole vectors and parts of them, one to six: tiles of each width."""
    lanes = lanes_of(target, itemsize)
    return [lanes, lanes + 1, 2 * lanes, 3 * lanes - 1, 3 * lanes, 5 * lanes - 2, 6 * lanes]


def guarded(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """A matrix, and all of the memory that it is in the middle of."""
    memory = np.full((rows + 2, columns), 77, dtype)
    return memory[1:-1], memory


def assert_untouched(memory: np.ndarray) -> None:
    assert (memory[[0, -1]] == 77).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_products(target: Target, transposed: bool, dtype: str) -> None:
    multiply, itemsize = products(target, dtype), np.dtype(dtype).itemsize
    for columns in columns_of(target, itemsize):
        for inner in INNER:
            shape = (columns, inner) if transposed else (inner, columns)
            right = integers(*shape, dtype=dtype)
            right = right.T if transposed else right
            packed = np.full(packed_size(inner, columns, target, itemsize) + 1, 77, dtype)
            for rows in ROWS:
                left, (output, memory) = integers(rows, inner, dtype=dtype), guarded(rows, columns, dtype)
                multiply(left, right, packed, output)
                assert np.array_equal(output, left @ right)
                assert_untouched(memory)
                assert packed[-1] == 77


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kept", [False, True])
def test_sums_over_rows(target: Target, kept: bool, dtype: str) -> None:
    add, itemsize = sums(target, dtype), np.dtype(dtype).itemsize
    for columns in columns_of(target, itemsize):
        for inner in INNER:
            right = integers(inner, columns, dtype=dtype)
            packed = np.empty(packed_size(inner, columns, target, itemsize), dtype)
            for rows in ROWS:
                left, (output, memory) = integers(inner, rows, dtype=dtype), guarded(rows, columns, dtype)
                output[...] = integers(rows, columns, dtype=dtype) if kept else np.nan
                wanted = left.T @ right + (output if kept else 0)
                add(left, right, packed, output, int(kept))
                assert np.array_equal(output, wanted)
                assert_untouched(memory)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_stays_in_its_row_and_column(target: Target, value: float) -> None:
    lanes = lanes_of(target, 8)
    left, right = np.ones((7, 5)), np.ones((5, lanes + 1))
    left[6, 2] = right[1, lanes] = value
    output, packed = np.empty((7, lanes + 1)), np.empty(packed_size(5, lanes + 1, target, 8))
    products(target)(left, right, packed, output)
    assert np.array_equal(output, left @ right, equal_nan=True)


def test_sums_do_not_depend_on_what_lies_beside(target: Target) -> None:
    """Each row of a product is the same whichever rows it is computed with."""
    generator: Any = np.random.default_rng(1)
    left, right = generator.normal(size=(25, 30)), generator.normal(size=(30, 3 * lanes_of(target, 8) + 1))
    packed, multiply = np.empty(packed_size(*right.shape, target, 8)), products(target)
    whole = np.empty((25, right.shape[1]))
    multiply(left, right, packed, whole)
    for low, high in ((0, 1), (3, 10), (13, 25)):
        part = np.empty((high - low, right.shape[1]))
        multiply(left[low:high], right, packed, part)
        assert part.tobytes() == whole[low:high].tobytes()
