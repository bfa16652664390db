"""Reductions in kernels: positions, dtypes, special values, accuracy, and what is fused with them."""

import numpy as np
import pytest
from codegen.kernel_cases import check, group_of, op, reference, run, variable
from codegen.targets import HOST

import esat
from esat.codegen import can_fuse, lower, print_kernel, supported
from esat.graph import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.normalization import log_softmax, logsumexp, softmax
from esat.ops.reduction import ALL, ANY, ARGMAX, ARGMIN, MAX, MIN, PROD, SUM, Reducer, reduce


def numbers(dtype: str, shape: tuple[int, ...], special: bool = False) -> np.ndarray:
    rng = np.random.default_rng(sum(shape) + len(shape))
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.8)
    if dtype.startswith("float"):
        values = np.asarray(rng.standard_normal(shape), dtype)
        if special and values.size > 8:
            flat = values.ravel()
            flat[3], flat[-4] = np.nan, np.nan
            flat[5], flat[6] = np.inf, -np.inf
        return values
    limits = np.iinfo(dtype)
    return rng.integers(max(limits.min, -1000), min(limits.max, 1000), shape, dtype)


POSITIONS = [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)]


@pytest.mark.parametrize("axis", POSITIONS, ids=str)
@pytest.mark.parametrize("reducer", [SUM, MAX, ARGMAX], ids=lambda reducer: reducer.name)
def test_reductions_in_every_position(reducer: Reducer, axis: object) -> None:
    if reducer is ARGMAX and isinstance(axis, tuple):
        axis = (0, 1, 2)
    x = variable("float64", None, None, None)
    result = reduce(reducer, x, axis)
    for shape in ((3, 4, 5), (1, 1, 1), (5, 1, 7), (2, 9, 1100)):
        check([result], [x], [numbers("float64", shape)], rtol=1e-12, atol=1e-12)
        check([result], [x], [numbers("float64", shape, special=True)], rtol=1e-12, atol=1e-12)
    view = numbers("float64", (7, 4, 6)).transpose(2, 0, 1)[::-2, :, ::-1]
    check([result], [x], [view], atol=1e-12, layout="A")


