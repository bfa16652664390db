"""Kernels in parts, and the pool that runs them: every unit once, whoever comes to help."""

import ctypes
import math
import os
import time

import numpy as np
import pytest
from callers import call_at_once
from codegen.kernel_cases import group_of, op, variable
from codegen.targets import HOST
from numba.core import types

from esat.base.native import Library
from esat.base.native.own_machine import processors
from esat.codegen import cache, compile_kernel, lower
from esat.codegen.compile import compile_parallel_kernel, is_divisible
from esat.codegen.effort import seconds_in_threads
from esat.codegen.kernel.collapse import collapse
from esat.codegen.kernel.loop_ir import Kernel
from esat.codegen.kernel.partition import Gather, LoopPartition, partition
from esat.codegen.printing.shared_loops import print_parallel_source
from esat.codegen.threads import helper_placement, pool_address, protocol, thread_pool
from esat.codegen.threads.protocol import CALLER, DATA, THREAD, fetch, keep_away, put
from esat.codegen.threads.tasks import in_parallel
from esat.errors import CompileError
from esat.extract.prices.machine import MachineProfile
from esat.graph import Variable
from esat.ops.normalization import softmax
from esat.ops.reduction import ARGMAX, MAX, PROD, SUM, reduce

COUNTING = """
def part_0(begin, end, counts, calls):
    for i in range(begin, end):
        counts[i] += 1
    calls[begin] = end - begin

def kernel(counts, calls, units, pool, threads):
    in_parallel(pool, threads, units, 4, part_0, (counts, calls))
"""


