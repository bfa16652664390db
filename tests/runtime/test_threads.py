"""Kernels in several threads: the same bits, whoever calls them, in forked children too."""

import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from callers import call_at_once

import esat
from esat.codegen.compile import compile_parallel_kernel
from esat.codegen.ground.host import host_target
from esat.codegen.ground.target import Target
from esat.codegen.threads import available_threads, default_threads
from esat.codegen.threads.choice import ThreadingChoice
from esat.errors import ModeError
from esat.extract.prices.machine import MachineProfile
from esat.frontend.graph import Graph
from esat.graph import Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.runtime import threads as threads_module
from esat.runtime.threads import CallsOfShapes

EAGER = MachineProfile(parallel_from=1e-30, parallel_after=1e-30)
"""A machine on which everything that can be shared is worth several threads."""


def compiled(
    inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    threads: int,
    machine: MachineProfile = EAGER,
    target: Target | None = None,
) -> Any:
    mode = esat.Mode("o2", threads=threads, machine=machine, target=target)
    return esat.compile(Graph(list(inputs), list(outputs)), mode)


FAST = MachineProfile(parallel_from=1e-30, element_rate=1e30)
STREAMING = host_target().tuned(non_temporal_from=0)
"""A machine that writes whatever it can past its caches, and one whose arithmetic takes no time."""


def programs() -> dict[str, tuple[list[Variable], list[Variable]]]:
    x, y, v = esat.matrix("x"), esat.matrix("y"), esat.vector("v")
    single = esat.matrix("single", dtype="float32")
    whole = esat.matrix("whole", dtype="int64")
    return {
        "elementwise": ([x, y], [esat.exp(x) * y + 1.5]),
        "broadcast": ([x, v], [x * v + 2.0 * x]),
        "outer": ([v], [v[:, None] - v[None, :]]),
        "sums": ([x, y], [esat.sum(x * y), esat.sum(x, axis=0), esat.sum(x, axis=1)]),
        "sums in single precision": ([single], [esat.sum(single), esat.mean(single, axis=0)]),
        "integers": ([whole], [esat.sum(whole), esat.max(whole), esat.sum(whole * 2, axis=1)]),
        "extrema": ([x], [esat.max(x), esat.min(x, axis=0), esat.argmax(x), esat.argmin(x, axis=1)]),
        "products": ([x], [esat.prod(x), esat.prod(x, axis=0)]),
        "softmax": ([x], [esat.softmax(x, axis=1), esat.logsumexp(x, axis=0)]),
        "sum of rows": ([x], [esat.sum(esat.logsumexp(x, axis=1))]),
        "moments": ([x], [esat.mean((x - esat.mean(x)) ** 2), esat.mean(x)]),
        "centred": ([x], [x - esat.mean(x), x - esat.mean(x, axis=1, keepdims=True)]),
    }


def data(inputs: Sequence[Variable], shape: tuple[int, int], special: bool = False) -> list[np.ndarray]:
    generator = np.random.default_rng(shape)
    arrays = []
    for variable in inputs:
        rank, dtype = variable.tensor_type.ndim, variable.tensor_type.dtype
        values = generator.normal(size=shape[-rank:]) * (10.0 if dtype == "int64" else 1.0)
        if special and values.size > 20 and dtype != "int64":
            values.flat[[3, -2]] = np.nan, np.inf
        arrays.append(values.astype(dtype))
    return arrays


def same_bits(results: Any, expected: Any) -> None:
    results, expected = (value if isinstance(value, tuple) else (value,) for value in (results, expected))
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("name", programs())
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    inputs, outputs = programs()[name]
    alone = compiled(inputs, outputs, 1)
    together = [compiled(inputs, outputs, threads) for threads in (2, 3, 7)]
    for shape in ((0, 3), (1, 1), (2, 4500), (70, 130), (3000, 3), (130, 1100)):
        if name == "outer" and shape[1] > 1100:
            continue
        if 0 in shape and name in ("extrema", "integers", "softmax", "sum of rows", "moments", "centred"):
            continue  # no value for nothing
        for special in (False, True):
            arrays = data(inputs, shape, special)
            expected = alone(*arrays)
            for function in together:
                same_bits(function(*arrays), expected)
    arrays = data(inputs, (70, 130))
    wanted = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
    results = together[0](*arrays)
    for result, value in zip(results if isinstance(results, tuple) else (results,), wanted, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-4 if result.dtype == "float32" else 1e-10)


@pytest.mark.parametrize("layout", ["rows", "transposed"])
def test_strided_arrays_in_threads(layout: str) -> None:
    x, y = esat.matrix("x"), esat.matrix("y")
    outputs = [esat.exp(x) * y, esat.sum(x * y), esat.argmax(x, axis=0), esat.softmax(x, axis=1)]
    arrays = [array[:, :900] if layout == "rows" else array.T for array in data([x, y], (70, 1900))]
    same_bits(compiled([x, y], outputs, 3)(*arrays), compiled([x, y], outputs, 1)(*arrays))


