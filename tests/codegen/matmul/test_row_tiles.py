"""Products and sums of short rows: exact where numbers are, for vectors of any width."""

import numpy as np
import pytest
from codegen.targets import host_with
from numba.core import types

from esat.codegen.cache import CompiledKernel, CompileOptions, KernelCache
from esat.codegen.ground.target import Target
from esat.codegen.matmul.row_tiles import add_rows, lanes_of, multiply_rows

KERNELS = KernelCache(None)


@pytest.fixture(params=[16, 32, 64])
def target(request: pytest.FixtureRequest) -> Target:
    """Machines with vectors of so many bytes."""
    return host_with(request.param)


def compiled(intrinsic: object, target: Target, dtype: str = "float64") -> CompiledKernel:
    """A kernel that calls an intrinsic of a matrix, two places, two vectors, and maybe another place."""
    ahead = ", ahead" if intrinsic is add_rows else ""
    names = f"matrix, low, high, along, across{ahead}"
    source = f"def kernel({names}):\n    intrinsic({names})\n"
    number, word = getattr(types, dtype), types.int64
    matrix, vector = (types.Array(number, rank, "C") for rank in (2, 1))
    signature = types.void(matrix, word, word, vector, vector, *[word] * bool(ahead))
    environment = {"intrinsic": intrinsic}
    return KERNELS.load_or_compile(source, "kernel", signature, environment, CompileOptions(target))


def sizes(lanes: int) -> list[tuple[int, int]]:
    """Rows and columns: whole vectors and parts of them, tiles of each width, several of the widest."""
    columns = [lanes, lanes + 1, 2 * lanes, 3 * lanes - 1, 7 * lanes, 8 * lanes, 15 * lanes + 1, 25 * lanes]
    return [(rows, one) for rows in (0, 1, 2, lanes - 1, lanes, 3 * lanes + 1) for one in columns]


def integers(*shape: int, dtype: str) -> np.ndarray:
    """Small ones, whose sums of products are exact."""
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_rows(target: Target, dtype: str) -> None:
    multiply, lanes = compiled(multiply_rows, target, dtype), lanes_of(target, np.dtype(dtype).itemsize)
    for rows, columns in sizes(lanes):
        matrix, vector = integers(rows + 5, columns + 3, dtype=dtype), integers(columns, dtype=dtype)
        products = np.full(rows + 2, np.nan, dtype)
        multiply(matrix, 4, 4 + rows, vector, products)
        assert np.array_equal(products[:rows], matrix[4 : 4 + rows, :columns] @ vector)
        assert np.isnan(products[rows:]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_multiples_of_rows(target: Target, dtype: str) -> None:
    add, lanes = compiled(add_rows, target, dtype), lanes_of(target, np.dtype(dtype).itemsize)
    for rows, columns in sizes(lanes):
        matrix, factors = integers(rows + 5, columns + 3, dtype=dtype), integers(rows, dtype=dtype)
        total = integers(columns, dtype=dtype)
        right = total + factors @ matrix[2 : 2 + rows, :columns]
        add(matrix, 2, 2 + rows, total, factors, rows)
        assert np.array_equal(total, right)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_two_vectors_have_in_common_counts_once(target: Target, value: float) -> None:
    lanes = lanes_of(target, 8)
    multiply, add = compiled(multiply_rows, target), compiled(add_rows, target)
    matrix, vector = np.ones((lanes + 1, 2 * lanes - 1)), np.ones(2 * lanes - 1)
    matrix[:, lanes - 1], products = value, np.zeros(lanes + 1)
    multiply(matrix, 0, lanes + 1, vector, products)
    assert np.array_equal(products, np.full(lanes + 1, value), equal_nan=True)
    vector[lanes - 1] = 0.0
    matrix[:, lanes - 1] = 7.0
    multiply(matrix, 0, lanes + 1, vector, products)
    assert np.array_equal(products, np.full(lanes + 1, 2.0 * lanes - 2.0))
    total = np.zeros(2 * lanes - 1)
    add(matrix, 0, lanes + 1, total, np.ones(lanes + 1), 0)
    assert np.array_equal(total, matrix.sum(axis=0))
