"""Blocks of rows through several layers: right for all sizes and layouts, and the same for any threads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from codegen.targets import HOST

import esat
from esat.codegen.ground.target import Target
from esat.codegen.matmul.row_tiles import lanes_of
from esat.codegen.matmul.shared_products import SHARED_FROM
from esat.codegen.routines import routine_for
from esat.codegen.rowwise import layers as row_blocks
from esat.codegen.rowwise.layers import BLOCK, LEAST_BLOCK, PARTS, TILED_FROM, RowBlocksRoutine
from esat.errors import ShapeError
from esat.graph import FunctionGraph
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.linalg.row_blocks import TURNED, RowBlocks

TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
Arrays = Sequence[np.ndarray]


@pytest.fixture(autouse=True, params=[False, True], ids=["blas", "tiles"])
def target(request: pytest.FixtureRequest) -> Target:
    """This machine; whether products are made in tiles of registers."""
    return replace(HOST, tiles_products=request.param)


def training(dtype: str) -> RowBlocks:
    """Two layers, back through the second, and sums over rows of all that a step of training needs."""
    x, target, w1, w2 = (esat.matrix(name, dtype=dtype) for name in ("x", "target", "w1", "w2"))
    b1 = esat.tensor("b1", shape=(1, None), dtype=dtype)
    hidden = esat.tanh(esat.matmul(x, w1) + b1)
    slope = esat.matmul(hidden, w2) - target
    back = esat.matmul(slope, dimshuffle(w2, TURNED)) * (1 - hidden * hidden)
    results = [
        slope,
        esat.matmul(dimshuffle(x, TURNED), back),
        esat.sum(back, axis=0),
        esat.matmul(dimshuffle(hidden, TURNED), slope),
        esat.sum(slope, axis=0, keepdims=True),
        hidden,
    ]
    return RowBlocks(FunctionGraph([x, target, w1, w2, b1], results, clone=False), leaves=2)


def expected(x: Any, target: Any, w1: Any, w2: Any, b1: Any) -> list[np.ndarray]:
    x, target, w1, w2, b1 = (array.astype(np.float64) for array in (x, target, w1, w2, b1))
    with np.errstate(all="ignore"):
        hidden = np.tanh(x @ w1 + b1)
        slope = hidden @ w2 - target
        back = (slope @ w2.T) * (1 - hidden * hidden)
        return [slope, x.T @ back, back.sum(0), hidden.T @ slope, slope.sum(0, keepdims=True), hidden]


def operands(rows: int, features: int, hidden: int, classes: int, dtype: str) -> list[np.ndarray]:
    generator = np.random.default_rng(rows + features)
    shapes = (rows, features), (rows, classes), (features, hidden), (hidden, classes), (1, hidden)
    return [(generator.normal(size=shape) / max(shape[-1], 1) ** 0.5).astype(dtype) for shape in shapes]


def run(found: Callable[..., Any], given: Arrays) -> list[np.ndarray]:
    results = [np.full(array.shape, np.nan, given[0].dtype) for array in expected(*given)]
    found(*given, *results)
    return results


def routine(dtype: str, target: Target, threads: int | None = 1, link: Any = None) -> RowBlocksRoutine:
    op = training(dtype)
    node = op.make_node(*op.body.inputs)
    found = routine_for(node, target, threads, link)
    assert isinstance(found, RowBlocksRoutine)
    return found


def assert_close(results: Arrays, wanted: Arrays) -> None:
    for array, other in zip(results, wanted, strict=True):
        scale = max(np.abs(other[np.isfinite(other)]).max(initial=0.0), 1.0)
        tolerance = TOLERANCE[array.dtype.name] * scale
        np.testing.assert_allclose(array, other, rtol=tolerance, atol=tolerance)


def refused(*_arguments: object) -> object:
    raise AssertionError("the steps ran one after the other")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 7, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
@pytest.mark.parametrize("sizes", [(64, 64, 10), (1, 3, 1), (5, 1, 2), (33, 100, 7)])
def test_all_sizes_in_blocks(
    target: Target, rows: int, sizes: tuple[int, int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowBlocksRoutine, "_one_after_the_other", refused)
    given = operands(rows, *sizes, dtype)
    found = routine(dtype, target)
    for _ in range(2):  # scratch is used again
        assert_close(run(found, given), expected(*given))


@pytest.mark.parametrize("sizes", [(0, 3, 4, 5), (9, 0, 4, 5), (9, 3, 0, 5), (9, 3, 4, 0), (9, 200, 200, 3)])
def test_sizes_that_blocks_do_not_suit(target: Target, sizes: tuple[int, int, int, int]) -> None:
    given, linked = operands(*sizes, "float64"), []

    def link(body: FunctionGraph) -> Callable[..., Any]:
        linked.append(body)
        return esat.compile(body)

    for found in (routine("float64", target), routine("float64", target, link=link)):
        for _ in range(2):
            assert_close(run(found, given), expected(*given))
    assert len(linked) == 1


def test_narrow_products_and_few_rows_are_left_to_blas(target: Target) -> None:
    found = routine("float64", target)

    def is_tiled(rows: int, classes: int) -> bool:
        return found.sizes([(rows, 64), (rows, classes), (64, 64), (64, classes), (1, 64)]).tiled

    lanes = lanes_of(target, 8)
    assert is_tiled(TILED_FROM, lanes) is target.tiles_products
    assert not is_tiled(TILED_FROM - 1, lanes)
    assert not is_tiled(TILED_FROM, lanes - 1)


def test_blocks_suit_weights_that_cache_holds(target: Target) -> None:
    found = routine("float64", target)
    small = found.sizes([(5000, 64), (5000, 10), (64, 64), (64, 10), (1, 64)])
    assert small.fits
    assert small.block > BLOCK // 2
    assert small.parts == PARTS
    assert found.sizes([(3, 64), (3, 10), (64, 64), (64, 10), (1, 64)]).parts == 1
    large = found.sizes([(5000, 512), (5000, 10), (512, 512), (512, 10), (1, 512)])
    assert not large.fits
    assert large.block < LEAST_BLOCK


@pytest.mark.parametrize(
    "turn",
    [
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view("f8").reshape(a.shape),
    ],
)
@pytest.mark.parametrize("place", range(5))
def test_other_layouts(target: Target, turn: Callable[[np.ndarray], np.ndarray], place: int) -> None:
    given = operands(300, 12, 9, 4, "float64")
    wanted = expected(*given)
    given[place] = turn(given[place])
    assert_close(run(routine("float64", target), given), wanted)


@pytest.mark.parametrize("fetched_from", [0, 1 << 60])
def test_the_result_does_not_depend_on_threads(
    target: Target, fetched_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_blocks, "FETCHED_FROM", fetched_from)
    given = operands(2000, 30, 20, 10, "float64")
    assert given[0].size * 20 > SHARED_FROM
    found = set()
    for threads in (1, 2, 3):
        one = routine("float64", target, threads)
        assert one.sizes([array.shape for array in given]).parts == PARTS
        for _ in range(8):  # in several threads at first, then in those that are faster
            found.add(b"".join(array.tobytes() for array in run(one, given)))
    assert len(found) == 1
    assert_close(run(one, given), expected(*given))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_spreads_as_in_products(target: Target, value: float) -> None:
    given = operands(40, 6, 5, 3, "float64")
    given[0][3, 2], given[2][2, 1] = value, 0.0
    for array, other in zip(run(routine("float64", target), given), expected(*given), strict=True):
        assert np.array_equal(np.isnan(array), np.isnan(other))


def test_results_stay_within_their_memory(target: Target) -> None:
    given = operands(BLOCK + 3, 8, 8, 8, "float64")
    wanted = expected(*given)
    guarded = [np.full(array.size + 16, 7.0) for array in wanted]
    results = [array[8:-8].reshape(other.shape) for array, other in zip(guarded, wanted, strict=True)]
    routine("float64", target)(*given, *results)
    assert_close(results, wanted)
    assert all(np.all(array[:8] == 7.0) and np.all(array[-8:] == 7.0) for array in guarded)


def test_sizes_that_do_not_fit_are_refused() -> None:
    op = training("float64")
    node = op.make_node(*op.body.inputs)
    given = operands(9, 3, 4, 5, "float64")
    op.check_operands(node, given)
    for place in range(5):
        wrong = [*given]
        wrong[place] = np.zeros((11, 12)) if place < 4 else np.zeros((1, 12))
        with pytest.raises(ShapeError, match=r"test_row_blocks.py|do not match|inner sizes"):
            op.check_operands(node, wrong)


def test_the_source_shows_what_is_computed(target: Target) -> None:
    text = routine("float64", target).source()
    assert "tanh_float64(v2)  # tanh(add.0)" in text
    assert "kernel_1(view(result1_block[first:]" in text
    assert text.count("call_blas(") == 5
    assert text.count("multiply_tiles(") == (3 if target.tiles_products else 0)
    assert text.count("add_tiles(") == (2 if target.tiles_products else 0)