def test_results_written_past_the_caches_are_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = []

    def compile_and_note(kernel: Any, target: Any, layout: Any, streams: bool) -> Any:
        streamed.append(streams)
        return compile_parallel_kernel(kernel, target, layout, streams)

    monkeypatch.setattr(threads_module, "compile_parallel_kernel", compile_and_note)
    x, v = esat.matrix("x"), esat.vector("v")
    arrays = data([x, v], (17, 4133))
    for outputs in [x * v + 2.0 * x, x > v], [x * v - esat.mean(x, axis=1, keepdims=True), v[None, :] * x]:
        expected = compiled([x, v], outputs, 1)(*arrays)
        for threads in (1, 3):
            streamed.clear()
            function = compiled([x, v], outputs, threads, FAST, STREAMING)
            for _ in range(3):
                same_bits(function(*arrays), expected)
            assert any(streamed)
            placed = [
                np.full((18, *result.shape[1:]), 9, result.dtype)[-len(result) :] for result in expected
            ]
            same_bits(tuple(function(*arrays, out=placed)), expected)
            assert all((result.base[0] == result.dtype.type(9)).all() for result in placed)


def test_kernels_for_several_threads_are_compiled_once_that_may_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    done, compiled_at = list[int](), list[int]()

    def compile_and_note(*arguments: Any) -> Any:
        compiled_at.append(len(done))
        return compile_parallel_kernel(*arguments)

    monkeypatch.setattr(threads_module, "compile_parallel_kernel", compile_and_note)
    x, array = esat.vector("x"), np.linspace(-1.0, 1.0, 20_000)
    kernel = MachineProfile(parallel_from=1e-30, parallel_after=1.0)
    expected = compiled([x], [esat.exp(x)], 1)(array)
    for calls in (3, 7):
        seconds = predicted_seconds(compiled([x], [esat.exp(x)], 2, kernel), array)
        later = dataclasses.replace(kernel, parallel_after=(calls + 0.5) * seconds)
        function = compiled([x], [esat.exp(x)], 2, later)
        done.clear()
        compiled_at.clear()
        for call in range(calls + 3):
            same_bits(function(array), expected)
            done.append(call)
        assert compiled_at == [calls]


def predicted_seconds(function: Any, array: np.ndarray) -> float:
    """Of a call of a function of one kernel, in one thread."""
    function(array)
    (record,) = function._calls.table.records.values()
    return next(fact.seconds for fact in record if isinstance(fact, CallsOfShapes))


def large_program() -> tuple[Any, np.ndarray, Any]:
    x = esat.matrix("x")
    outputs = [esat.exp(x) + 1.0, esat.sum(x), esat.softmax(x, axis=1)]
    array = data([x], (300, 300))[0]
    return compiled([x], outputs, 3), array, compiled([x], outputs, 1)(array)


