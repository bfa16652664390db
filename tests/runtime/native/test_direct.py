"""Frequent calls as native functions: the driver's results, for the shapes they were made for and others."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest
from callers import call_at_once
from native_calls import as_tuple, by_driver, way_of

import esat
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.ground.builtin_function import is_available
from esat.codegen.native_functions.native_call import native_call
from esat.codegen.native_functions.native_plan import ArraySpecification
from esat.errors import InputError, ShapeError
from esat.runtime.buffers import POOLED_FROM
from esat.runtime.entry.dispatch import CallsLeft
from esat.runtime.native import direct

X, Y, Z = (esat.vector(name) for name in "xyz")
M, W = esat.matrix("m"), esat.matrix("w")
S = esat.matrix("s", dtype="float32")
COLUMN = esat.tensor("column", shape=(None, 1), dtype="float64")

PROGRAMS = {
    "elementwise": ([X, Y, Z], [X * Y + Z]),
    "several results": ([X, Y], [esat.exp(X) * Y, esat.sum(X * Y)]),
    "sizes": ([M], [(M - esat.mean(M, axis=0, keepdims=True)) / esat.sum(M * M, axis=1, keepdims=True)]),
    "product": ([M, W], [esat.tanh(M @ W) @ W]),
    "transposed products": ([M, W], [esat.exp(M.T @ W), W @ esat.tanh(M.T)]),
    "single": ([S], [esat.tanh(S @ S.T)]),
    "columns": ([M, COLUMN], [M @ esat.exp(COLUMN), (COLUMN * COLUMN).T @ M]),
    "constants": ([M], [M * np.arange(5.0) + np.float64(0.5)]),
    "kept": ([M], [M + 1.0, M.T @ (M + 1.0)]),
    "element": ([M, W], [(M + W)[2, 2]]),
    "elements from the end": ([M, W], [M[-1, -2] * W[-5, 4], M[0, 1] - W[1, 0]]),
    "element of a product": ([M, W], [(M @ W)[2, -1]]),
    "row of a product": ([M, W], [(M @ W)[-2]]),
    "column of a product": ([M, W], [(M @ W)[:, 3]]),
    "part of a product": ([M, W], [M[1:4, :3] @ esat.transpose(W)[:3, 2:]]),
}


def arrays_for(inputs, seed=0):
    rng = np.random.default_rng(seed)
    shape = {1: (5,), 2: (5, 5)}
    return [
        rng.standard_normal((5, 1) if v is COLUMN else shape[v.type.ndim]).astype(v.type.dtype)
        for v in inputs
    ]


def frequent(inputs, outputs):
    """A program that was called until its calls are native."""
    program = esat.compile(esat.Graph(inputs, outputs))
    arrays = arrays_for(inputs)
    for _ in range(direct.CALLS + 1):
        program(*arrays)
    return program


def is_native(program):
    return way_of(program) in ("native", "chosen")


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_calls_give_the_drivers_results(name):
    inputs, outputs = PROGRAMS[name]
    program = frequent(inputs, outputs)
    assert is_native(program)
    arrays = arrays_for(inputs, seed=1)
    before = [array.copy() for array in arrays]
    wanted = as_tuple(by_driver(program, *arrays))
    found = as_tuple(program(*arrays))
    again = as_tuple(program(*arrays))
    for one, other, third in zip(found, wanted, again, strict=True):
        assert (one.dtype, one.shape, one.flags.owndata) == (other.dtype, other.shape, True)
        np.testing.assert_array_equal(one, other)
        assert not np.shares_memory(one, third)
    for array, kept in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_other_arguments_go_to_the_driver():
    program = frequent([X, Y, Z], [X * Y + Z])
    x, y, z = arrays_for([X, Y, Z])
    wanted = x * y + z
    np.testing.assert_array_equal(program(list(x), y, z), wanted)
    np.testing.assert_array_equal(program(np.repeat(x, 2)[::2], y, z), wanted)
    np.testing.assert_array_equal(program(x.astype(np.float32), y, z), x.astype(np.float32) * y + z)
    np.testing.assert_array_equal(program(np.r_[x, x], np.r_[y, y], np.r_[z, z]), np.r_[wanted, wanted])
    strided = np.empty(10)[::2]
    assert program(x, y, z, out=strided) is strided
    np.testing.assert_array_equal(strided, wanted)
    with pytest.raises(InputError, match="takes 3 inputs"):
        program(x, y)
    with pytest.raises(InputError, match="shape"):
        program(x[:, None], y, z)
    with pytest.raises(ShapeError):
        program(x[:4], y, z)
    assert is_native(program)


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_calls_write_into_given_arrays(name, monkeypatch):
    made, elsewhere = direct.direct_call, []

    def counted(program, table, key, otherwise):
        def counting(*arguments, **named):
            elsewhere.append(named)
            return otherwise(*arguments, **named)

        return made(program, table, key, counting)

    monkeypatch.setattr(direct, "direct_call", counted)
    inputs, outputs = PROGRAMS[name]
    program = frequent(inputs, outputs)
    arrays = arrays_for(inputs)
    wanted = as_tuple(program(*arrays))
    out = tuple(np.full_like(one, 7) for one in wanted)
    for _ in range(3):
        found = program(*arrays, out=out if len(out) > 1 else out[0])
        assert all(one is other for one, other in zip(as_tuple(found), out, strict=True))
        for one, other in zip(out, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    assert not elsewhere


@pytest.mark.parametrize("sizes", [(4, 4, 4), (9, 9, 9), (40, 12, 7), (1, 60, 20), (33, 60, 1), (30, 2, 30)])
@pytest.mark.parametrize(
    "product",
    [lambda m, w: m @ w, lambda m, w: m[1:] @ w, lambda m, w: w.T @ m.T, lambda m, w: m[:, 1:] @ w[1:]],
    ids=["contiguous", "rows", "transposed", "columns"],
)
def test_products_have_the_bits_of_the_drivers(product, sizes):
    program = esat.compile(esat.Graph([M, W], product(M, W)))
    rng = np.random.default_rng(0)
    rows, inner, columns = sizes
    m, w = rng.standard_normal((rows, inner)), rng.standard_normal((inner, columns))
    for _ in range(direct.CALLS + 1):
        found = program(m, w)
    np.testing.assert_array_equal(found, by_driver(program, m, w))
    np.testing.assert_allclose(found, product(m, w), rtol=1e-12, atol=1e-13)


def called(program, *arguments):
    """The files of the functions of Python that a call goes through, and its results."""
    files = []
    sys.setprofile(
        lambda frame, event, _: files.append(frame.f_code.co_filename) if event == "call" else None
    )
    try:
        results = program.entry(*arguments)
    finally:
        sys.setprofile(None)
    return files, results


def test_functions_of_shapes_that_no_longer_come_make_room(monkeypatch):
    monkeypatch.setattr(direct, "MAXIMUM_FUNCTIONS", 4)
    program = esat.compile(esat.Graph([X], esat.exp(X)))

    def native(sizes):
        return [size for size in sizes if not called(program, np.ones(size))[0]]

    for size in range(1, 5):
        for _ in range(direct.CALLS):
            program(np.ones(size))
    assert native(range(1, 5)) == [1, 2, 3, 4]
    for _ in range(2 * direct.LONGER * direct.CALLS):
        for size in range(3, 7):
            data = np.linspace(0.0, 1.0, size)
            np.testing.assert_allclose(program(data), np.exp(data), rtol=1e-15)
    assert native(range(1, 7)) == [3, 4, 5, 6]
    assert program.source().count("# native_") == 4


def test_large_calls_stay_with_the_driver(monkeypatch):
    monkeypatch.setattr(direct, "LARGEST_UNLOCKED", direct.LARGEST)
    program = esat.compile(esat.Graph([X], esat.exp(X)))
    data = np.zeros(direct.LARGEST // 8)
    for _ in range(10):
        program(data)
    assert not is_native(program)


@pytest.mark.parametrize(
    "outputs", [[esat.sort(X[X > 0.0])], [esat.sparse.csr_from_dense(esat.outer(X, X)) @ X]]
)
def test_programs_with_other_values_stay_with_the_driver(outputs):
    assert not is_native(frequent([X], outputs))


def test_updates_read_and_write_the_shared_variable_in_each_call():
    shared = esat.shared(np.zeros(5))
    program = esat.compile(esat.Graph([X], [shared * X], updates={shared: shared + X}))
    for _ in range(10):
        program(np.ones(5))
    assert is_native_with_shared(program)
    np.testing.assert_array_equal(shared.get_value(), np.full(5, 10.0))


def test_no_reference_is_lost_or_kept():
    program = frequent([X, Y], [esat.exp(X) * Y, X - Y])
    x, y = arrays_for([X, Y])
    results = program(x, y)
    kept = [x, x.dtype, *results]
    before = [sys.getrefcount(one) for one in kept]
    for _ in range(1000):
        program(x, y)
    after = [sys.getrefcount(one) for one in kept]
    assert before == after


@pytest.mark.usefixtures("only_new_objects")
def test_a_program_that_is_gone_takes_its_native_function_with_it():
    program = frequent([X, Y], [X * Y + 0.25])
    gone = weakref.ref(program)
    run = program.entry
    x, y = arrays_for([X, Y])
    del program
    gc.collect()
    np.testing.assert_array_equal(run(x, y), x * y + 0.25)
    del run
    gc.collect()
    assert gone() is None


def test_parts_of_large_arrays_are_read_by_native_calls():
    program = esat.compile(esat.Graph([M, W], (M @ W)[7, 7]))
    m, w = np.random.default_rng(0).standard_normal((2, 600, 600))
    assert m.nbytes > direct.LARGEST
    for _ in range(direct.CALLS + 1):
        program(m, w)
    assert is_native(program)
    np.testing.assert_allclose(program(m, w), m[7] @ w[:, 7], rtol=1e-12)
    np.testing.assert_allclose(program(m.T, w), m[:, 7] @ w[:, 7], rtol=1e-12)


def test_large_results_are_made_in_memory_that_is_used_again():
    program = esat.compile(esat.Graph([X, Y], [X * Y - 0.75, esat.sum(X + Y)]))
    x, y = np.random.default_rng(0).standard_normal((2, POOLED_FROM // 8))
    for _ in range(direct.CALLS + 1):
        result = program(x, y)[0]
    assert is_native(program)
    del result
    place = program(x, y)[0].ctypes.data
    assert program(x, y)[0].ctypes.data == place
    # More results alive than memory is kept for: the driver makes more, and none is another's.
    factors = np.arange(1.0, 9.0)
    results = [program(factor * x, y)[0] for factor in factors]
    for factor, result in zip(factors, results, strict=True):
        np.testing.assert_array_equal(result, factor * x * y - 0.75)
    assert len({result.ctypes.data for result in results}) == len(results)
    parts = [result[3:] for result in results]
    del result, results
    program(x, x)
    for factor, part in zip(factors, parts, strict=True):
        np.testing.assert_array_equal(part, (factor * x * y - 0.75)[3:])


def test_a_part_that_is_not_there_raises_as_before():
    program = frequent([M, W], [(M + W)[4, 3]])
    small = np.zeros((4, 4))
    for _ in range(direct.CALLS + 1):
        with pytest.raises(IndexError):
            program(small, small)
    assert program(np.ones((5, 5)), np.ones((5, 5))) == 2.0


def test_the_collector_of_cycles_takes_no_native_function_apart():
    program = frequent([X, Y], [X * Y + 0.75])
    tracked = [one for one in gc.get_referents(program.entry.__self__) if gc.is_tracked(one)]
    assert tracked == [program._calls.native.otherwise]


def test_functions_take_copies_of_small_arrays_of_other_layouts(monkeypatch):
    program = frequent([M, W], [esat.tanh(M @ W) @ W, esat.sum(M, axis=0)])
    m, w = arrays_for([M, W], seed=2)
    native, by_the_driver = program._calls.native, []

    def counted(*arguments, **named):
        by_the_driver.append(arguments)
        return by_driver(program, *arguments, **named)

    monkeypatch.setattr(native, "_driver", counted)
    aligned = np.frombuffer(b"x" + m.tobytes(), dtype="V1")[1:].view("float64").reshape(5, 5)
    for one in (m.T, m[::-1], np.asfortranarray(m), np.repeat(m, 2, axis=1)[:, ::2], aligned):
        for found, wanted in zip(program(one, w), by_driver(program, one.copy(), w), strict=True):
            np.testing.assert_array_equal(found, wanted)
        given = np.empty((5, 5)), np.empty(5)
        for found, wanted in zip(program(one, w, out=given), program(one.copy(), w), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert by_the_driver == []
    large = np.ones((90, 90))[::2, ::2]
    for _ in range(direct.CALLS + 2):
        np.testing.assert_array_equal(program(large, large)[1], np.full(45, 45.0))
    assert by_the_driver


def test_threads_share_a_native_function():
    program = frequent([M], [(M - esat.mean(M, axis=0)) @ M.T])
    data = [np.random.default_rng(seed).standard_normal((5, 5)) for seed in range(4)]
    wanted = [by_driver(program, one) for one in data]
    wrong = []

    def work(number):
        wrong.extend(number for _ in range(2000) if not np.array_equal(program(data[number]), wanted[number]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_failed_allocation_raises():
    huge = ArraySpecification(np.dtype(np.float64), (1 << 60,))
    small = ArraySpecification(np.dtype(np.float64), (2,))
    for outputs in ([huge], [small, huge]):
        function = native_call([], outputs, [], lambda *_: None, None)
        with pytest.raises((MemoryError, ValueError)):
            function()


def test_arrays_of_this_interpreter_are_laid_out_as_expected():
    assert is_available()


def test_native_functions_wait_until_programs_are_settled_and_no_longer(monkeypatch):
    offers = [CallsLeft(50), lambda *_arguments, out=None: np.zeros(5), None]

    class Undecided:
        def offer(self, way):
            return offers[0]

    program = esat.compile(esat.Graph([X], esat.exp(X) + 0.5))
    dispatch = program._calls.dispatch
    dispatch.candidates = (Undecided(), *dispatch.candidates)
    (data,) = arrays_for([X])
    for _ in range(40):
        np.testing.assert_allclose(program(data), np.exp(data) + 0.5, rtol=1e-15)
    assert not is_native(program)
    del offers[0]  # another program runs
    shown = [program(data) for _ in range(10 + direct.CALLS)]
    np.testing.assert_array_equal(shown[-1], np.zeros(5))
    assert not is_native(program)
    del offers[0]
    longer = np.linspace(0.0, 1.0, 9)
    for _ in range(direct.CALLS):
        np.testing.assert_allclose(program(longer), np.exp(longer) + 0.5, rtol=1e-15)
    assert is_native(program)


def test_functions_of_several_shapes_are_all_reached():
    program = esat.compile(esat.Graph([X], [esat.exp(X), X - 1.0]))
    sizes = range(2, 2 + direct.MAXIMUM_FUNCTIONS)
    for size in sizes:
        for _ in range(direct.CALLS):
            program(np.ones(size))
    for size in sizes:
        data = np.linspace(-1.0, 1.0, size)
        for given in (data, np.repeat(data, 2)[::2]):  # strided, which the function does not admit
            files, found = called(program, given)
            assert bool(files) == (given is not data)
            np.testing.assert_allclose(found[0], np.exp(data), rtol=1e-15)
            np.testing.assert_array_equal(found[1], data - 1.0)
    assert called(program, np.ones(50))[0]


def test_measured_calls_run_the_drivers_steps():
    program = frequent([X, Y], [esat.exp(X) * Y])
    arrays = arrays_for([X, Y])
    entry = program.entry
    program.measure()
    for _ in range(3):
        np.testing.assert_array_equal(program(*arrays), by_driver(program, *arrays))
    assert [step.calls for step in program.profile.steps] == [3]
    program.measure(False)
    assert program.entry is entry


def training():
    """A step that updates shared variables in place, and the same by hand."""
    generator = np.random.default_rng(3)
    w = esat.shared(generator.standard_normal((5, 4)), name="w")
    b = esat.shared(generator.standard_normal(4), name="b")
    error = esat.tanh(M @ w + b) - 0.5
    back = error * (1 - (error + 0.5) ** 2)
    updates = {w: w - 0.1 * (M.T @ back), b: b - 0.1 * esat.sum(back, axis=0)}
    step = esat.compile(esat.Graph([M], [esat.sum(error * error)], updates=updates))

    def by_hand(m, weights, bias):
        difference = np.tanh(m @ weights + bias) - 0.5
        slope = difference * (1 - (difference + 0.5) ** 2)
        return np.sum(difference**2), weights - 0.1 * m.T @ slope, bias - 0.1 * slope.sum(axis=0)

    return step, w, b, by_hand


def is_native_with_shared(program):
    return way_of(program) == "native with shared"


def test_updates_in_native_calls():
    step, w, b, by_hand = training()
    m = np.random.default_rng(4).standard_normal((6, 5))
    for number in range(12):
        wanted, weights, bias = by_hand(m, w.get_value(), b.get_value())
        version = w.version
        found = step(m)
        np.testing.assert_allclose(found, wanted)
        np.testing.assert_allclose(w.get_value(), weights)
        np.testing.assert_allclose(b.get_value(), bias)
        assert w.version > version
        assert is_native_with_shared(step) == (number >= direct.CALLS - 1)


def test_values_set_between_native_calls():
    step, w, b, by_hand = training()
    m = np.random.default_rng(4).standard_normal((6, 5))
    for _ in range(direct.CALLS + 1):
        step(m)
    assert is_native_with_shared(step)
    held = np.random.default_rng(5).standard_normal((5, 4))
    kept = held.copy()
    for value in (held, np.asfortranarray(held)):
        w.set_value(value, borrow=True)
        wanted, weights, _ = by_hand(m, kept, b.get_value())
        np.testing.assert_allclose(step(m), wanted)
        np.testing.assert_allclose(w.get_value(), weights)
        np.testing.assert_array_equal(held, kept)
    before = w.get_value()
    with pytest.raises(InputError, match="takes 1 input"):
        step(m, m)
    with pytest.raises(InputError, match="shape"):
        step(m[0])
    with pytest.raises(ShapeError):
        step(m[:, :3])
    np.testing.assert_array_equal(w.get_value(), before)
    w.set_value(np.ones((7, 4)))
    m = np.ones((2, 7))
    wanted, weights, _ = by_hand(m, w.get_value(), b.get_value())
    out = np.empty(())
    assert step(m, out=out) is out
    np.testing.assert_allclose(out, wanted)
    np.testing.assert_allclose(w.get_value(), weights)


def test_shared_variables_that_are_only_read():
    w = esat.shared(np.ones((5, 4)), name="w")
    program = esat.compile(esat.Graph([M], [esat.tanh(M @ w)]))
    m = np.random.default_rng(4).standard_normal((6, 5))
    for _ in range(direct.CALLS + 1):
        program(m)
    assert is_native_with_shared(program)
    w.set_value(np.full((5, 4), 2.0))
    np.testing.assert_allclose(program(m), np.tanh(m @ np.full((5, 4), 2.0)))
    assert is_native_with_shared(program)


def test_updates_without_results():
    total = esat.shared(np.zeros(5), name="total")
    program = esat.compile(esat.Graph([X], [], updates={total: total + X}))
    for _ in range(10):
        assert program(np.arange(5.0)) == ()
    np.testing.assert_array_equal(total.get_value(), 10 * np.arange(5.0))


def test_new_values_elsewhere_stay_with_the_driver():
    first, second = esat.shared(np.zeros(5), name="first"), esat.shared(np.ones(5), name="second")
    program = esat.compile(esat.Graph([X], [], updates={first: second + X, second: first - X}))
    wanted = [np.zeros(5), np.ones(5)]
    for _ in range(8):
        program(np.arange(5.0))
        wanted = [wanted[1] + np.arange(5.0), wanted[0] - np.arange(5.0)]
        np.testing.assert_array_equal(first.get_value(), wanted[0])
        np.testing.assert_array_equal(second.get_value(), wanted[1])


def test_updates_by_several_threads_at_once():
    total = esat.shared(np.zeros(5), name="total")
    program = esat.compile(esat.Graph([X], [esat.sum(X * X)], updates={total: total + X}))

    def call():
        for _ in range(500):
            program(np.ones(5))

    call_at_once(call, 4)
    np.testing.assert_array_equal(total.get_value(), np.full(5, 2000.0))


def test_native_products_leave_the_library_its_threads():
    alone = one_thread()
    if alone is None:
        pytest.skip("SciPy's BLAS is not the OpenBLAS of its wheel")
    m, w = (np.random.default_rng(number).standard_normal((70, 70)) for number in (1, 2))
    program = esat.compile(esat.Graph([M, W], [esat.tanh(M @ W)]))
    for _ in range(direct.CALLS + 1):
        program(m, w)
    assert is_native(program)
    before = alone.count()
    alone._limit(3)
    try:
        np.testing.assert_allclose(program(m, w), np.tanh(m @ w))
        assert alone.count() == 3
    finally:
        alone._limit(before)
