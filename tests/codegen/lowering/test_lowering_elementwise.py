"""Fused elementwise kernels: dtypes, broadcasting, strides, empty and single axes, several outputs."""

import numpy as np
import pytest
from codegen.kernel_cases import check, group_of, op, run, variable
from codegen.targets import HOST

from esat.codegen import can_fuse, compile_kernel, lower, print_kernel
from esat.graph import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast


def random_data(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.startswith("float"):
        return np.asarray(rng.standard_normal(shape) * 3, dtype)
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, shape, dtype, endpoint=True))


BINARY = {
    "float": ["add", "sub", "mul", "div", "maximum", "minimum", "floor_div", "lt", "eq"],
    "int": ["add", "sub", "mul", "floor_div", "mod", "bitwise_and", "bitwise_xor", "maximum", "gt", "div"],
    "bool": ["logical_and", "logical_or", "eq", "add"],
}
UNARY = {"float": ["neg", "abs", "sqr", "exp", "floor", "isnan"], "int": ["neg", "abs", "sqr", "sign"]}


def random_graph(rng: np.random.Generator, inputs: list[Variable], steps: int) -> list[Variable]:
    """Outputs of a random elementwise graph that uses all inputs."""
    pool = list(inputs)
    for _ in range(steps):
        left, right = (pool[rng.integers(len(pool))] for _ in range(2))
        kind = "int" if "int" in left.tensor_type.dtype else left.tensor_type.dtype.rstrip("0123456789")
        choice = rng.random()
        if choice < 0.15:
            new = cast(left, rng.choice(["float32", "float64", "int32", "int8", "uint16"]))
        elif choice < 0.3 and kind in UNARY:
            new = op(str(rng.choice(UNARY[kind])), left)
        elif choice < 0.4:
            new = op("switch", op("gt", left, right), left, right)
        elif kind == "bool" and right.tensor_type.dtype != "bool":
            new = op("mul", left, right)
        elif right.tensor_type.dtype == "float64" and kind == "int":
            new = op("add", left, right)
        elif kind != "bool" and ("int" in right.tensor_type.dtype) != (kind == "int"):
            new = op("mul", left, right)
        else:
            new = op(str(rng.choice(BINARY[kind])), left, right)
        pool.append(new)
    first = pool[len(inputs)]
    for variable_ in inputs:
        first = op("add", op("mul", first, 0.5), op("switch", op("ne", variable_, 0), 1.0, 0.0))
    return [first, *[v for v in pool[-3:] if v.tensor_type.ndim == first.tensor_type.ndim]]


DTYPES = ["float64", "float32", "int64", "int32", "int8", "uint8", "uint64", "bool"]
SHAPES = [
    [(None, None), (None,), (None, 1)],
    [(None, None, None), (1, None, None), (None, 1)],
    [(None,), (), (1,)],
    [(None, 1, None), (None, None), (1, None, 1)],
]


def stretched(shape: tuple[int | None, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    aligned = sizes[len(sizes) - len(shape) :]
    return tuple(size if known is None else known for known, size in zip(shape, aligned, strict=True))


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_agree_with_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = SHAPES[seed % len(SHAPES)]
    inputs = [variable(str(rng.choice(DTYPES)), *shape) for shape in shapes]
    outputs = [v for v in dict.fromkeys(random_graph(rng, inputs, 10)) if v.owner is not None]
    rank = max(len(shape) for shape in shapes)
    for sizes in ((5, 6, 7), (3, 1, 4), (1, 1, 1), (2, 0, 3), (0, 4, 4), (9, 33, 70)):
        data = [
            random_data(rng, v.tensor_type.dtype, stretched(v.tensor_type.shape, sizes[:rank]))
            for v in inputs
        ]
        check(outputs, inputs, data, rtol=1e-5, atol=1e-6)
    check(outputs, inputs, [with_strides(rng, v, (5, 6, 7)[:rank]) for v in inputs], 1e-5, 1e-6, "A")
    if seed < 6:
        check(outputs, inputs, [with_gaps(rng, v, (5, 6, 7)[:rank]) for v in inputs], 1e-5, 1e-6, "R")


def with_strides(rng: np.random.Generator, v: Variable, sizes: tuple[int, ...]) -> np.ndarray:
    """An array for a variable, with strides of two elements along each axis, forwards or backwards."""
    shape = stretched(v.tensor_type.shape, sizes)
    wide = random_data(rng, v.tensor_type.dtype, tuple(2 * size + 1 for size in shape))
    steps = (slice(2 * size, None, -2) if size % 2 else slice(1, 2 * size + 1, 2) for size in shape)
    strided = wide[(..., *steps)][(..., *(slice(size) for size in shape))]
    assert strided.shape == shape
    return strided


def with_gaps(rng: np.random.Generator, v: Variable, sizes: tuple[int, ...]) -> np.ndarray:
    """An array for a variable, contiguous along its last axis alone."""
    shape = stretched(v.tensor_type.shape, sizes)
    wide = random_data(rng, v.tensor_type.dtype, (*(2 * size for size in shape[:-1]), *shape[-1:]))
    return wide[(..., *(slice(None, None, -2) for _ in shape[:-1]), slice(None))] if shape else wide


def test_float32_arithmetic_stays_float32() -> None:
    x = variable("float32", None)
    numbers = np.full(7, 1 + 2.0**-23, "float32")
    once = op("add", op("mul", x, x), 2)
    check([op("sub", op("sub", once, 3), 2.0**-22)], [x], [numbers], rtol=0)
    printed = print_kernel(lower(group_of([once], [x])), HOST)
    assert "float64" not in printed


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64"])
def test_integers_wrap_around(dtype: str) -> None:
    x = variable(dtype, None)
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, limits.max, 100, 3], dtype)
    outputs = [op("add", x, x), op("mul", x, x), op("neg", x), op("abs", x), op("sub", op("sqr", x), 1)]
    check([*outputs, op("floor_div", outputs[0], 3)], [x], [numbers])