def test_several_python_threads_may_call_at_once() -> None:
    function, array, expected = large_program()

    def call() -> None:
        for _ in range(25):
            same_bits(function(array), expected)

    call_at_once(call, 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_compute_in_threads_too() -> None:
    function, array, expected = large_program()
    same_bits(function(array), expected)
    for _ in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                before = threading.active_count()
                same_bits(function(array), expected)
                status = 0 if threading.active_count() == before + 2 else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    same_bits(function(array), expected)


_SETTINGS = """
import numpy as np, numba, sys, threading
import esat
from esat.codegen.threads import default_threads
from esat.extract.prices.machine import MachineProfile
from esat.frontend.graph import Graph
x = esat.vector("x")
mode = esat.Mode("o2", machine=MachineProfile(parallel_from=1e-30, parallel_after=1e-30))
function = esat.compile(Graph([x], [esat.exp(x)]), mode)
print(default_threads(), end=" ")
function.measure()
result = function(np.ones(5000))
assert (result == np.exp(1.0)).all() or np.allclose(result, np.exp(1.0), rtol=1e-15)
print(function.profile.steps[0].threads, threading.active_count(), end=" ")
print("numba.np.ufunc.omppool" in sys.modules)
"""


def run_with(**environment: str) -> list[str]:
    command = [sys.executable, "-c", _SETTINGS]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_numba_num_threads_is_honoured() -> None:
    assert run_with(NUMBA_NUM_THREADS="1") == ["1", "1", "1", "False"]
    threads = min(2, available_threads())
    assert run_with(NUMBA_NUM_THREADS="2") == [*[str(threads)] * 3, "False"]


def test_set_num_threads_is_honoured_at_each_call() -> None:
    import numba

    before = numba.get_num_threads()
    x = esat.vector("x")
    mode = esat.Mode("o2", machine=EAGER)
    function = esat.compile(Graph([x], [esat.exp(x)]), mode)
    function.measure()
    try:
        numba.set_num_threads(1)
        assert default_threads() == 1
        function(np.ones(5000))
        assert function.profile.steps[0].threads == 1
    finally:
        numba.set_num_threads(before)
    assert default_threads() == min(before, available_threads())


def test_small_arrays_stay_in_one_thread() -> None:
    x = esat.vector("x")
    machine = MachineProfile(parallel_after=1e-30)
    function = esat.compile(Graph([x], [esat.exp(x)]), esat.Mode("o2", threads=2, machine=machine))
    function.measure()
    function(np.ones(1000))
    assert function.profile.steps[0].threads == 1
    function(np.ones(3_000_000))
    assert function.profile.steps[0].threads == 2
    assert "[2 threads]" in str(function.profile)
    assert "def kernel_in_parallel(" in function.source()


def test_kernels_after_results_of_unknown_shape() -> None:
    x = esat.vector("x")
    found = x[esat.nonzero(x)[0]] if hasattr(esat, "nonzero") else x
    array = np.where(np.arange(9000) % 3 == 0, 0.0, np.arange(9000.0) / 9000.0)
    results = [compiled([x], [esat.exp(found), esat.sum(found)], threads)(array) for threads in (1, 3)]
    same_bits(results[1], results[0])


@pytest.mark.parametrize("threads", [1, 3])
def test_shapes_that_alternate_have_partial_results_of_their_own(threads: int) -> None:
    x = esat.vector("x")
    function = compiled([x], [esat.sum(x), esat.max(x)], threads)
    # Whole numbers: their sums are exact in any order.
    arrays = [np.arange(float(size)) for size in (9000, 1025, 30_000, 1)]
    for array in (*arrays, *reversed(arrays), np.arange(60_000.0)[::2]):
        same_bits(function(array), (np.sum(array), np.max(array)))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "all"])
def test_a_number_of_threads_is_positive(threads: Any) -> None:
    with pytest.raises(ModeError, match="thread"):
        esat.Mode(threads=threads)


def taken(choice: ThreadingChoice, calls: int, seconds: Callable[[bool, int], float]) -> list[bool]:
    """The ways of calls; ``seconds`` tells how long the one of a number takes, in several threads or not."""
    ways = []
    for number in range(calls):
        ways.append(choice.next())
        choice.add(ways[-1], seconds(ways[-1], number))
    return ways


def steady(together: float, alone: float) -> Callable[[bool, int], float]:
    return lambda way, number: together if way else alone


def test_the_faster_way_is_taken_and_the_other_one_tried_again() -> None:
    choice = ThreadingChoice()
    assert taken(choice, 5, steady(1.0, 2.0)) == [True, True, True, False, False]
    # A single call each time: after 16, 32, 64, and 64 again.
    assert sum(taken(choice, 200, steady(1.0, 2.0))) == 196
    # Another process takes the other processors, and gives them back.
    assert sum(taken(choice, 400, steady(9.0, 2.0))) <= 12
    assert sum(taken(choice, 400, steady(1.0, 2.0))[270:]) >= 125
    # Calls that are slow by chance decide nothing for long.
    taken(choice, 1, steady(500.0, 500.0))
    assert sum(taken(choice, 200, steady(1.0, 2.0))) >= 190
    # What is far slower again and again is tried seldom; what is no faster is not taken.
    assert sum(taken(ThreadingChoice(), 4000, steady(100.0, 1.0))) <= 4 + 4000 // (32 * 99)
    assert sum(taken(ThreadingChoice(), 203, steady(0.99, 1.0))) == 3 + 4


def test_several_threads_that_wait_for_one_another_at_once_are_not_taken_at_first() -> None:
    waits = iter([False, False, *[True] * 18])  # of the two calls that count the second has to wait
    choice = ThreadingChoice()
    assert taken(choice, 20, lambda together, _: (8.0 if next(waits) else 0.7) if together else 1.0) == [
        True, True, True, *[False] * 17,
    ]  # fmt: skip


def after_a_wait(together: float, alone: float, waking: float) -> Callable[[bool, int], float]:
    """Calls in several threads find them asleep unless the call before was in several threads, too."""
    before = [False]

    def seconds(way: bool, number: int) -> float:
        is_late = way and not before[0]
        before[0] = way
        return (together if way else alone) + (waking if is_late else 0.0)

    return seconds


