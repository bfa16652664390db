import itertools
from typing import Any

import numpy as np
import pytest
from codegen.targets import HOST

from esat.codegen.ground import blas_library
from esat.codegen.matmul import structured as module
from esat.codegen.routines import routine_for
from esat.graph import TensorType
from esat.ops.linalg.structured import STRUCTURED_PRODUCTS, StructuredProduct

ORDERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    "reversed": lambda a: np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1],
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
}
SIZES = [0, 1, 2, 3, 9, 20]
KEPT = {
    "lower": np.tril,
    "upper": np.triu,
    "diagonal": lambda a: np.tril(np.triu(a)),
    "tridiagonal": lambda a: np.tril(np.triu(a, -1), 1),
    "symmetric": lambda a: np.tril(a) + np.tril(a, -1).T,
}


def structured(structure: str, size: int, dtype: str) -> Any:
    return KEPT[structure](np.random.default_rng(size).normal(size=(size, size)).astype(dtype))


def other(rows: int, columns: int, dtype: str) -> Any:
    return np.random.default_rng(5).normal(size=(rows, columns)).astype(dtype)


def operands_of(op: StructuredProduct, size: int, count: int, dtype: str) -> tuple[Any, Any]:
    if op.structure == "gram":
        left = other(size, count, dtype)
        return left, left.T
    matrix = structured(op.structure, size, dtype)
    if op.side == "left":
        return matrix, other(size, count, dtype)
    return other(count, size, dtype), matrix


def routine(op: StructuredProduct, dtype: str) -> Any:
    left: list[int | None] = [None, None]
    right: list[int | None] = [None, None]
    if op.structure == "symmetric":  # by a column or a row only
        (right if op.side == "left" else left)[op.side == "left"] = 1
    types = TensorType(dtype, shape=tuple(left)), TensorType(dtype, shape=tuple(right))
    return routine_for(op.make_node(types[0]("x"), types[1]("y")), HOST)


def check(op: StructuredProduct, left: Any, right: Any) -> None:
    expected = np.matmul(left, right)
    output = np.full(expected.shape, np.nan, expected.dtype)
    kept = left.copy(), right.copy()
    routine(op, expected.dtype.name)(left, right, output)
    tolerance = 1e-4 if expected.dtype == np.float32 else 1e-12
    assert np.allclose(output, expected, rtol=tolerance, atol=tolerance)
    assert np.array_equal(left, kept[0])
    assert np.array_equal(right, kept[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", STRUCTURED_PRODUCTS, ids=str)
def test_products_of_all_layouts_and_sizes(op: StructuredProduct, dtype: str) -> None:
    counts = [1] if op.structure == "symmetric" else SIZES
    for size, count in itertools.product(SIZES, counts):
        left, right = operands_of(op, size, count, dtype)
        for one, two in itertools.product(ORDERS.values(), repeat=2):
            check(op, one(left), two(right))


@pytest.mark.parametrize("op", STRUCTURED_PRODUCTS, ids=str)
def test_what_is_not_square_is_multiplied_as_any_matrix(op: StructuredProduct) -> None:
    square, narrow = other(4, 4, "float64"), other(4, 3, "float64")
    if op.structure == "gram":
        check(op, narrow, narrow.T)
    elif op.side == "left":
        check(op, narrow, square[:3, :1])
    else:
        check(op, square[:1], narrow)


@pytest.mark.parametrize("op", STRUCTURED_PRODUCTS, ids=str)
def test_the_librarys_threads_are_left_asleep_unless_there_is_much_to_do(
    op: StructuredProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = blas_library.one_thread()
    if alone is None:
        pytest.skip("SciPy's BLAS is not the OpenBLAS of its wheel")
    by_loops = op.structure in ("diagonal", "tridiagonal")
    for threads, most, wanted in ((1, 0, [1]), (2, 1 << 30, [1]), (2, 0, [alone.count()])):
        monkeypatch.setattr(module, "SHARED_FROM", most)
        monkeypatch.setattr(module, "SHARED_FROM_VECTOR", most)
        left, right = operands_of(op, 96, 1 if op.structure == "symmetric" else 50, "float64")
        found: list[int] = []

        def seen(*operands: Any, found: list[int] = found) -> None:
            found.append(alone.count())
            np.matmul(*operands[:2], out=operands[2])

        monkeypatch.setattr(module, "_routine", lambda *_, seen=seen: seen)
        function = module.structured_routine(op, "float64", HOST, threads)
        function(left, right, np.empty((left.shape[0], right.shape[1])))
        assert found == ([alone.count()] if by_loops else wanted)
