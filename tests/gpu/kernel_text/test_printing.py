"""Kernels printed for a device: their text, and in the emulator NumPy's results in any order of threads."""

from itertools import count

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from gpu.kernel_files import FOLDER, PRINTED, kernel_of, text_of
from gpu.printed import check

from esat.codegen import lower
from esat.gpu.kernel_text.launches import LaunchVariant
from esat.gpu.kernel_text.templates import fill, is_fillable
from esat.gpu.printing import is_printable, print_launches, sizes_in, variant_for
from esat.gpu.rules import DeviceRules
from esat.graph import FunctionGraph, Variable
from esat.graph.registry import registered_ops
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.elementwise.records.code import CODE_DTYPES, SCIPY_FUNCTIONS
from esat.ops.elementwise.records.record import Elementwise
from esat.ops.reduction import ARGMAX, ARGMIN, MAX, PROD, SUM, reduce
from esat.phases.fusing.fusion import fuse

ORDERS = (None, 1, 2)
"""Orders of threads: one after the other, and two others."""


def matrix(dtype: str = "float32") -> Variable:
    return variable(dtype, None, None)


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def integers(dtype: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng(0).integers(limits.min, limits.max, shape, dtype, endpoint=True)


def softmax(x: Variable, axis: int) -> Variable:
    powers = op("exp", op("sub", x, reduce(MAX, x, axis, keepdims=True)))
    return op("div", powers, reduce(SUM, powers, axis, keepdims=True))


# ---- text


@pytest.mark.parametrize("name", PRINTED)
def test_kernels_are_printed_as_in_their_files(name: str) -> None:
    assert text_of(name) == (FOLDER / f"{name}.cuda").read_text(encoding="utf-8")


def test_each_file_is_that_of_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.cuda")} == PRINTED.keys()


def test_every_template_of_the_table_of_ops_has_a_form() -> None:
    ops = [one for one in registered_ops() if isinstance(one, Elementwise)]
    templates = {(one.source(dtype), dtype) for one in ops for dtype in CODE_DTYPES}
    templates = {(text, dtype) for text, dtype in templates if text is not None}
    assert len(templates) > 200
    lacking = {one for one in templates if not is_fillable(*one)}
    assert {text.partition("(")[0] for text, _ in lacking} == SCIPY_FUNCTIONS.keys()  # of the host alone
    for text, dtype in templates - lacking:
        lines, value = fill(text, dtype, ["a", "b", "c"], (f"t{number}" for number in count()))
        compile("\n".join([*lines, value]), "<template>", "exec")


def test_all_kernels_of_the_files_are_printable() -> None:
    assert all(is_printable(kernel_of(name)) for name in PRINTED)


# ---- variants


def test_vectors_need_rows_and_addresses_that_fit() -> None:
    kernel = lower(
        group_of([op("add", x := matrix(), dimshuffle(v := variable("float32", None), ("x", 0)))], [x, v])
    )
    shapes = [(5, 8), (5, 8), (8,)]
    assert variant_for(kernel, shapes) == LaunchVariant(vector=True, threads_across=2)
    assert variant_for(kernel, [(5, 7), (5, 7), (7,)]) == LaunchVariant(vector=False, threads_across=8)
    assert not variant_for(kernel, shapes, addresses=(0, 64, 72)).vector
    strides = [(32, 4), (4, 20), (4,)]
    assert variant_for(kernel, shapes, strides) == LaunchVariant(vector=False, strided=True, threads_across=8)
    assert sizes_in(kernel, shapes) == {"n0": 5, "n1": 8}
    assert sizes_in(kernel, shapes, strides) == {"n0": 5, "n1": 8, "s0_0": 1, "s0_1": 5, "s1_0": 1}


def test_few_columns_have_few_threads_across_and_many_blocks() -> None:
    kernel = kernel_of("sums_of_columns")
    assert variant_for(kernel, [(6,), (10_000, 6)]) == LaunchVariant(threads_across=4, split=True)
    assert variant_for(kernel, [(6,), (100, 6)]) == LaunchVariant(threads_across=4)
    assert variant_for(kernel, [(1_000_000,), (100, 1_000_000)]) == LaunchVariant()


@pytest.mark.parametrize(("length", "longest"), [(1, 8), (9, 32), (512, 512), (16384, 16384), (16385, 0)])
def test_rows_have_size_classes(length: int, longest: int) -> None:
    kernel = kernel_of("softmax")
    assert variant_for(kernel, [(3, length), (3, length)]).longest_row == longest


def test_flat_kernels_take_vectors_of_any_number_of_elements() -> None:
    kernel = kernel_of("exponentials")
    assert variant_for(kernel, [(7,), (7,), (7,)]).vector
    (launch,) = print_launches(kernel, LaunchVariant()).launches
    assert launch.blocks({"n0": 0}) == (0, 1, 1)
    assert launch.blocks({"n0": 4 * 256}) == (1, 1, 1)
    assert launch.blocks({"n0": 4 * 256 + 1}) == (2, 1, 1)


@pytest.mark.parametrize(
    ("dtype", "count", "vector"), [("float64", 3, True), ("float64", 4, False), ("float32", 6, True)]
)
def test_code_that_is_too_long_is_not_repeated_for_lanes(dtype: str, count: int, vector: bool) -> None:
    x = variable(dtype, None)
    names = ("log", "exp", "erf", "tanh", "sin", "cos")[:count]
    total = op("sqrt", x)
    for name in names:
        total = op("add", total, op(name, x))
    kernel = lower(group_of([total], [x]))
    assert variant_for(kernel, [(8,), (8,)]).vector == vector


def test_a_grid_has_rows_along_two_of_its_axes() -> None:
    """Along one there may be 65,535 blocks, here of eight rows."""
    (launch,) = print_launches(kernel_of("rows_and_columns"), LaunchVariant()).launches
    assert launch.blocks({"n0": 9, "n1": 100}) == (2, 2, 1)
    assert launch.blocks({"n0": 8 * 65_535 + 1, "n1": 64}) == (1, 65_535, 2)
    assert 0 in launch.blocks({"n0": 0, "n1": 64})


# ---- fusion


def test_what_gathers_over_rows_that_are_gathered_is_a_kernel_of_its_own() -> None:
    x = matrix()
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    graph = FunctionGraph([x], [centred, reduce(SUM, x)], clone=False)
    assert [len(group.nodes) for group in fuse(graph, DeviceRules()).groups] in ([2, 1], [1, 2])
    assert len(fuse(FunctionGraph([x], [softmax(x, 1)], clone=False), DeviceRules()).groups) == 1


# ---- results


def test_rows_are_held_by_threads_of_a_warp_and_of_a_block() -> None:
    x = matrix()
    assert check([softmax(x, 1)], [x], [numbers(11, 12)], ORDERS) == ["rows"]
    check([softmax(x, 1)], [x], [numbers(3, 600)], ORDERS)


def test_rows_of_two_axes_and_rows_along_two_axes() -> None:
    x, y = matrix(), matrix()
    apart = op("sqr", op("sub", dimshuffle(x, (0, "x", 1)), dimshuffle(y, ("x", 0, 1))))
    data = [numbers(30, 3), numbers(7, 3)]
    assert check([reduce(SUM, apart, 2)], [x, y], data, ORDERS) == ["rows"]
    assert check([reduce(SUM, apart, (1, 2))], [x, y], data, ORDERS) == ["rows"]


def test_rows_of_any_length_are_read_again() -> None:
    x = matrix()
    check([softmax(x, 1)], [x], [numbers(2, 1203)], ORDERS, longest_row=0)


def test_columns_and_what_is_computed_from_them() -> None:
    x = matrix()
    centred = op("exp", op("sub", x, reduce(MAX, x, 0, keepdims=True)))
    assert check([centred], [x], [numbers(21, 36)], ORDERS) == ["columns"]
    empty = np.zeros((0, 36), "float32")
    check([reduce(SUM, x, 0)], [x], [empty])


def test_rows_of_columns_are_shared_by_blocks_where_columns_are_few() -> None:
    x = matrix()
    data = np.round(numbers(300, 8))
    assert check([reduce(ARGMAX, x, 0)], [x], [data], ORDERS) == ["columns", "columns"]
    # Columns that are centred need what an earlier launch gathered.
    check([op("sub", x, reduce(SUM, x, 0, keepdims=True))], [x], [data], ORDERS, vector=False)


def test_few_rows_that_are_long_are_shared_by_blocks() -> None:
    x = matrix()
    assert variant_for(kernel_of("softmax"), [(3, 20_000)] * 2) == LaunchVariant(split=True)
    data = np.round(numbers(2, 8200))
    assert check([reduce(ARGMAX, x, 1)], [x], [data], ORDERS, longest_row=0, split=True) == ["rows", "rows"]


def test_arrays_read_across_memory_go_through_shared_squares() -> None:
    x, y = matrix(), matrix()
    transposed = op("add", x, dimshuffle(y, (1, 0)))
    assert check([transposed], [x, y], [numbers(40, 35), numbers(35, 40)], ORDERS) == ["tiles"]


def test_a_sum_over_all_elements_does_not_depend_on_order() -> None:
    v, w = variable("float32", None), variable("float32", None)
    squares = reduce(SUM, op("sqr", op("sub", v, w)))
    assert check([squares], [v, w], [numbers(4099), -numbers(4099)], ORDERS) == ["full", "final"]
    check([squares], [v, w], [numbers(0), numbers(0)])


def test_places_of_extrema_are_those_of_the_first_nan_and_of_ties() -> None:
    x = matrix()
    data = np.round(numbers(40, 31))
    data[3, [5, 9]] = np.nan
    data[4] = -np.inf
    data[5] = np.inf
    outputs = [reduce(ARGMAX, x, 1), reduce(ARGMIN, x, 1)]
    assert check(outputs, [x], [data], ORDERS) == ["rows"]
    check([reduce(ARGMAX, x)], [x], [data], ORDERS)


def test_rows_and_columns_are_broadcast() -> None:
    x, row, column = matrix(), variable("float32", None), variable("float32", None, 1)
    scaled = op("mul", op("add", x, dimshuffle(row, ("x", 0))), column)
    assert check([scaled], [x, row, column], [numbers(41, 36), numbers(36), numbers(41, 1)], ORDERS) == [
        "flat"
    ]


def test_strided_inputs() -> None:
    x, y = matrix("float64"), matrix("float64")
    data = numbers(30, 22, dtype="float64")
    assert check([op("add", op("exp", x), y)], [x, y], [data[::2, ::-2], data[:11, :15].T]) == ["flat"]


def test_integers_wrap_around_and_divide_by_zero() -> None:
    x, y = variable("int32", None), variable("int32", None)
    data = [integers("int32", 70), integers("int32", 70) % 5 - 2]
    data[0][:4] = np.iinfo("int32").min
    data[1][:4] = [-1, 0, 1, 2]
    outputs = [op(name, x, y) for name in ("mul", "floor_div", "mod", "fmod", "left_shift", "right_shift")]
    check([*outputs, op("abs", x), op("neg", x)], [x, y], data, ORDERS)


def test_bytes_and_truth_values_move_sixteen_at_a_time() -> None:
    x, b = variable("int8", None), variable("bool", None)
    data = [integers("int8", 70), integers("int8", 70) > 0]
    check([op("switch", b, x, op("add", x, x)), op("logical_not", b)], [b, x], [data[1], data[0]], ORDERS)


def test_products_of_wide_integers_wrap_around_when_gathered() -> None:
    x = matrix("int64")
    check([reduce(PROD, x, 1)], [x], [integers("int64", 5, 9)], ORDERS)
