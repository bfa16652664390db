"""What loops announce to the caches; that results keep their bits is for the tests of streams and threads."""

import mmap

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, variable
from numba.core import types

from esat.codegen import cache, lower, processor
from esat.codegen.cache.kernel import compile_kernel
from esat.codegen.parallel import compile_parallel_kernel
from esat.codegen.prefetching import prefetch_lines, prefetch_near, prefetch_pages
from esat.codegen.printing import prefetches, streams
from esat.codegen.printing.parts import print_parallel_source
from esat.graph import Variable
from esat.ops.reduction import MAX, SUM, reduce


@pytest.fixture(autouse=True)
def fetches_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor sees by itself what comes next, unless a test says otherwise."""
    monkeypatch.setattr(processor, "fetches_little", lambda: False)
    monkeypatch.setattr(processor, "reads_rows_one_by_one", lambda: False)
    monkeypatch.setattr(processor, "waits_at_pages", lambda: False)


@pytest.fixture
def fetches_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor is one to which all lines of an array are announced."""
    monkeypatch.setattr(processor, "fetches_little", lambda: True)


@pytest.fixture
def reads_rows_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor is one that reads rows one by one."""
    monkeypatch.setattr(processor, "reads_rows_one_by_one", lambda: True)


@pytest.fixture(params=[True, False], ids=["waits at pages", "goes on"])
def waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the processor is one that waits at the start of each page."""
    monkeypatch.setattr(processor, "waits_at_pages", lambda: request.param)
    return bool(request.param)


@pytest.fixture(params=[64, 32], ids=["vectors of 64 bytes", "vectors of 32 bytes"])
def counts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How much rows that are written one by one announce, of float64, in each code for a part of them."""
    monkeypatch.setattr(streams, "vector_bytes", lambda: request.param)
    return ["width"] if request.param == 64 else ["64", "width"]


def end_of_row(end: str = "n1") -> list[str]:
    """What announces the line that a row ends in, which it stores a part of, past the caches."""
    return [f"prefetch_lines(o0, (i0, {end} - 1, ), 1)"]


def announced(output: Variable, *inputs: Variable, streams: bool = True) -> list[str]:
    """The lines of a kernel's source that announce memory."""
    printed = print_parallel_source(lower(group_of([output], list(inputs))), "C", True, streams)
    assert printed is not None
    return [line.strip() for line in printed.text.splitlines() if "prefetch_" in line]


def test_streams_announce_what_they_read_from_memory(waits: bool, counts: list[str]) -> None:
    x, column = variable("float64", None, None), variable("float64", None, 1)
    scaled = op("mul", op("add", x, 1.0), column)
    pages = [f"prefetch_pages(x0, (i0, start, ), {count})" for count in counts]
    assert announced(scaled, x, column) == end_of_row() + pages * waits
    assert announced(scaled, x, column, streams=False) == []


def test_groups_of_rows_announce_the_next_group(waits: bool, counts: list[str]) -> None:
    x, row = variable("float64", None, None), variable("float64", None)
    below = [f"prefetch_lines(x0, (i0 + uintp(group), start, ), {count})" for count in ("64", "width")]
    next_row = [f"prefetch_lines(x0, (i0 + uintp(1), start, ), {count})" for count in counts]
    centred = op("mul", op("sub", x, reduce(SUM, x, 1, keepdims=True)), row)
    assert announced(centred, x, row) == end_of_row() + next_row + end_of_row() + below
    pages = [f"prefetch_pages(x0, (i0, start, ), {count})" for count in counts] * waits
    scaled = op("add", op("mul", x, 2.0), row)
    assert announced(scaled, x, row) == end_of_row("end1") + pages + end_of_row("end1") + below


def test_rows_that_were_read_before_announce_the_next(counts: list[str]) -> None:
    x = variable("float64", None, None)
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    next_row = [f"prefetch_lines(x0, (i0 + uintp(1), start, ), {count})" for count in counts]
    assert announced(centred, x) == end_of_row() + next_row


