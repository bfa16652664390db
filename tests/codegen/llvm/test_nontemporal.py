"""Results written past the caches: the same bits, whatever lines they begin and end in."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import HOST, host_with
from numba.core import types

from esat.codegen import cache, lower, overwrite
from esat.codegen.cache.compiled_kernel import compile_kernel
from esat.codegen.compile import compile_parallel_kernel
from esat.codegen.effort import is_streamed
from esat.codegen.ground.target import Caches, Target
from esat.codegen.kernel.access import streamed_outputs
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Kernel, Loop, walk
from esat.codegen.llvm.nontemporal import BUFFER, end_of_stream, line_buffer, stream
from esat.codegen.printing.print_nontemporal import grouped_rows
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.extract.prices.machine import MachineProfile
from esat.graph import TensorType, Variable
from esat.ops.normalization import softmax
from esat.ops.reduction import SUM, reduce

MACHINE = MachineProfile(cache_sizes=(1e6, 1e7))
SMALL = Target.of(HOST.triple, HOST.features, HOST.cpu, Caches(last=10_000_000))


def kernel_of(outputs: list[Variable], inputs: list[Variable]) -> Kernel:
    return lower(group_of(outputs, inputs))


def displaced(shape: tuple[int, ...], dtype: str, elements: int) -> np.ndarray:
    """An array so many elements behind the start of a line, filled with what no kernel leaves behind."""
    size = int(np.prod(shape))
    memory = np.full(size + elements + 2 * BUFFER, 99).astype(dtype)
    start = (-memory.ctypes.data % 64) // memory.itemsize + elements
    return memory[start : start + size].reshape(shape)


def programs() -> dict[str, tuple[list[Variable], list[Variable], tuple[str, ...]]]:
    found = {}
    for dtype in ("float64", "float32", "int8"):
        x, row = variable(dtype, None, None), variable(dtype, None)
        found[f"flat {dtype}"] = ([op("add", x, x)], [x], (dtype,))
        found[f"rows {dtype}"] = ([op("add", op("mul", x, row), x)], [x, row], (dtype,))
        found[f"two types, {dtype}"] = ([op("lt", x, row), op("sub", x, row)], [x, row], ("bool", dtype))
    x = variable("float64", None, None)
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    found["after a sum"] = ([centred], [x], ("float64",))
    return found


def assert_nothing_else_changes(
    kernel: Callable[..., None],
    results: Sequence[np.ndarray],
    arrays: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
) -> None:
    """A kernel writes the bits expected into parts of larger arrays, and nothing beside them."""
    around = [result.base.copy() for result in results]
    kernel(*results, *arrays)
    for result, wanted, before in zip(results, expected, around, strict=True):
        assert result.tobytes() == wanted.tobytes()
        changed = result.base.view(np.uint8) != before.view(np.uint8)
        assert changed.sum() <= result.nbytes


@pytest.mark.parametrize("name", programs())
def test_streamed_results_are_the_bits_of_others(name: str) -> None:
    outputs, inputs, dtypes = programs()[name]
    group = group_of(outputs, inputs)
    kernel = lower(group)
    passed = [group.inputs[place].tensor_type for place in kernel.operands]
    generator = np.random.default_rng(0)
    plain, streamed = (
        compile_parallel_kernel(kernel, HOST),
        compile_parallel_kernel(kernel, HOST, streams=True),
    )
    for shape in ((1, 1), (3, 7), (5, 64), (7, 200), (2, 1029), (0, 5), (4, 0)):
        arrays = [(generator.normal(size=shape[-type.ndim :]) * 9).astype(type.dtype) for type in passed]
        expected = [displaced(shape, dtype, 0) for dtype in dtypes]
        plain(1, *expected, *arrays)
        for threads, elements in ((1, 0), (1, 1), (2, 5), (5, 63)):
            results = [displaced(shape, dtype, elements) for dtype in dtypes]
            assert_nothing_else_changes(partial(streamed, threads), results, arrays, expected)


def programs_of_rows(dtype: str) -> dict[str, tuple[list[Variable], list[Variable]]]:
    """What is written in groups of rows, since these have a factor for each column in common."""
    x, y, row = variable(dtype, None, None), variable(dtype, None, None), variable(dtype, None)
    column, blocks = variable(dtype, None, 1), variable(dtype, None, None, None)

    def layer_norm(of: Variable) -> Variable:
        axis = of.tensor_type.ndim - 1
        centred = op("sub", of, op("mul", reduce(SUM, of, axis, keepdims=True), 0.01))
        squares = reduce(SUM, op("sqr", centred), axis, keepdims=True)
        return op("mul", op("div", centred, op("sqrt", op("add", squares, 1e-5))), row)

    total = reduce(SUM, x, 1, keepdims=True)
    chosen = op("switch", op("gt", total, 0.0), op("mul", x, row), total)
    return {
        "layer norm": ([layer_norm(x)], [x, row]),
        "of rows below two axes": ([layer_norm(blocks)], [blocks, row]),
        "and another matrix": ([op("add", layer_norm(x), y)], [x, row, y]),
        "and results of rows": ([layer_norm(x), op("exp", total)], [x, row]),
        "flags of rows": ([chosen, op("lt", x, row)], [x, row]),
        "row and column": ([op("mul", op("add", x, row), column)], [x, row, column]),
    }


ROWS = {
    "one by one, prefetched": host_with(64, groups_rows=False, prefetch_distance=8192),
    "in groups, prefetched": host_with(64, prefetch_distance=8192),
    "in groups": host_with(32, prefetch_distance=0),
}
"""Machines on which rows go one by one, or in groups where they are loaded; others are prefetched, too."""


@pytest.fixture(params=ROWS)
def target(request: pytest.FixtureRequest) -> Target:
    return ROWS[request.param]


SINGLE = ("layer norm", "and results of rows", "flags of rows")
"""Programs that are compiled for floats of half the size too, those whose results have several among them."""


@pytest.mark.parametrize("reading", ROWS)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, "float64") for name in programs_of_rows("float64")] + [(name, "float32") for name in SINGLE],
)
def test_rows_in_groups_are_the_bits_of_others(name: str, reading: str, dtype: str) -> None:
    target = ROWS[reading]
    outputs, inputs = programs_of_rows(dtype)[name]
    group = group_of(outputs, inputs)
    kernel = lower(group)
    printed = print_parallel_source(kernel, target, "C", comments=False, streams=True)
    assert printed is not None
    assert ("for low in range(" in printed.text) == target.tuning.groups_rows
    # What is fetched ahead changes no bit: machines of one width share the kernel to compare with.
    plain, streamed = (
        compile_parallel_kernel(kernel, host_with(target.vector_bytes, prefetch_distance=0)),
        compile_parallel_kernel(kernel, target, streams=True),
    )
    generator = np.random.default_rng(0)
    for rows, columns in ((1, 1), (19, 130), (0, 5), (4, 0), (0, 5000), (17, 4001), (8, 9000), (2, 70_000)):

        def shape_of(kind: TensorType, sizes: tuple[int, ...] = (2, rows, columns)) -> tuple[int, ...]:
            known = (size if size is not None else 0 for size in kind.shape)
            return tuple(one or size for one, size in zip(known, sizes[3 - kind.ndim :], strict=True))

        passed = [group.inputs[place].tensor_type for place in kernel.operands]
        arrays = [generator.normal(size=shape_of(kind)).astype(kind.dtype) for kind in passed]
        kinds = [output.tensor_type for output in group.outputs]
        expected = [displaced(shape_of(kind), kind.dtype, 0) for kind in kinds]
        plain(1, *expected, *arrays)
        if "moments_together" in printed.text:  # rows read once, whose sums are rounded elsewhere
            two_passes = [one.copy() for one in expected]
            streamed(1, *expected, *arrays)
            for result, wanted in zip(expected, two_passes, strict=True):
                # An exponential of a sum is as far off, relatively, as the sum is in units of one.
                epsilon = float(np.finfo(dtype).eps)
                scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
                atol, rtol = 16 * epsilon * scale, 2 * columns * epsilon
                np.testing.assert_allclose(result, wanted, rtol=rtol, atol=atol)
        for threads, elements in ((1, 0), (1, 3), (2, 5)):
            results = [displaced(shape_of(kind), kind.dtype, elements) for kind in kinds]
            assert_nothing_else_changes(partial(streamed, threads), results, arrays, expected)


def test_groups_are_of_rows_that_load_something_in_common(target: Target) -> None:
    x, row = variable("float64", None, None), variable("float64", None)

    def is_grouped(output: Variable) -> bool:
        kernel = collapse(kernel_of([output], [x, row]))
        loops = [one for one in walk(kernel.body) if isinstance(one, Loop)]
        return any(grouped_rows(loop, streamed_outputs(kernel), target) for loop in loops)

    assert is_grouped(op("add", op("mul", x, 2.0), row)) == target.tuning.groups_rows
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    assert is_grouped(op("mul", centred, row)) == target.tuning.groups_rows
    assert not is_grouped(op("sub", x, reduce(SUM, x, 1, keepdims=True)))
    assert not is_grouped(op("mul", x, 2.0))
    assert not is_grouped(op("mul", softmax(x, 1), row))  # keeps exponentials in its result


def test_only_results_that_are_written_once_and_not_read_are_streamed() -> None:
    x = variable("float64", None, None)
    total = kernel_of([op("add", x, 1.0)], [x])
    assert streamed_outputs(total) == (0,)
    assert streamed_outputs(overwrite(total, 0, 0)) == ()
    assert streamed_outputs(kernel_of([reduce(SUM, x, 1)], [x])) == ()
    assert streamed_outputs(kernel_of([softmax(x, 1)], [x])) == ()  # keeps exponentials in its result


def test_the_source_shows_what_is_streamed() -> None:
    x = variable("float64", None)
    kernel = kernel_of([op("mul", x, 3.0)], [x])
    texts = [
        print_parallel_source(kernel, HOST, "C", comments=True, streams=streams) for streams in (False, True)
    ]
    assert [text is not None and "stream(o0, (start, ), lines0, width)" in text.text for text in texts] == [
        False,
        True,
    ]


def test_the_hint_reaches_the_machine_code() -> None:
    body = ("lines = line_buffer(float64)", "stream(x, (0, ), lines, 64)", "end_of_stream()")
    text = f"def kernel(x):\n    {'; '.join(body)}\n"
    signature = types.void(types.Array(types.float64, 1, "C"))
    names = {"line_buffer": line_buffer, "stream": stream, "end_of_stream": end_of_stream}
    names["float64"] = types.float64
    options = cache.CompileOptions(HOST)
    assembly = compile_kernel("0" * 64, text, "kernel", signature, names, options).assembly
    assert "movnt" in assembly or "stnp" in assembly
    assert "fence" in assembly or "dmb" in assembly


def test_streamed_are_large_results_of_long_rows_and_little_arithmetic() -> None:
    x, row = variable("float64", None, None), variable("float64", None)
    cheap = collapse(kernel_of([op("mul", op("add", x, 1.0), row)], [x, row]))
    costly = collapse(kernel_of([op("tanh", op("sin", op("mul", x, row)))], [x, row]))

    def streamed(kernel: Kernel, *shape: int) -> bool:
        return is_streamed(kernel, [shape[-array.rank :] for array in kernel.arrays], MACHINE, SMALL)

    assert streamed(cheap, 2000, 1000)
    assert not streamed(costly, 2000, 1000)
    assert streamed(cheap, 1000, 1000)
    assert not streamed(cheap, 600, 700)
    centred = collapse(kernel_of([op("sub", x, reduce(SUM, x, 1, keepdims=True))], [x]))
    assert streamed(centred, 600, 700)  # rows are read twice
    assert not streamed(centred, 400, 600)
    squares = reduce(SUM, op("mul", op("sub", x, reduce(SUM, x, 1, keepdims=True)), x), 1, keepdims=True)
    moderate = collapse(
        kernel_of([op("mul", op("sub", op("div", x, op("sqrt", squares)), row), row)], [x, row])
    )
    assert streamed(moderate, 600, 700)  # memory sets the pace, not the last cache, which would hold it
    assert not streamed(cheap, 200_000, 10)
