"""Native functions for large arrays: what the driver gives, with other threads running meanwhile."""

import threading

import numpy as np
import pytest
from callers import call_at_once
from native_calls import by_driver, way_of

import esat
from esat.codegen.ground.blas_library import one_thread
from esat.errors import InputError, ShapeError
from esat.runtime.native import direct

X, Y = esat.vector("x"), esat.vector("y")
SIZE = 1 << 17
"""Two vectors of float64 of this size are more than a call that holds the lock may read."""


@pytest.fixture(autouse=True)
def few_calls(monkeypatch):
    monkeypatch.setattr(direct, "CALLS", 3)


@pytest.fixture
def single_threads():
    """Both libraries without threads of their own."""
    with one_thread("scipy"), one_thread("numpy"):
        yield


def compiled(inputs, outputs, updates=None, shapes=None):
    """A program for one thread, that has no others for sizes which come often."""
    mode = esat.Mode("fast_run", threads=1, variants=0)
    return esat.compile(esat.Graph(inputs, outputs, updates=updates), mode=mode, shapes=shapes)


def frequent(program, *arrays):
    for _ in range(direct.CALLS + 1):
        program(*arrays)
    return program


def columns(dtype):
    """``a' (b (a' y))`` and its operands, which libraries multiply in the way they do large ones."""
    a, b = (esat.matrix(name, dtype=dtype) for name in "ab")
    y = esat.tensor("y", shape=(None, 1), dtype=dtype)
    generator = np.random.default_rng(0)
    shapes = (800, 700), (800, 700), (700, 1)
    arrays = [generator.standard_normal(shape).astype(dtype) for shape in shapes]
    return [a, b, y], a.T @ (b @ y), arrays


def test_results_are_new_arrays_as_before():
    program = compiled([X, Y], [X * Y + 1.0, esat.maximum(X, Y)])
    x, y = np.random.default_rng(0).standard_normal((2, SIZE))
    frequent(program, x, y)
    assert way_of(program) in ("native", "native with shared")
    first, second = program(x, y)
    third, fourth = program(y, x)
    np.testing.assert_array_equal(first, x * y + 1.0)
    np.testing.assert_array_equal(second, np.maximum(x, y))
    np.testing.assert_array_equal(third, first)
    np.testing.assert_array_equal(fourth, second)
    arrays = (first, second, third, fourth, x, y)
    shared = [np.shares_memory(one, other) for one in arrays for other in arrays if one is not other]
    assert not any(shared)


def test_other_arguments_go_to_the_driver():
    program = compiled([X, Y], X * Y + 1.0)
    x, y = np.random.default_rng(0).standard_normal((2, SIZE))
    frequent(program, x, y)
    assert way_of(program) in ("native", "native with shared")
    wanted = x * y + 1.0
    np.testing.assert_array_equal(program(list(x), y), wanted)
    np.testing.assert_array_equal(program(np.repeat(x, 2)[::2], y), wanted)
    out = np.empty(SIZE)
    assert program(x, y, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    assert program(x[:0], y[:0]).shape == (0,)
    with pytest.raises(InputError, match="takes 2 inputs"):
        program(x)
    with pytest.raises(ShapeError):
        program(x[1:], y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chains_of_products_give_the_drivers_bits(dtype, single_threads):
    inputs, output, arrays = columns(dtype)
    program = frequent(compiled(inputs, output), *arrays)
    assert way_of(program) in ("native", "native with shared")
    np.testing.assert_array_equal(program(*arrays), by_driver(program, *arrays))
    arrays[2][3] = np.nan
    assert np.isnan(program(*arrays)).all()


def test_chains_of_products_leave_libraries_with_threads_to_the_driver(single_threads):
    inputs, output, arrays = columns("float64")
    program = frequent(compiled(inputs, output), *arrays)
    alone = one_thread("numpy")
    alone._limit(3)
    try:
        np.testing.assert_allclose(program(*arrays), arrays[0].T @ (arrays[1] @ arrays[2]), rtol=1e-10)
        assert alone.count() == 3
    finally:
        alone._limit(1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [900, 1200])
def test_products_of_normal_equations_are_steps(dtype, rows, single_threads):
    a, y = esat.matrix("a", dtype=dtype), esat.tensor("y", shape=(None, 1), dtype=dtype)
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(shape).astype(dtype) for shape in ((rows, 800), (800, 1))]
    program = compiled([a, y], a.T @ (a @ y), shapes={a: (rows, 800), y: (800, 1)})
    assert [node.op.name for node in program.graph.toposort()] == ["normal_matmul"]
    frequent(program, *arrays)
    assert way_of(program) in ("native", "native with shared")
    np.testing.assert_array_equal(program(*arrays), by_driver(program, *arrays))


def test_updates_of_large_shared_variables():
    total = esat.shared(np.zeros(SIZE), name="total")
    program = compiled([X], [X * 2.0], updates={total: total + X})
    x = np.arange(float(SIZE))
    frequent(program, x)
    assert way_of(program) in ("native", "native with shared")
    np.testing.assert_array_equal(program(x), x * 2.0)
    np.testing.assert_array_equal(total.get_value(), (direct.CALLS + 2) * x)
    with pytest.raises(ShapeError):
        program(x[1:])
    np.testing.assert_array_equal(total.get_value(), (direct.CALLS + 2) * x)
    call_at_once(lambda: [program(x) for _ in range(50)], 4)
    np.testing.assert_array_equal(total.get_value(), (direct.CALLS + 202) * x)


def test_calls_by_several_threads_at_once(single_threads):
    """Each thread's results are its own, though steps write to memory at fixed addresses."""
    inputs, output, arrays = columns("float64")
    program = frequent(compiled(inputs, [output, esat.sum(output)]), *arrays)
    assert way_of(program) in ("native", "native with shared")
    numbers = iter(range(4))
    lock = threading.Lock()

    def work():
        with lock:
            operand = arrays[2] * (1.0 + next(numbers))
        wanted, total = by_driver(program, *arrays[:2], operand)
        for _ in range(100):
            found, added = program(*arrays[:2], operand)
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(added, total)

    call_at_once(work, 4)


def test_calls_that_take_long_stay_with_the_driver(monkeypatch):
    monkeypatch.setattr(direct, "LARGEST_UNLOCKED", 24 * SIZE - 1)
    program = compiled([X, Y], X * Y + 1.0)
    x, y = np.zeros((2, SIZE))
    assert way_of(frequent(program, x, y)) == "driver"


def test_memory_of_results_is_reused_when_nobody_sees_it():
    program = compiled([X, Y], X * Y + 1.0)
    x, y = np.zeros((2, SIZE))
    frequent(program, x, y)
    addresses = {program(x, y).ctypes.data for _ in range(20)}
    assert len(addresses) < 5
    held = [program(x, y) for _ in range(6)]
    assert len({one.ctypes.data for one in held}) == 6