DTYPES = ("bool", "int8", "int64", "uint8", "uint64", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reductions_of_a_dtype(dtype: str) -> None:
    x = variable(dtype, None, None)
    rtol = 1e-4 if dtype == "float32" else 0
    for axis in (0, 1):
        outputs = [reduce(r, x, axis) for r in (SUM, PROD, MAX, MIN, ANY, ALL, ARGMAX, ARGMIN)]
        for shape in ((2, 3), (40, 3), (3, 40), (1, 1)):
            check(outputs, [x], [numbers(dtype, shape)], rtol=rtol, atol=1e-5 if rtol else 0)
    outputs = [reduce(r, x) for r in (SUM, MIN, ANY, ARGMIN)]
    check(outputs, [x], [numbers(dtype, (9, 7))], rtol=rtol, atol=1e-5 if rtol else 0)


def test_integers_wrap_around_in_the_accumulator() -> None:
    x = variable("int64", None)
    check([reduce(SUM, x), reduce(PROD, x)], [x], [np.array([2**62, 2**62, 2**62, 3])])


@pytest.mark.parametrize("axis", [0, 1])
def test_empty_arrays(axis: int) -> None:
    x = variable("float64", None, None)
    outputs = [reduce(r, x, axis) for r in (SUM, PROD, ANY, ALL)] + [logsumexp(x, axis)]
    for shape in ((0, 3), (3, 0), (0, 0)):
        check(outputs, [x], [np.empty(shape)])
    check([softmax(x, axis), reduce(MAX, x, axis)], [x], [np.empty((3, 0) if axis == 0 else (0, 3))])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_at_least_as_accurate_as_numpys(dtype: str) -> None:
    """Relative errors against exact summation, over one long axis and along rows."""
    x = variable(dtype, None)
    values = np.asarray(np.random.default_rng(3).random(300_001), dtype)
    exact = float(np.sum(values.astype("longdouble")))
    ((ours, *_),) = [run(group_of([reduce(SUM, x)], [x]), {x: values})]
    epsilon = np.finfo(dtype).eps
    assert abs(float(ours) - exact) <= max(abs(float(np.sum(values)) - exact), 2 * epsilon * exact)
    matrix = variable(dtype, None, None)
    table = values[:300_000].reshape(-1, 5)
    columns = np.sum(table.astype("longdouble"), axis=0)
    (got,) = run(group_of([reduce(SUM, matrix, 0)], [matrix]), {matrix: table})
    theirs = np.max(np.abs(np.sum(table, axis=0) - columns))
    assert np.max(np.abs(got - columns)) <= max(theirs, 2 * epsilon * np.max(columns))


def test_sums_that_overflow_or_meet_infinity_are_as_numpys() -> None:
    x = variable("float64", None)
    big = np.finfo("float64").max
    for values in ([big, big, big], [np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [-np.inf] * 2000):
        check([reduce(SUM, x)], [x], [np.array(values)])


def test_squares_are_not_rounded_before_they_are_added() -> None:
    x, y = variable("float64", None), variable("float64", None)
    difference = op("sub", x, y)
    total = group_of([reduce(SUM, op("sqr", difference))], [x, y])
    assert "multiply_add" in print_kernel(lower(total), HOST)
    for values in ([1e200, 1.0], [np.inf, np.nan], [np.inf, -np.inf], [-1e-200, 0.0]):
        check([reduce(SUM, op("sqr", difference))], [x, y], [np.array(values), np.zeros(2)])
    # Products that overflow might cancel.
    product = group_of([reduce(SUM, op("mul", x, y))], [x, y])
    assert "multiply_add" not in print_kernel(lower(product), HOST)
    both = group_of([reduce(SUM, op("sqr", x)), op("sqr", x)], [x])
    assert "multiply_add" not in print_kernel(lower(both), HOST)


def test_the_first_of_equal_extrema_and_the_first_nan_win() -> None:
    x = variable("float64", None)
    outputs = [reduce(ARGMAX, x), reduce(ARGMIN, x)]
    flat = np.zeros(5000)
    check(outputs, [x], [flat])
    flat[[1500, 3000, 4999]] = 7.0
    flat[[1024, 1025]] = -7.0
    check(outputs, [x], [flat])
    flat[[2047, 2048]] = np.nan
    check(outputs, [x], [flat])
    check(outputs, [x], [np.full(3000, -np.inf)])
    check(outputs, [x], [np.full(3000, np.inf)])


def test_producers_and_consumers_are_fused() -> None:
    x, y = variable("float64", None, None), variable("float64", None)
    data = [numbers("float64", (6, 50)), numbers("float64", (6,))]
    total = reduce(SUM, op("sqr", op("sub", x, dimshuffle(y, (0, "x")))), 1)
    check([op("add", op("sqrt", total), y)], [x, y], data, atol=1e-12)
    product = op("mul", x, dimshuffle(y, (0, "x")))
    check([reduce(SUM, product), product, reduce(SUM, product, 1)], [x, y], data, atol=1e-12)
    check([reduce(ARGMAX, product)], [x, y], data)


def mean(x: Variable, axis: int, size: int) -> Variable:
    return op("div", reduce(SUM, x, axis, keepdims=True), float(size))


@pytest.mark.parametrize("axis", [0, 1])
def test_variance_and_layer_normalization(axis: int) -> None:
    sizes = (30, 40)
    x, gain = variable("float64", None, None), variable("float64", None)
    centred = op("sub", x, mean(x, axis, sizes[axis]))
    variance = mean(op("sqr", centred), axis, sizes[axis])
    normal = op("div", centred, op("sqrt", op("add", variance, 1e-5)))
    scaled = op("mul", normal, dimshuffle(gain, ("x", 0)))
    data = [numbers("float64", sizes) + 5, numbers("float64", (40,))]
    check([scaled, variance], [x, gain], data, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_and_its_kin(axis: int, dtype: str) -> None:
    x = variable(dtype, None, None)
    outputs = [softmax(x, axis), log_softmax(x, axis), logsumexp(x, axis)]
    rtol = 1e-5 if dtype == "float32" else 1e-12
    for shape in ((5, 9), (40, 3), (3, 1500), (1, 1)):
        values = numbers(dtype, shape) * 20
        check(outputs, [x], [values], rtol=rtol, atol=rtol)
    values = numbers(dtype, (4, 4))
    values[0, :] = -np.inf
    values[1, 2] = np.nan
    values[2, 3] = np.inf
    check(outputs, [x], [values], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("reducer", [MAX, SUM], ids=lambda reducer: reducer.name)
@pytest.mark.parametrize("axis", [1, (0, 1)])
def test_an_output_keeps_one_value_at_a_time(reducer: Reducer, axis: object) -> None:
    """Loops around rows keep the sine where the output will be; rows keep no exponential over it."""
    x = variable("float64", None, None)
    probability = softmax(x, 1)
    wave = op("div", op("sin", probability), probability)
    total = reduce(reducer, wave, axis, keepdims=True)
    check([op("sub", total, wave)], [x], [numbers("float64", (5, 40))], rtol=1e-12, atol=1e-12)


def test_softmax_over_all_axes_and_over_outer_ones() -> None:
    x = variable("float64", None, None, None)
    values = numbers("float64", (3, 4, 5))
    check([softmax(x)], [x], [values])
    check([softmax(x, (0, 1)), reduce(SUM, op("exp", x), (0, 1))], [x], [values])


def test_reductions_of_reductions() -> None:
    x = variable("float64", None, None)
    values = numbers("float64", (40, 30))
    loss = op("neg", reduce(SUM, op("sub", logsumexp(x, 1), reduce(MAX, x, 1))))
    check([loss], [x], [values])
    check([reduce(ARGMAX, reduce(SUM, x, 1)), reduce(MAX, reduce(SUM, x, 1))], [x], [values])


def test_reductions_over_axes_of_size_one() -> None:
    x = variable("float32", None, 1)
    outputs = [reduce(r, x, 1) for r in (SUM, MAX, ARGMAX)] + [softmax(x, 1), logsumexp(x, 1)]
    check(outputs, [x], [numbers("float32", (6, 1))], rtol=1e-6)


def test_booleans_are_counted() -> None:
    x = variable("float64", None, None)
    above = op("gt", x, 0.0)
    check([reduce(SUM, above, 0), reduce(ANY, above, 0)], [x], [numbers("float64", (9, 8))])


def test_what_cannot_be_one_kernel_is_refused() -> None:
    x = variable("float64", None, None)
    along, across = reduce(SUM, x, 1, keepdims=True), reduce(SUM, x, 0, keepdims=True)
    assert not can_fuse(group_of([op("sub", op("sub", x, along), across)], [x]).nodes)
    assert not can_fuse(group_of([reduce(SUM, op("sqr", reduce(SUM, x, 0)))], [x]).nodes)
    half = variable("float16", None)
    assert not supported(group_of([op("exp", half)], [half]).nodes[-1])
    z = variable("complex128", None)
    assert not supported(group_of([reduce(PROD, z)], [z]).nodes[-1])
    flat = reduce(ARGMAX, softmax(x, 1))
    assert not can_fuse(group_of([flat], [x]).nodes)
    unknown = variable("float64", None, None)
    assert not supported(dimshuffle(unknown, (0,)).owner)
    assert supported(cast(x, "float32").owner)


def test_a_row_of_wide_tiles() -> None:
    x = variable("float32", None, None)
    values = numbers("float32", (9, 2500))
    outputs = [reduce(SUM, op("mul", x, x), 0), reduce(MAX, x, 0)]
    check(outputs, [x], [values], rtol=1e-5)


def random_graph(rng: np.random.Generator, x: Variable, row: Variable) -> list[Variable]:
    """A random mixture of elementwise ops and reductions of a matrix and a row."""
    pool = [x, op("add", x, row)]
    for _ in range(6):
        v = pool[rng.integers(len(pool))]
        choice = rng.integers(5)
        if choice == 0:
            pool.append(op("sqr", v))
        elif choice == 1:
            pool.append(op("mul", v, 0.5))
        elif choice == 2:
            pool.append(op("add", v, pool[rng.integers(len(pool))]))
        else:
            reducer = (SUM, MAX, MIN)[rng.integers(3)]
            axes = [None, 0, 1][rng.integers(3)]
            pool.append(op("sub", v, op("mul", reduce(reducer, v, axes, keepdims=True), 0.01)))
    return pool[2:]


@pytest.mark.parametrize("seed", range(30))
def test_whatever_can_fuse_says_can_be_lowered(seed: int) -> None:
    """Lowering, which ends in a verifier, takes every set of nodes and outputs that ``can_fuse`` allows."""
    rng = np.random.default_rng(seed)
    x, row = variable("float64", None, None), variable("float64", 1, None)
    built = random_graph(rng, x, row)
    outputs = [v for v in dict.fromkeys(built) if rng.random() < 0.5] or built[-1:]
    group = group_of(outputs, [x, row])
    if can_fuse(group.nodes):
        lower(group)
        if seed < 12:
            values = {x: numbers("float64", (7, 11)), row: numbers("float64", (1, 11))}
            for got, wanted in zip(run(group, values), reference(group, values), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", ["fast_run", "o2"])
def test_a_kept_value_is_not_read_where_the_output_may_have_taken_its_place(mode: str) -> None:
    """Exponentials are kept in the softmax's array; the loops that sum its products come after its own."""
    x, m = esat.vector("x"), esat.matrix("m")
    weights = esat.softmax(x)
    function = esat.compile(esat.Graph([x, m], [weights, esat.sum(esat.exp(m) * weights, axis=1)]), mode)
    values, rows = numbers("float64", (7,)), numbers("float64", (5, 7))
    shares = np.exp(values) / np.exp(values).sum()
    found, sums = function(values, rows)
    np.testing.assert_allclose(found, shares)
    np.testing.assert_allclose(sums, (np.exp(rows) * shares).sum(axis=1))


@pytest.mark.parametrize("layout", ["side by side", "apart"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1000, 10_000])
def test_sums_are_at_least_as_accurate_as_pairwise_ones(dtype: str, layout: str, length: int) -> None:
    rng = np.random.default_rng(length)
    rows = rng.random((200_000 // length, length)).astype(dtype)
    x = variable(dtype, None, None)
    outputs = [reduce(SUM, x, 1), reduce(SUM, op("mul", x, op("add", x, 1.0)), 1)]
    data = np.repeat(rows, 2, 1)[:, ::2] if layout == "apart" else rows
    found = run(group_of(outputs, [x]), {x: data})
    wide = rows.astype(np.longdouble)
    one = np.array(1.0, dtype)
    pairs = (rows.sum(1), wide.sum(1)), ((rows * (rows + one)).sum(1), (wide * (wide + 1)).sum(1))
    for total, (pairwise, exact) in zip(found, pairs, strict=True):
        # As many sums as there are here tell the mean error to a tenth or so.
        assert np.mean(abs(total - exact)) < 1.1 * np.mean(abs(pairwise - exact))
