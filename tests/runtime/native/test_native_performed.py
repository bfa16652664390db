"""Steps of native functions that call Python: errors, threads, and arrays that an op keeps."""

import sys
import threading

import numpy as np
import pytest
from callers import call_at_once
from native_calls import as_tuple, by_driver, way_of

import esat
from esat.errors import IndexingError
from esat.graph.op import Family, Op
from esat.runtime.native import direct

X, K = esat.vector("x"), esat.vector("k", dtype="int64")


class Calls(Op):
    """Its operand, doubled, by whatever function it is given."""

    name, constructor, family = "calls", "Calls", Family.LIBRARY

    def __init__(self, function):
        self.function = function

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        return (self.function(inputs[0]),)


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)


def frequent(inputs, outputs, *arguments):
    """A program whose calls with such arguments are native, and the way that they go."""
    program = esat.compile(esat.Graph(inputs, outputs), esat.Mode("fast_run", variants=0, threads=1))
    for _ in range(10):
        program(*arguments)
    return program


def test_errors_are_the_drivers_and_calls_after_them_native():
    data = np.linspace(0.0, 1.0, 5)
    program = frequent([X, K], [esat.exp(X)[K] * 2.0], data, np.array([0, 4]))
    assert way_of(program) == "native"
    with pytest.raises(IndexingError, match=r"index 5 is out of bounds[\s\S]*test_native_performed.py"):
        program(data, np.array([0, 5]))
    np.testing.assert_allclose(program(data, np.array([1, -1])), np.exp(data)[[1, -1]] * 2.0, 1e-15)
    assert way_of(program) == "native"


def test_a_result_that_is_not_what_the_op_declares_is_the_drivers_to_refuse():
    results = [lambda x: x * 2.0]

    def compute(x):
        return results[0](x)

    program = frequent([X], [Calls(compute)(X) + 1.0], np.ones(3))
    assert way_of(program) == "native"
    for wrong in (lambda x: x[:1], lambda x: x.astype(np.float32)):
        results[0] = wrong
        with pytest.raises(esat.errors.CompileError, match="perform returned an array of"):
            program(np.ones(3))
    results[0] = lambda x: x * 3.0
    np.testing.assert_array_equal(program(np.ones(3)), np.full(3, 4.0))


def test_ops_that_return_numbers_run_once_a_call():
    runs = []

    def compute(x):
        runs.append(None)
        return np.float64(x) * 2.0

    s = esat.scalar("s")
    program = frequent([s], [esat.exp(Calls(compute)(s))], np.array(1.0))
    assert way_of(program) == "native"
    runs.clear()
    np.testing.assert_allclose(program(np.array(3.0)), np.exp(6.0))
    assert len(runs) == 1


def test_an_operand_that_is_returned_or_kept_shows_nothing_of_later_calls():
    kept = []

    def keep(x):
        kept.append(x)
        return x

    program = frequent([X], [Calls(keep)(X) + 1.0, Calls(keep)(X)], np.ones(3))
    assert way_of(program) == "native"
    data = np.arange(3.0)
    found = program(data)
    assert not any(np.shares_memory(one, result) for one in kept[-2:] for result in (*found, data))
    np.testing.assert_array_equal(found, [data + 1.0, data])
    kept[-1][:] = 7.0
    np.testing.assert_array_equal(program(data), [data + 1.0, data])
    np.testing.assert_array_equal(data, np.arange(3.0))


def test_interrupts_end_the_call_and_the_next_one_runs():
    stops = [False]

    def stop(x):
        if stops[0]:
            raise KeyboardInterrupt
        return x * 2.0

    program = frequent([X], [esat.exp(Calls(stop)(X))], np.ones(3))
    assert way_of(program) == "native"
    stops[0] = True
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            program(np.ones(3))
    stops[0] = False
    np.testing.assert_allclose(program(np.ones(3)), np.exp(np.full(3, 2.0)))
    assert way_of(program) == "native"


def test_threads_that_come_in_between_and_calls_within_calls_have_their_own_results():
    within = []

    def wait(x):
        if within and within[0] is not None:
            again, within[0] = within[0], None
            np.testing.assert_allclose(again(np.full(4, 3.0)), np.exp(np.full(4, 6.0)))
        threading.Event().wait(0.001)  # other threads run
        return x * 2.0

    program = frequent([X], [esat.exp(Calls(wait)(X))], np.ones(4))
    assert way_of(program) == "native"
    within.append(program)
    np.testing.assert_allclose(program(np.ones(4)), np.exp(np.full(4, 2.0)))
    numbers = iter(range(4))

    def call():
        data = np.full(4, next(numbers) / 4.0)
        for _ in range(20):
            np.testing.assert_allclose(program(data), np.exp(2.0 * data))

    call_at_once(call, 4)


def test_operands_of_large_calls_and_of_loops_are_where_the_elements_are():
    data = np.sin(np.arange(1 << 18))
    program = frequent([X], [esat.exp(Calls(np.cumsum)(X[::-1])) * 2.0], data)
    assert way_of(program) == "native"
    np.testing.assert_allclose(program(data), np.exp(np.cumsum(data[::-1])) * 2.0, rtol=1e-13)

    steps, start = np.linspace(0.5, 2.0, 40), np.linspace(1.0, 2.0, 5)
    first = esat.vector("first")
    (_, rows) = esat.scan(lambda carry, x: (esat.log_ndtr(carry + x), carry * x), first, X)
    loop = frequent([X, first], [rows], steps, start)
    assert way_of(loop) == "native"
    carry, wanted = start, []
    from scipy.special import log_ndtr

    for x in steps:
        wanted.append(carry * x)
        carry = log_ndtr(carry + x)
    np.testing.assert_allclose(loop(steps, start), wanted, rtol=1e-12)


def test_what_a_step_writes_in_place_is_the_programs_own():
    data, places = np.linspace(0.0, 1.0, 5), np.array([0, 3, 3])
    added = esat.inc_subtensor(esat.exp(X)[K], X[0] + 1.0)
    program = frequent([X, K], [added, esat.sum(added)], data, places)
    assert way_of(program) == "native"
    wanted = np.exp(data)
    np.add.at(wanted, places, 1.0)
    for found in (program(data, places), by_driver(program, data, places)):
        np.testing.assert_allclose(found[0], wanted)
        np.testing.assert_allclose(found[1], wanted.sum())
    np.testing.assert_array_equal(data, np.linspace(0.0, 1.0, 5))


def test_shared_variables_change_only_where_all_steps_have_run():
    state, fails = esat.shared(np.zeros(3), name="state"), [False]

    def maybe(x):
        if fails[0]:
            raise ValueError("no result")
        return x * 2.0

    graph = esat.Graph([X], [Calls(maybe)(state + X)], updates={state: state + X})
    program = esat.compile(graph)
    for _ in range(10):
        program(np.ones(3))
    fails[0] = True
    with pytest.raises(ValueError, match="no result"):
        program(np.ones(3))
    np.testing.assert_array_equal(state.get_value(), np.full(3, 10.0))
    fails[0] = False
    np.testing.assert_array_equal(program(np.ones(3)), np.full(3, 22.0))


def test_no_reference_is_lost_or_kept():
    program = frequent([X], [Calls(lambda x: x * 2.0)(X) + 1.0], np.ones(3))
    assert way_of(program) == "native"
    data = np.ones(3)
    before = sys.getrefcount(data), sys.getrefcount(data.dtype)
    for _ in range(1000):
        as_tuple(program(data))
    assert sys.getrefcount(data) == before[0]
    assert abs(sys.getrefcount(data.dtype) - before[1]) < 10
