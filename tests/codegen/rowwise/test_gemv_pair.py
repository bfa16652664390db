"""One pass over a matrix for ``a' f(a x)``: right for all sizes and layouts, and the same for any threads."""

from functools import partial

import numpy as np
import pytest
from codegen.targets import HOST, host_with

import esat
from esat.codegen import cache
from esat.codegen.matmul.row_tiles import lanes_of
from esat.codegen.routines import routine_for
from esat.codegen.rowwise.gemv_pair import (
    BLOCK,
    FEW_ROWS,
    LONGEST_ROW,
    MORE_ROWS,
    MORE_ROWS_FROM,
    PARTS,
    SHARED_FROM,
    TILED_TO,
    RowsRoutine,
    block_of,
    compile_rows,
    parts_of,
    rows_at_once,
)
from esat.graph import FunctionGraph
from esat.ops.linalg.normal import NORMAL_PRODUCT
from esat.ops.linalg.rows_product import RowsProduct

TOLERANCE = {"float32": 1e-4, "float64": 1e-12}


def routine(dtype: str, threads: int | None = 1, function: bool = True) -> RowsRoutine:
    """That of ``a' (tanh(a x) - scale y)``, which keeps the products and the hyperbolic tangents too."""
    matrix, column = esat.matrix("a", dtype=dtype), esat.tensor("x", shape=(None, 1), dtype=dtype)
    if not function:
        node = NORMAL_PRODUCT.make_node(matrix, column)
    else:
        products, y, scale = (
            esat.vector("p", dtype=dtype),
            esat.vector("y", dtype=dtype),
            esat.scalar("s", dtype=dtype),
        )
        bent = esat.tanh(products)
        middle = FunctionGraph([products, y, scale], [bent - scale * y, products, bent], clone=False)
        node = RowsProduct(middle).make_node(matrix, column, y, scale)
    found = routine_for(node, HOST, threads)
    assert isinstance(found, RowsRoutine)
    return found