def test_long_sums_announce_all_that_they_read(waits: bool) -> None:
    x, y = variable("float32", None), variable("float32", None)
    difference = op("sub", x, y)
    total = reduce(SUM, op("mul", difference, difference), 0)
    pages = ["prefetch_pages(x0, (first0, ), 256)", "prefetch_pages(x1, (first0, ), 256)"]
    assert announced(total, x, y) == pages * waits


@pytest.mark.usefixtures("fetches_little", "reads_rows_one_by_one")
def test_all_lines_of_a_single_array_are_announced(counts: list[str]) -> None:
    x, y, row = variable("float64", None, None), variable("float64", None, None), variable("float64", None)
    lines = [f"prefetch_near(x0, (i0, start + uintp(1024), ), {count})" for count in counts]
    scaled = op("add", op("mul", x, 2.0), row)
    assert announced(scaled, x, row) == end_of_row("end1") + lines
    assert announced(op("add", op("mul", x, y), row), x, y, row) == end_of_row("end1")
    assert announced(reduce(SUM, op("mul", x, x)), x) == [
        "prefetch_near(x0_view, (uintp(run) + uintp(1024), ), 64)"
    ]


@pytest.mark.usefixtures("fetches_little")
def test_sums_of_arrays_that_caches_hold_are_read_in_whole_blocks() -> None:
    x = variable("float32", None, None)
    printed = print_parallel_source(lower(group_of([reduce(SUM, op("mul", x, x))], [x])), "C", True, False)
    assert printed is not None
    runs = "(min(first1 + 256, n1) - first1) // 128 * 128 if n1 > 524288 else first1"
    assert f"rest = first1 + {runs}" in printed.text


@pytest.mark.usefixtures("reads_rows_one_by_one")
def test_loops_that_take_sums_share_the_next_row(counts: list[str]) -> None:
    x = variable("float64", None, None)
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    below = "i0 + uintp(1 + 1920 // n1)"
    rows_ahead = [f"prefetch_near(x0, ({below}, start, ), {count})" for count in counts]
    whole = ["prefetch_near(x0, (i0 + uintp(1), uintp(first1 + 0), ), 256)"]
    assert announced(centred, x) == whole + end_of_row() + rows_ahead
    squares = reduce(SUM, op("sqr", centred), 1, keepdims=True)
    first, second = (
        [f"prefetch_near(x0, (i0 + uintp(1), uintp(first1 + {place}), ), 128)"] for place in (0, 128)
    )
    assert announced(op("div", centred, squares), x) == first + second + end_of_row() + rows_ahead
    extremum = op("sub", x, reduce(MAX, x, 1, keepdims=True))
    assert announced(extremum, x) == end_of_row() + rows_ahead


@pytest.mark.parametrize("level", [1, 2])
def test_announcements_reach_the_machine_code(level: int) -> None:
    text = "def kernel(x, n):\n    prefetch(x, (n, ), 64); prefetch_pages(x, (n, ), 64)\n"
    signature = types.void(types.Array(types.float64, 1, "C"), types.int64)
    names = {"prefetch": prefetch_near if level == 1 else prefetch_lines, "prefetch_pages": prefetch_pages}
    assembly = compile_kernel("0" * 64, text, "kernel", signature, names, cache.CompileOptions()).assembly
    assert assembly.count("prefetch") + assembly.count("prfm") >= 2
    assert ("prefetcht0" in assembly or "pldl1keep" in assembly) == (level == 1)


@pytest.mark.parametrize("little", [True, False])
def test_what_lies_behind_the_end_of_an_array_may_be_announced(
    little: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "fetches_little", lambda: little)
    monkeypatch.setattr(prefetches, "FAR", 0)
    compile_parallel_kernel.cache_clear()
    x = variable("float64", None)
    function = compile_parallel_kernel(lower(group_of([reduce(SUM, x, 0)], [x])))
    for size in (1, 512, 1536, 2**18):
        array, result = np.frombuffer(mmap.mmap(-1, size * 8)), np.empty(())
        array[:] = 1.0
        function(1, result, array)
        assert result == size
