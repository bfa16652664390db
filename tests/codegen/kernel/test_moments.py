"""Means and deviations in one pass: as accurate as in two, NumPy's NaN and infinities, the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import host_with

from esat.codegen import lower
from esat.codegen.compile import compile_parallel_kernel
from esat.codegen.ground.target import Target
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.kernel.moments import find_moments
from esat.codegen.kernel.partition import partition
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.graph import Variable
from esat.ops.reduction import MAX, SUM, reduce

READING = {
    "four places": host_with(32, prefetch_distance=0),
    "one place": host_with(64, prefetch_distance=0),
    "one place, prefetched": host_with(64, prefetch_distance=8192, prefetch_from=0),
}
"""Machines that read faster from many places, and others, on some of which all lines are prefetched."""


@pytest.fixture(params=READING)
def target(request: pytest.FixtureRequest) -> Target:
    return READING[request.param]


@pytest.fixture(params=READING)
def short_vectors(request: pytest.FixtureRequest) -> Target:
    """The same with vectors of 32 bytes, where rows are read once that are written in groups."""
    return replace(READING[request.param], vector_bytes=32)


COUNT = 200_003
"""Elements of most vectors here, which have one kernel: whole chunks, and what is left."""
SHARE = 1 / COUNT


def sums(dtype: str, rank: int = 1) -> tuple[Variable, list[Variable]]:
    """A vector or matrix; its sum, and the sum of squares about a share of that, the mean of so many."""
    x = variable(dtype, *[None] * rank)
    total = reduce(SUM, x, None, keepdims=True)
    deviation = op("sub", x, op("mul", total, np.asarray(SHARE, dtype)))
    return x, [total, reduce(SUM, op("sqr", deviation))]


def kernel_of(inputs: list[Variable], outputs: list[Variable]) -> Kernel:
    return collapse(lower(group_of(outputs, inputs)))


def run(
    kernel: Kernel, target: Target, rank: int, array: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    total, squares = np.full((1,) * rank, 99, array.dtype), np.full((), 99, array.dtype)
    compile_parallel_kernel(kernel, target)(threads, total, squares, array)
    return total.reshape(()), squares


def samples(count: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    noise = generator.normal(size=count)
    return {
        "noise": noise,
        "far from zero": 1e8 + noise,
        "an outlier first": np.r_[1e8, noise[1:]],
        "steps": np.repeat(generator.normal(size=count // 1024 + 1) * 1e3, 1024)[:count] + 1e6,
        "sorted": np.sort(noise) + 100,
        "a first block apart": np.r_[np.full(1024, 1e6), noise[1024:]],
        "chunks that start apart": np.where(np.arange(count) % 8192 < 1024, 1e5, 0.0) + noise,
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", samples(5000))
def test_ill_conditioned_data(target: Target, name: str, dtype: str) -> None:
    x, outputs = sums(dtype)
    kernel = kernel_of([x], outputs)
    assert len(find_moments(partition(kernel))) == 1
    array = samples(COUNT)[name].astype(dtype)
    exact = array.astype(np.longdouble)
    total, squares = run(kernel, target, 1, array)
    epsilon = float(np.finfo(dtype).eps)
    assert abs(total - exact.sum()) <= 2 * epsilon * np.abs(exact).sum()
    centre = np.longdouble(total * np.asarray(SHARE, dtype))
    wanted = ((exact - centre) ** 2).sum()
    assert abs(squares - wanted) <= 4 * epsilon * wanted


@pytest.mark.parametrize(
    "count",
    [0, 1, 2, 1023, 1024, 1025, 4095, 4096, 4097, 5121, 8192, 12_289, 32_767, 32_768, 32_769, 300_000],
)
def test_any_length_and_number_of_threads(target: Target, count: int) -> None:
    x, outputs = sums("float64")
    kernel = kernel_of([x], outputs)
    array = np.random.default_rng(count).uniform(1, 2, count)
    total, squares = run(kernel, target, 1, array)
    np.testing.assert_allclose(total, array.sum(), rtol=1e-15)
    np.testing.assert_allclose(squares, ((array - total * SHARE) ** 2).sum(), rtol=1e-14)
    for threads in (2, 3, 7):
        again = run(kernel, target, 1, array, threads)
        assert [one.tobytes() for one in again] == [total.tobytes(), squares.tobytes()]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308, -1.7e308])
@pytest.mark.parametrize("at", [[0], [7000], [-1], [0, -1], slice(None), slice(4096, None)])
def test_what_is_not_finite_is_as_in_two_passes(target: Target, special: float, at: object) -> None:
    x, outputs = sums("float64")
    array = np.linspace(-3.0, 5.0, COUNT)
    array[at] = special
    with np.errstate(all="ignore"):
        total, squares = run(kernel_of([x], outputs), target, 1, array)
        wanted = array.sum()
        np.testing.assert_allclose(total, wanted, rtol=1e-14)
        np.testing.assert_allclose(squares, ((array - wanted * SHARE) ** 2).sum(), rtol=1e-14)


@pytest.mark.parametrize("value", [0.1, -1e-160, 3e5, 1e-320])
def test_squares_are_never_negative(target: Target, value: float) -> None:
    x, outputs = sums("float64")
    squares = run(kernel_of([x], outputs), target, 1, np.full(COUNT, value))[1]
    assert 0.0 <= squares <= 1e-28 * value**2 * COUNT


def sums_of_rows(dtype: str) -> tuple[Kernel, list[int]]:
    """What is left of rows without their means, in units of their squares, and both sums of each row.

    Also the ranks of its inputs: a matrix, and what its columns are multiplied by.
    """
    x, row = variable(dtype, None, None), variable(dtype, None)
    total = reduce(SUM, x, 1, keepdims=True)
    deviation = op("sub", x, op("mul", total, np.asarray(1 / ROW, dtype)))
    squares = reduce(SUM, op("sqr", deviation), 1, keepdims=True)
    group = group_of([op("mul", op("div", deviation, squares), row), total, squares], [x, row])
    kernel = lower(group)
    return collapse(kernel), [group.inputs[place].tensor_type.ndim for place in kernel.operands]


ROW = 9001
"""Elements of a row: two whole chunks, and what is left."""


def run_rows(x: np.ndarray, target: Target, threads: int = 1) -> tuple[np.ndarray, ...]:
    """The same of a matrix whose columns are multiplied by one, written past the caches."""
    kernel, ranks = sums_of_rows(x.dtype.name)
    results = [np.full(shape, 99, x.dtype) for shape in (x.shape, (len(x), 1), (len(x), 1))]
    inputs = [x if rank == 2 else np.ones(x.shape[1], x.dtype) for rank in ranks]
    compile_parallel_kernel(kernel, target, streams=True)(threads, *results, *inputs)
    return tuple(results)


def reads_rows_once(kernel: Kernel, target: Target) -> bool:
    printed = print_parallel_source(kernel, target, "C", comments=False, streams=True)
    assert printed is not None
    return "moments_together" in printed.text


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_that_are_written_past_the_caches(short_vectors: Target, dtype: str) -> None:
    assert reads_rows_once(sums_of_rows(dtype)[0], short_vectors)
    array = np.stack([one[:ROW] for one in samples(ROW).values()]).astype(dtype)
    exact = array.astype(np.longdouble)
    result, total, squares = run_rows(array, short_vectors)
    epsilon = float(np.finfo(dtype).eps)
    assert (abs(total[:, 0] - exact.sum(1)) <= 2 * epsilon * np.abs(exact).sum(1)).all()
    centre = (total * np.asarray(1 / ROW, dtype)).astype(dtype)
    wanted = ((exact - centre) ** 2).sum(1, keepdims=True)
    assert (abs(squares - wanted) <= 8 * epsilon * wanted).all()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_max_ulp(result, (array - centre) / squares, 2)
    for threads in (2, 3):
        again = run_rows(array, short_vectors, threads)
        assert [one.tobytes() for one in again] == [one.tobytes() for one in (result, total, squares)]


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e308, -1.7e308])
def test_rows_that_are_not_finite_are_as_in_two_passes(short_vectors: Target, special: float) -> None:
    array = np.tile(np.linspace(-3.0, 5.0, ROW), (6, 1))
    for row, at in enumerate([[0], [ROW - 1], [0, ROW - 1], slice(None), slice(4096, None)]):
        array[row, at] = special
    result, total, squares = run_rows(array, short_vectors)
    with np.errstate(all="ignore"):
        deviation = array - total * (1 / ROW)
        np.testing.assert_allclose(total, array.sum(1, keepdims=True), rtol=1e-14)
        np.testing.assert_allclose(squares, (deviation**2).sum(1, keepdims=True), rtol=1e-14)
        np.testing.assert_allclose(result, deviation / squares, rtol=1e-14)


def test_rows_are_read_twice_where_that_was_not_measured() -> None:
    assert not reads_rows_once(sums_of_rows("float64")[0], host_with(64))


def test_matrices_are_read_once_too(target: Target) -> None:
    x, outputs = sums("float64", rank=2)
    array = np.random.default_rng(1).normal(size=(70, 130))
    total, squares = run(kernel_of([x], outputs), target, 2, array)
    np.testing.assert_allclose(total, array.sum(), rtol=1e-13)
    np.testing.assert_allclose(squares, ((array - total * SHARE) ** 2).sum(), rtol=1e-14)


def test_other_loops_run_as_they_are_written() -> None:
    x = variable("float64", None)
    total = reduce(SUM, x, None, keepdims=True)
    deviation = op("sub", x, total)
    others = [
        [reduce(SUM, op("sqr", op("sub", x, reduce(MAX, x, None, keepdims=True))))],
        [reduce(SUM, op("mul", deviation, x))],
        [reduce(SUM, op("sqr", deviation)), deviation],
        [reduce(SUM, op("sqr", deviation)), reduce(SUM, op("abs", deviation))],
        [total, reduce(SUM, op("sqr", op("sub", x, 3.0)))],
    ]
    for outputs in others:
        assert find_moments(partition(kernel_of([x], outputs))) == ()
    assert find_moments(partition(kernel_of([x], [reduce(SUM, op("sqr", op("sub", total, x)))])))