def operands(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(rows + columns)
    shapes = (rows, columns), (columns, 1), (rows,), ()
    matrix, column, y, scale = (np.asarray(generator.normal(size=shape), dtype) for shape in shapes)
    return matrix, column / max(columns, 1) ** 0.5, y, scale


def results(rows: int, columns: int, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.full((columns, 1), np.nan, dtype), np.full(rows, np.nan, dtype), np.full(rows, np.nan, dtype)


def wanted(matrix: np.ndarray, column: np.ndarray, y: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    with np.errstate(invalid="ignore"):
        products = matrix.astype(np.float64) @ column.astype(np.float64)
        bent = np.tanh(products)
        return [matrix.T.astype(np.float64) @ (bent - (scale * y)[:, None]), products[:, 0], bent[:, 0]]


def assert_close(found: tuple[np.ndarray, ...], right: list[np.ndarray], dtype: str) -> None:
    for array, other in zip(found, right, strict=True):
        scale = max(np.abs(other[np.isfinite(other)]).max(initial=0.0), 1.0)
        np.testing.assert_allclose(array, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


def refused(*_arguments: object) -> object:
    raise AssertionError("the matrix was read twice")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [0, 1, FEW_ROWS - 1, BLOCK, 2 * BLOCK + MORE_ROWS + 5])
@pytest.mark.parametrize("columns", [0, 1, 3, 16, 64, 117, 1301])
def test_all_sizes_by_one_pass(rows: int, columns: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowsRoutine, "_in_two_passes", refused)
    given, found = operands(rows, columns, dtype), results(rows, columns, dtype)
    routine(dtype)(*given, *found)
    assert_close(found, wanted(*given), dtype)
    matrix, column, *_ = given
    output = found[0]
    routine(dtype, function=False)(matrix, column, output)
    assert_close((output,), [matrix.T.astype(np.float64) @ (matrix.astype(np.float64) @ column)], dtype)


@pytest.mark.parametrize("width", [16, 32, 64])
def test_rows_of_all_lengths_are_used_some_at_a_time(width: int) -> None:
    target = host_with(width)
    at_once, lanes = partial(rows_at_once, target=target), lanes_of(target, 8)
    longest = TILED_TO // lanes // 8
    longer = max(longest, MORE_ROWS_FROM // 8) + 1
    assert at_once(lanes - 1, 8) == FEW_ROWS
    assert at_once(longest + 1, 8) == (FEW_ROWS if longest < MORE_ROWS_FROM // 8 else MORE_ROWS)
    assert at_once(lanes, 8) is at_once(longest, 8) is None
    assert at_once(longer, 8) == MORE_ROWS
    assert at_once(LONGEST_ROW // 8, 8) == FEW_ROWS
    for columns in (0, 1, 64, longest, 513, 3000, LONGEST_ROW // 8):
        assert 0 < block_of(columns, 8, target) <= BLOCK
        assert block_of(columns, 8, target) % (at_once(columns, 8) or lanes) == 0


@pytest.mark.parametrize(
    "turn", [lambda a: a[:, :20], lambda a: a[::2], lambda a: a[3:4, :20], lambda a: a[5:, 3:11]]
)
def test_rows_in_one_piece_each_are_read_where_they_are(
    turn: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowsRoutine, "_in_two_passes", refused)
    matrix = turn(operands(200, 30, "float64")[0])  # type: ignore[operator]
    (rows, columns), (_, column, y, scale) = matrix.shape, operands(*matrix.shape, "float64")
    found = results(rows, columns, "float64")
    routine("float64")(matrix, column, y, scale, *found)
    assert_close(found, wanted(matrix, column, y, scale), "float64")


@pytest.mark.parametrize(
    "turn",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a[::-1],
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view("f8").reshape(a.shape),
    ],
)
@pytest.mark.parametrize("function", [True, False])
def test_other_layouts(turn: object, function: bool) -> None:
    matrix, column, y, scale = operands(70, 30, "float64")
    matrix = turn(matrix)  # type: ignore[operator]
    y = np.repeat(y, 2)[::2]
    found = results(70, 30, "float64")
    if function:
        routine("float64")(matrix, column, y, scale, *found)
        assert_close(found, wanted(matrix, column, y, scale), "float64")
    else:
        routine("float64", function=False)(matrix, column, found[0])
        assert_close(found[:1], [matrix.T @ (matrix @ column)], "float64")


def test_rows_that_leave_the_cache_before_they_are_used_again() -> None:
    columns = LONGEST_ROW // 8 + 1
    given, found = operands(9, columns, "float64"), results(9, columns, "float64")
    routine("float64")(*given, *found)
    assert_close(found, wanted(*given), "float64")


@pytest.mark.parametrize(("rows", "columns"), [(700, 401), (2200, 61)])
def test_the_result_does_not_depend_on_threads(rows: int, columns: int) -> None:
    given = operands(rows, columns, "float64")
    assert given[0].size > SHARED_FROM
    assert parts_of(rows, columns) == PARTS
    found = []
    for threads in (1, 2, 3):
        run, arrays = routine("float64", threads), results(rows, columns, "float64")
        for _ in range(8):  # in several threads at first, then in those that are faster
            run(*given, *arrays)
            found.append([array.tobytes() for array in arrays])
    assert all(one == found[0] for one in found)
    assert_close(arrays, wanted(*given), "float64")


@pytest.mark.parametrize("columns", [6, 21])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_spreads_as_in_two_products(value: float, columns: int) -> None:
    given, found = operands(40, columns, "float64"), results(40, columns, "float64")
    last = columns - 2
    given[0][3, last - 2], given[0][3, last - 3], given[1][last] = value, 0.0, 0.0
    routine("float64")(*given, *found)
    for array, other in zip(found, wanted(*given), strict=True):
        assert np.array_equal(np.isnan(array), np.isnan(other))
        assert np.array_equal(np.isposinf(array), np.isposinf(other))
        assert np.array_equal(np.isneginf(array), np.isneginf(other))


@pytest.mark.parametrize(("columns", "error"), [(3, 1e-5), (lanes_of(HOST, 4), 1e-6)])
def test_long_sums_are_as_accurate_as_two_products(columns: int, error: float) -> None:
    generator = np.random.default_rng(0)
    matrix, column = generator.random((200_000, columns), np.float32), np.ones((columns, 1), np.float32)
    output = np.empty((columns, 1), np.float32)
    routine("float32", function=False)(matrix, column, output)
    exact = matrix.T.astype(np.float64) @ (matrix.astype(np.float64) @ column)
    assert np.abs(output / exact - 1).max() < error


def test_the_source_shows_what_is_computed() -> None:
    text = routine("float64").source()
    assert "tanh_float64(v0)  # tanh(p)" in text
    assert "multiply_rows(matrix, low, high, vector, products)" in text
    assert "add_rows(matrix, low, high, total, factors, block if matrix.size <= 2097152 else 0)" in text
    assert (
        "kernel(own_factors[: high - low], kept1[low:high], kept0[low:high], other1, other0[low:high])"
        in text
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_optimized_with_their_entry_add_up_as_those_optimized_alone_first(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, found = cache.CompileOptions, []
    for alone in (False, True):
        if alone:
            monkeypatch.setattr(
                cache, "CompileOptions", lambda target, noalias, joined: options(target, noalias=noalias)
            )
        compile_rows.cache_clear()
        outputs = results(70, 37, dtype)
        routine(dtype)(*operands(70, 37, dtype), *outputs)
        found.append([one.tobytes() for one in outputs])
    compile_rows.cache_clear()
    assert found[0] == found[1]
