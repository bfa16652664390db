"""Loops over rows: many rows give the bits of each alone, in one thread and in several."""

from collections.abc import Callable

import numpy as np
import pytest
from codegen.kernel_cases import check, group_of, op, variable
from codegen.targets import HOST

from esat.codegen import compile_kernel, lower, overwrite, print_kernel
from esat.codegen.compile import compile_parallel_kernel
from esat.graph import Variable
from esat.ops.normalization import softmax
from esat.ops.reduction import ARGMAX, MAX, SUM, reduce


def of_row(kind: object, x: Variable) -> Variable:
    return reduce(kind, x, x.tensor_type.ndim - 1, keepdims=True)


def layer_norm(x: Variable) -> Variable:
    centred = op("sub", x, op("mul", of_row(SUM, x), 0.01))
    return op("div", centred, op("sqrt", op("add", of_row(SUM, op("sqr", centred)), 1e-5)))


def programs(x: Variable) -> dict[str, list[Variable]]:
    total, largest = of_row(SUM, x), of_row(MAX, x)
    return {
        "layer norm": [layer_norm(x)],
        "softmax": [softmax(x, x.tensor_type.ndim - 1)],
        "share": [op("div", x, total)],
        "results of rows": [total, op("sub", x, largest), op("exp", largest)],
        "booleans and places": [op("eq", x, largest), of_row(ARGMAX, x)],
        "flag of a row": [op("switch", op("gt", total, 0.0), x, largest)],
    }


NAMES = list(programs(variable("float64", None, None)))
SHAPES = [(0, 5), (1, 1), (1, 40), (2, 7), (5, 316), (3, 1100), (4, HOST.near_bytes // 8)]


def run(
    function: Callable[..., None], outputs: list[Variable], x: np.ndarray, *first: int
) -> list[np.ndarray]:
    """What a kernel that is called with numbers, outputs and a matrix writes."""
    kinds = [output.tensor_type for output in outputs]
    results = [np.full((len(x), kind.shape[1] or x.shape[1]), 99, kind.numpy_dtype) for kind in kinds]
    function(*first, *results, x)
    return results


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_many_rows_are_the_bits_of_each(name: str, dtype: str) -> None:
    x = variable(dtype, None, None)
    outputs = programs(x)[name]
    group = group_of(outputs, [x])
    kernel = compile_kernel(lower(group), HOST)
    shared = compile_parallel_kernel(lower(group), HOST)
    for shape in SHAPES:
        values = np.random.default_rng(shape[1]).normal(size=shape).astype(dtype)

        together = run(kernel, outputs, values)
        for row in range(shape[0]):
            alone = run(kernel, outputs, values[row : row + 1])
            for whole, part in zip(together, alone, strict=True):
                assert whole[row : row + 1].tobytes() == part.tobytes()
        expected = run(shared, outputs, values, 1)
        for whole, part in zip(together, expected, strict=True):
            np.testing.assert_allclose(part, whole, rtol=1e-5 if dtype == "float32" else 1e-13)
        for threads in (2, 3):
            for wanted, part in zip(expected, run(shared, outputs, values, threads), strict=True):
                assert wanted.tobytes() == part.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_known_sizes_change_no_bit(name: str, dtype: str) -> None:
    """Of an axis of a known size loops have fewer parts: no blocks, and no whole vectors where none fits."""
    for columns in (2, 5, 7, 8, 15, 16, 31, 32, 256, 257):
        values = np.random.default_rng(columns).normal(size=(40, columns)).astype(dtype)
        results, texts = [], []
        for size in (columns, None):
            x = variable(dtype, None, size)
            outputs = programs(x)[name]
            kernel = lower(group_of(outputs, [x]))
            results.append(run(compile_kernel(kernel, HOST), outputs, values))
            texts.append(print_kernel(kernel, HOST))
        for known, unknown in zip(*results, strict=True):
            assert known.tobytes() == unknown.tobytes()
        is_shorter = len(texts[0].splitlines()) < len(texts[1].splitlines())
        assert is_shorter == (columns < 257 and name != "booleans and places")


@pytest.mark.parametrize("name", NAMES)
def test_rows_below_several_axes_are_numpys(name: str) -> None:
    x = variable("float64", None, None, None)
    for shape in ((3, 4, 50), (2, 3, 2000), (0, 3, 4), (3, 0, 4)):
        values = np.random.default_rng(0).normal(size=shape)
        check(programs(x)[name], [x], [values], rtol=1e-11, atol=1e-12)
        check(programs(x)[name], [x], [values], rtol=1e-11, atol=1e-12, layout="A")


@pytest.mark.parametrize("columns", [60, 3000])
def test_rows_in_place(columns: int) -> None:
    x = variable("float64", None, None)
    kernel = overwrite(lower(group_of([layer_norm(x)], [x])), 0, 0)
    values = np.random.default_rng(0).normal(size=(7, columns))
    wanted = np.empty_like(values)
    compile_kernel(lower(group_of([layer_norm(x)], [x])), HOST)(wanted, values)
    compile_kernel(kernel, HOST)(values)
    np.testing.assert_allclose(values, wanted, rtol=1e-12)


def test_sums_of_known_short_axes_in_several_threads() -> None:
    """A sum along a short axis beside a long one, which threads share."""
    for size in (3, 200, 256, 300):
        x, y = variable("float64", size), variable("float64", 300, 400)
        outputs = [reduce(SUM, op("log", x), 0), op("tanh", y), reduce(SUM, op("mul", y, y), None)]
        values = np.linspace(1.0, 2.0, size), np.random.default_rng(size).normal(size=(300, 400))
        shared = compile_parallel_kernel(lower(group_of(outputs, [x, y])), HOST)
        found = []
        for threads in (1, 2, 3):
            results = [np.empty(()), np.empty((300, 400)), np.empty(())]
            shared(threads, *results, *values)
            found.append(results)
        np.testing.assert_allclose(found[0][0], np.log(values[0]).sum(), rtol=1e-14)
        np.testing.assert_allclose(found[0][2], (values[1] ** 2).sum(), rtol=1e-14)
        for results in found[1:]:
            for one, other in zip(results, found[0], strict=True):
                assert one.tobytes() == other.tobytes()
