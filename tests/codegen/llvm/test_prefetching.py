"""What loops prefetch; that results keep their bits is for the tests of streams and threads."""

import mmap

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import HOST, host_with
from numba.core import types

from esat.codegen import cache, lower
from esat.codegen.cache.compiled_kernel import compile_kernel
from esat.codegen.compile import compile_parallel_kernel
from esat.codegen.ground.target import Target
from esat.codegen.llvm.prefetching import prefetch_lines, prefetch_near
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.graph import Variable
from esat.ops.reduction import MAX, SUM, reduce

WIDTHS = [64, 32]
"""Bytes of vectors. Rows that are written one by one are read by other code where these are shorter."""


def target(vector_bytes: int = 64, **tuning: object) -> Target:
    """A machine that finds by itself what comes next, but for what is said."""
    return host_with(vector_bytes, **{"prefetch_distance": 0, **tuning})


def counts(vector_bytes: int) -> list[str]:
    """How much of rows written one by one is prefetched, of float64, in each code for a part of them."""
    return ["width"] if vector_bytes == 64 else ["64", "width"]


def end_of_row(end: str = "n1") -> list[str]:
    """What prefetches the line that a row ends in, which it stores a part of, past the caches."""
    return [f"prefetch_lines(o0, (i0, {end} - 1, ), 1)"]


def prefetches(target: Target, output: Variable, *inputs: Variable, streams: bool = True) -> list[str]:
    """The lines of a kernel's source that prefetch."""
    printed = print_parallel_source(lower(group_of([output], list(inputs))), target, "C", True, streams)
    assert printed is not None
    return [line.strip() for line in printed.text.splitlines() if "prefetch_" in line]


@pytest.mark.parametrize("width", WIDTHS)
def test_streams_leave_what_they_read_to_the_processor(width: int) -> None:
    x, column = variable("float64", None, None), variable("float64", None, 1)
    scaled = op("mul", op("add", x, 1.0), column)
    assert prefetches(target(width), scaled, x, column) == end_of_row()
    assert prefetches(target(width), scaled, x, column, streams=False) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_groups_of_rows_prefetch_the_next_group(width: int) -> None:
    x, row = variable("float64", None, None), variable("float64", None)
    machine = target(width)
    below = [f"prefetch_lines(x0, (i0 + uintp(group), start, ), {count})" for count in ("64", "width")]
    next_row = [f"prefetch_lines(x0, (i0 + uintp(1), start, ), {count})" for count in counts(width)]
    centred = op("mul", op("sub", x, reduce(SUM, x, 1, keepdims=True)), row)
    assert prefetches(machine, centred, x, row) == end_of_row() + next_row + end_of_row() + below
    scaled = op("add", op("mul", x, 2.0), row)
    assert prefetches(machine, scaled, x, row) == end_of_row("end1") + end_of_row("end1") + below


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_that_were_read_before_prefetch_the_next(width: int) -> None:
    x = variable("float64", None, None)
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    next_row = [f"prefetch_lines(x0, (i0 + uintp(1), start, ), {count})" for count in counts(width)]
    assert prefetches(target(width), centred, x) == end_of_row() + next_row


@pytest.mark.parametrize("width", WIDTHS)
def test_all_lines_of_a_single_array_are_prefetched(width: int) -> None:
    x, y, row = variable("float64", None, None), variable("float64", None, None), variable("float64", None)
    machine = target(width, prefetch_distance=8192, groups_rows=False, reading_places=1)
    lines = [f"prefetch_near(x0, (i0, start + uintp(1024), ), {count})" for count in counts(width)]
    scaled = op("add", op("mul", x, 2.0), row)
    assert prefetches(machine, scaled, x, row) == end_of_row("end1") + lines
    assert prefetches(machine, op("add", op("mul", x, y), row), x, y, row) == end_of_row("end1")
    assert prefetches(machine, reduce(SUM, op("mul", x, x)), x) == [
        "prefetch_near(x0_view, (uintp(run) + uintp(1024), ), 64)"
    ]


def test_sums_of_arrays_that_caches_hold_are_read_in_whole_blocks() -> None:
    x = variable("float32", None, None)
    kernel = lower(group_of([reduce(SUM, op("mul", x, x))], [x]))
    machine = target(prefetch_distance=8192, prefetch_from=2 << 20)
    printed = print_parallel_source(kernel, machine, "C", True, False)
    assert printed is not None
    runs = "(min(first1 + 256, n1) - first1) // 128 * 128 if n1 > 524288 else first1"
    assert f"rest = first1 + {runs}" in printed.text


@pytest.mark.parametrize("width", WIDTHS)
def test_loops_that_take_sums_share_the_next_row(width: int) -> None:
    x, machine = variable("float64", None, None), target(width, groups_rows=False)
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    below = "i0 + uintp(1 + 1920 // n1)"
    rows_ahead = [f"prefetch_near(x0, ({below}, start, ), {count})" for count in counts(width)]
    whole = ["prefetch_near(x0, (i0 + uintp(1), uintp(first1 + 0), ), 256)"]
    assert prefetches(machine, centred, x) == whole + end_of_row() + rows_ahead
    squares = reduce(SUM, op("sqr", centred), 1, keepdims=True)
    first, second = (
        [f"prefetch_near(x0, (i0 + uintp(1), uintp(first1 + {place}), ), 128)"] for place in (0, 128)
    )
    assert prefetches(machine, op("div", centred, squares), x) == first + second + end_of_row() + rows_ahead
    extremum = op("sub", x, reduce(MAX, x, 1, keepdims=True))
    assert prefetches(machine, extremum, x) == end_of_row() + rows_ahead


@pytest.mark.parametrize("level", [1, 2])
def test_prefetches_reach_the_machine_code(level: int) -> None:
    text = "def kernel(x, n):\n    prefetch(x, (n, ), 64)\n"
    signature = types.void(types.Array(types.float64, 1, "C"), types.int64)
    names = {"prefetch": prefetch_near if level == 1 else prefetch_lines}
    assembly = compile_kernel("0" * 64, text, "kernel", signature, names, cache.CompileOptions(HOST)).assembly
    assert "prefetch" in assembly or "prfm" in assembly
    assert ("prefetcht0" in assembly or "pldl1keep" in assembly) == (level == 1)


@pytest.mark.parametrize("distance", [0, 8192])
def test_what_lies_behind_the_end_of_an_array_may_be_prefetched(distance: int) -> None:
    x, machine = variable("float64", None), target(prefetch_distance=distance, prefetch_from=0)
    function = compile_parallel_kernel(lower(group_of([reduce(SUM, x, 0)], [x])), machine)
    for size in (1, 512, 1536, 2**18):
        array, result = np.frombuffer(mmap.mmap(-1, size * 8)), np.empty(())
        array[:] = 1.0
        function(1, result, array)
        assert result == size