def test_several_threads_are_taken_where_only_waking_them_takes_long() -> None:
    choice = ThreadingChoice()
    busy = taken(choice, 5, steady(9e-4, 1e-4))
    assert sum(busy + taken(choice, 2000, steady(9e-4, 1e-4))[100:]) < 50
    assert sum(taken(choice, 2000, after_a_wait(6e-5, 1e-4, 8e-5))[1000:]) > 950
    # Where they are gone to sleep whenever they are called, it does not pay.
    assert sum(taken(ThreadingChoice(), 2000, lambda way, _: 1.4e-4 if way else 1e-4)) < 100


@pytest.mark.parametrize(("share", "together"), [(0.1, 9e-5), (0.03, 9.8e-5), (0.5, 5e-5)])
def test_calls_that_wait_for_a_processor_cost_a_small_share_of_the_time(
    share: float, together: float
) -> None:
    random, total, choice = np.random.default_rng(3), 0.0, ThreadingChoice()
    for _ in range(20_000):
        way, waits = choice.next(), random.random() < share
        last = together + 3e-3 * waits if way else 1e-4
        choice.add(way, last)
        total += last
    assert total < 1.07 * 20_000 * 1e-4


@pytest.mark.parametrize(("together", "lost"), [(9e-6, 1.5), (9e-6, 10.0), (1.2e-5, 3.0)])
def test_short_calls_that_wait_as_long_as_thousands_take_do_not_cost_much_either(
    together: float, lost: float
) -> None:
    # Rarely, but what is lost is so many times what the others gain.
    alone, waiting = 1.7e-5, 4e-3
    random, total, choice = np.random.default_rng(3), 0.0, ThreadingChoice()
    share = lost * (alone - together) / waiting
    for _ in range(20_000):
        way, waits = choice.next(), random.random() < share
        last = together + waiting * waits if way else alone
        choice.add(way, last)
        total += last
    assert total < 1.2 * 20_000 * alone


def test_short_calls_that_seldom_wait_are_made_in_several_threads() -> None:
    random, choice = np.random.default_rng(4), ThreadingChoice()
    ways = taken(choice, 20_000, lambda way, _: (9e-6 + 4e-3 * (random.random() < 2e-4)) if way else 1.7e-5)
    assert sum(ways) > 19_000


def test_short_calls_in_one_thread_are_not_all_timed() -> None:
    choice = ThreadingChoice()
    taken(choice, 40, steady(2e-4, 1e-4))
    assert choice.untimed == 5
    taken(choice, 200, steady(1e-2, 6e-3))
    assert choice.untimed == 0
    choice = ThreadingChoice()
    taken(choice, 40, steady(1e-4, 2e-4))
    assert choice.next()
    assert choice.untimed == 0


def test_a_slow_beginning_decides_nothing_for_long() -> None:
    def seconds(way: bool, number: int) -> float:
        return (10.0 if number < 10 else 0.5) if way else 1.0

    assert all(taken(ThreadingChoice(), 40, seconds)[26:])


def test_calls_that_are_mostly_fast_but_slow_on_average_are_not_taken() -> None:
    random = np.random.default_rng(7)

    def seconds(way: bool, number: int) -> float:
        return (3.0 if random.random() < 0.4 else 0.5) if way else 1.0  # 1.5 on average

    assert sum(taken(ThreadingChoice(), 3000, seconds)) < 900


def test_rare_calls_that_are_held_up_decide_nothing() -> None:
    random = np.random.default_rng(5)

    def seconds(way: bool, number: int) -> float:
        return (0.5 if way else 1.0) + (20.0 if random.random() < 0.02 else 0.0)

    assert sum(taken(ThreadingChoice(), 3000, seconds)) > 2800


def test_what_is_lost_by_trials_is_little() -> None:
    for together in (0.5, 0.9, 1.0, 1.2, 3.0, 100.0):
        choice, seconds = ThreadingChoice(), steady(together, 1.0)
        taken(choice, 200, seconds)
        spent = sum(seconds(way, 0) for way in taken(choice, 6000, seconds))
        assert spent <= 1.05 * 6000 * min(together, 1.0)


def test_calls_of_several_threads_are_taken_account_of_in_any_order() -> None:
    choice = ThreadingChoice()

    def call() -> None:
        for _ in range(500):
            way = choice.next()
            choice.add(way, 1.0 if way else 2.0)
            choice.add(not way, 2.0 if way else 1.0)

    call_at_once(call, 4)
    assert sum(taken(choice, 200, steady(1.0, 2.0))) >= 190


def test_an_interrupt_while_calls_are_taken_account_of_ends_nothing() -> None:
    choice = ThreadingChoice()
    taken(choice, 100, steady(1.0, 2.0))

    class Interrupting(float):
        def __gt__(self, other: float) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        choice.add(choice.next(), Interrupting(1.0))
    assert sum(taken(choice, 200, steady(1.0, 2.0))) >= 190