@pytest.fixture(scope="module")
def count() -> cache.CompiledKernel:
    counts, calls = types.Array(types.int64, 1, "C"), types.Array(types.int64, 1, "C")
    signature = types.void(counts, calls, types.int64, types.int64, types.int64)
    return cache.load_or_compile(COUNTING, "kernel", signature, {"in_parallel": in_parallel})


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_unit_is_run_once(count: cache.CompiledKernel, threads: int) -> None:
    for units in (0, 1, 2, 3, 10, 1000, 4001):
        for _ in range(20):
            counts, calls = np.zeros(units + 1, np.int64), np.zeros(units + 1, np.int64)
            count(counts, calls, units, pool_address(threads), threads)
            assert (counts[:units] == 1).all()
            assert counts[units] == 0
            assert calls.sum() == units
            # Each thread has a range of its own, in parts that others can take.
            assert all(calls[units * thread // threads] > 0 for thread in range(threads) if units >= threads)
            assert threads == 1 or units < 100 * threads or calls.max() <= units // (4 * threads) + 1


def test_helpers_wake_elsewhere(count: cache.CompiledKernel) -> None:
    """A helper that slept may run anywhere but on the processor that its caller was on."""
    allowed = processors()
    assert allowed is not None
    for _ in range(3):
        time.sleep(0.01)
        counts, calls = np.zeros(101, np.int64), np.zeros(101, np.int64)
        count(counts, calls, 100, pool_address(2), 2)
        assert counts[:100].all()
        helper = ctypes.c_int64.from_address(pool_address(2) + system_number(1)).value
        left = os.sched_getaffinity(helper)
        assert left <= allowed
        assert len(left) == max(1, len(allowed) - 1)


def test_masks_leave_out_one_processor_or_all_others() -> None:
    masks = helper_placement.masks_of([1, 3, 64])
    assert masks[0] == 65
    others, alone = masks[1:].reshape(2, 65, 2).tolist()
    assert [others[one] for one in (0, 1, 3, 64)] == [[0b1010, 1], [0b1000, 1], [0b10, 1], [0b1010, 0]]
    assert [alone[one] for one in (0, 1, 64)] == [[1, 0], [0b10, 0], [0, 1]]
    assert helper_placement.masks_of([2])[1:].tolist() == [4, 4, 4, 1, 2, 4]


def fetch_one(state: int) -> None:
    """As a caller that has waited for long; the number of the helper it called is left as the task's data."""
    put(state + DATA, fetch(state, 2))


def send_back(state: int) -> None:
    """As a caller that need not wait any more for the first helper."""
    keep_away(state, state + CALLER + THREAD)


_LIBRARY = Library((fetch_one, send_back))


@pytest.mark.parametrize("at_work", [(), (1,), (2,), (1, 2)])
def test_one_helper_that_is_late_is_called_here(at_work: tuple[int, ...]) -> None:
    """The only one at work runs where its caller sleeps; several would wait there for one another."""
    allowed = processors()
    assert allowed is not None
    state = thread_pool.HelperPool(2)
    state.start(2)
    state.allow(allowed)
    state.put(protocol.ACTIVE, len(at_work))
    for helper in at_work:
        state.put(CALLER + helper * THREAD + protocol.WORKS, 1)
    _LIBRARY.function(fetch_one)(state.address)
    fetched = at_work[0] if len(at_work) == 1 else 0
    assert state.word(DATA) == fetched
    for helper in (1, 2):
        places = len(allowed) if helper != fetched else 1
        assert len(os.sched_getaffinity(state.word(system_number(helper)))) == places
    if fetched == 1:
        _LIBRARY.function(send_back)(state.address)
        left = os.sched_getaffinity(state.word(system_number(1)))
        assert left <= allowed
        assert len(left) == max(1, len(allowed) - 1)


def system_number(helper: int) -> int:
    return CALLER + helper * THREAD + protocol.SYSTEM


def test_callers_that_find_the_pool_busy_work_alone(count: cache.CompiledKernel) -> None:
    def call() -> None:
        for units in range(3000):
            counts, calls = np.zeros(units + 1, np.int64), np.zeros(units + 1, np.int64)
            count(counts, calls, units, pool_address(3), 3)
            assert (counts[:units] == 1).all()

    call_at_once(call, 4)


def kernel_of(*outputs: Variable) -> Kernel:
    read = [v for node in [output.owner for output in outputs] for v in node.inputs]
    return collapse(lower(group_of(list(outputs), list(dict.fromkeys(read)))))


def test_loops_are_split_or_gathered() -> None:
    x, y = variable("float64", None, None), variable("float64", None)
    cases = {
        op("exp", x): LoopPartition,
        reduce(SUM, x, 0): LoopPartition,
        reduce(SUM, x): Gather,
        reduce(SUM, x, 1): LoopPartition,
        reduce(ARGMAX, y): Gather,
        softmax(x, 1): LoopPartition,
    }
    for output, kind in cases.items():
        parts = partition(kernel_of(output))
        assert [type(part) for part in parts if isinstance(part, LoopPartition | Gather)] == [kind], (
            output.owner
        )
    (part,) = [p for p in partition(kernel_of(reduce(SUM, x))) if isinstance(p, Gather)]
    sizes = [0] * 2
    sizes[part.statement.axes[0]] = 513
    assert part.partial_results(tuple(sizes)) == part.units(tuple(sizes)) == 3


def squares_of_sums(arrays: int) -> Kernel:
    first, *others = [variable("float64", None) for _ in range(arrays)]
    total = first
    for other in others:
        total = op("add", total, other)
    return collapse(lower(group_of([reduce(SUM, op("sqr", total))], [first, *others])))


@pytest.mark.parametrize("faster", [True, False])
@pytest.mark.parametrize(("arrays", "places"), [(1, 4), (2, 2), (3, 1)])
def test_long_sums_are_read_from_four_places_where_that_is_faster(
    faster: bool, arrays: int, places: int
) -> None:
    target = HOST.tuned(reading_places=4 if faster else 1)
    printed = print_parallel_source(squares_of_sums(arrays), target, "C", comments=False)
    assert printed is not None
    assert printed.text.count("[place + ") == (places if faster and places > 1 else 0)


@pytest.mark.parametrize("arrays", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 1025, 32_767, 32_768, 32_769, 40_961, 100_000])
def test_long_sums_have_the_same_bits_in_any_number_of_threads(arrays: int, count: int) -> None:
    target = HOST.tuned(reading_places=4)
    kernel, generator = squares_of_sums(arrays), np.random.default_rng(count)
    data = [generator.normal(size=count) for _ in range(arrays)]
    result = np.full((), 99.0)
    compile_parallel_kernel(kernel, target)(1, result, *data)
    np.testing.assert_allclose(result, math.fsum(sum(data) ** 2), rtol=1e-15)
    for threads in (2, 3, 7):
        again = np.full((), 99.0)
        compile_parallel_kernel(kernel, target)(threads, again, *data)
        assert again.tobytes() == result.tobytes()
    for special in (np.nan, np.inf):
        for place in {count // 2, count - 1} if count else ():
            data[0][place] = special
            compile_parallel_kernel(kernel, target)(2, result, *data)
            assert np.isnan(result) if np.isnan(data[0]).any() else result == np.inf


def test_what_rounds_in_a_fixed_order_stays_whole() -> None:
    x, whole = variable("float64", None), variable("int64", None)
    product = kernel_of(reduce(PROD, x))
    assert not is_divisible(product)
    with pytest.raises(CompileError, match="nothing to share"):
        compile_parallel_kernel(product, HOST)
    assert is_divisible(kernel_of(reduce(PROD, whole)))
    assert is_divisible(kernel_of(reduce(MAX, x)))


def test_parts_give_the_bits_of_the_whole() -> None:
    x = variable("float32", None)
    kernel = kernel_of(op("tanh", x))
    data = np.linspace(-3.0, 3.0, 10_007, dtype=np.float32)
    expected, result = np.empty_like(data), np.empty_like(data)
    compile_kernel(kernel, HOST)(expected, data)
    for threads in (1, 2, 5):
        result.fill(99.0)
        compile_parallel_kernel(kernel, HOST)(threads, result, data)
        assert np.array_equal(result.view(np.uint32), expected.view(np.uint32))


def test_effort_grows_with_work_and_is_nothing_where_sharing_does_not_pay() -> None:
    x = variable("float64", None, None)
    machine = MachineProfile()
    cheap, costly = kernel_of(op("neg", x)), kernel_of(op("tanh", x))
    few, many = [(100, 100)] * 2, [(3000, 1000)] * 2
    assert 0.0 < seconds_in_threads(cheap, few, machine) < seconds_in_threads(cheap, many, machine)
    assert seconds_in_threads(cheap, many, machine) < seconds_in_threads(costly, many, machine)
    columns = kernel_of(reduce(SUM, x, 0))
    assert seconds_in_threads(columns, [(10,), (10**6, 10)], machine) == 0.0  # one cache line
    assert seconds_in_threads(columns, [(10**6,), (10, 10**6)], machine) > machine.parallel_from