def test_transposed_inputs_are_read_along_both_ways() -> None:
    x = variable("float64", None, None)
    numbers = np.arange(49.0).reshape(7, 7)
    both = op("add", x, dimshuffle(x, (1, 0)))
    check([both], [x], [numbers])
    check([op("mul", dimshuffle(x, (1, 0)), 2.0)], [x], [np.arange(12.0).reshape(3, 4)])


def test_a_value_wanted_along_two_ways_is_refused() -> None:
    x = variable("float64", None, None)
    y = op("exp", x)
    assert not can_fuse(group_of([op("add", y, dimshuffle(y, (1, 0)))], [x]).nodes)


def test_outer_difference_reads_one_vector_along_two_axes() -> None:
    x = variable("float64", None)
    numbers = np.arange(5.0)
    check([op("sub", dimshuffle(x, (0, "x")), dimshuffle(x, ("x", 0)))], [x], [numbers])


def test_outputs_of_smaller_space_are_written_when_the_larger_is_empty() -> None:
    x, row = variable("float64", None, None), variable("float64", None)
    scaled = op("exp", row)
    inputs, outputs = [x, row], [op("add", x, scaled), scaled]
    for shape in ((0, 3), (4, 3), (1, 3)):
        check(outputs, inputs, [np.ones(shape), np.arange(3.0)])


def test_scalars_pass_as_arrays_of_rank_zero() -> None:
    x, a = variable("float64", None), variable("float64")
    check([op("mul", x, a), op("exp", a)], [x, a], [np.arange(4.0), np.array(3.0)])


def test_special_constants_keep_their_values() -> None:
    x = variable("float64", None)
    outputs = [op("copysign", 1.0, op("mul", x, -0.0)), op("minimum", x, np.inf), op("add", x, np.nan)]
    check(outputs, [x], [np.array([1.0, -1.0, np.inf])])
    largest = variable("uint64", None)
    check([op("sub", largest, 2**64 - 1)], [largest], [np.array([0, 5], "uint64")])


def test_constants_of_one_element_are_not_passed() -> None:
    x = variable("float64", None)
    kernel = lower(group_of([op("add", op("mul", x, 2.0), 1.0)], [x]))
    assert len(kernel.inputs) == len(kernel.operands) == 1


def test_constant_arrays_are_read_only_and_passed() -> None:
    x = variable("float64", None)
    check([op("mul", x, np.arange(3.0))], [x], [np.ones(3)])


def test_fill_takes_only_the_shape_of_its_model() -> None:
    x, value = variable("float32", None, None), variable("int64", 1, None)
    check([op("fill", x, value)], [x, value], [np.full((2, 3), np.nan, "float32"), np.arange(3)[None]])


def test_kernels_alike_share_machine_code_and_comments_tell_them_apart() -> None:
    x, y = variable("float64", None), variable("float64", None)
    x.name, y.name = "speed", "mass"
    first, second = (lower(group_of([op("add", op("sqr", v), 1.0)], [v])) for v in (x, y))
    assert first == second
    assert compile_kernel(first, HOST) is compile_kernel(second, HOST)
    assert "speed" in print_kernel(first, HOST)
    assert "mass" in print_kernel(second, HOST)


def test_many_axes() -> None:
    x = variable("float64", *[None] * 6)
    y = variable("float64", None, 1, None, 1, None, 1)
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((2, 3, 2, 3, 2, 2)), rng.standard_normal((2, 1, 2, 1, 2, 1))]
    check([op("sub", x, y)], [x, y], data)
    swapped = np.moveaxis(data[0], 0, -1).copy()
    (got,) = run(group_of([op("sub", x, y)], [x, y]), {x: np.moveaxis(swapped, -1, 0), y: data[1]})
    np.testing.assert_array_equal(got, data[0] - data[1])
