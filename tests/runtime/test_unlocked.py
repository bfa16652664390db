"""Native functions for large arrays: what the driver gives, with other threads running meanwhile."""

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from callers import call_at_once
from native_calls import by_driver, way_of

import esat
from esat.codegen.ground.blas_library import one_thread
from esat.codegen.native_functions.native_plan import calls_python
from esat.errors import InputError, ShapeError
from esat.runtime.native import direct
from esat.runtime.native.direct import recipe_in_one_thread

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


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize(
    ("rows", "inner", "many"),
    [(3770, 10, 1), (10, 3770, 1), (1, 3770, 10), (1, 10, 3770), (1, 20_000, 1), (9217, 1, 1),
     (100, 5000, 1), (700, 700, 1), (301, 40, 40), (30, 500, 20), (5, 300, 200), (3, 3, 40_000)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_cut_where_libraries_would_wake_threads(dtype, rows, inner, many, orders):
    """A program for several threads cannot keep a library to one while it has given up the lock."""
    operands = [esat.matrix(name, dtype=dtype) for name in "ab"]
    given = [one if order == "C" else one.T for one, order in zip(operands, orders, strict=True)]
    large = esat.vector("large", dtype=dtype)
    graph = esat.Graph([*operands, large], [given[0] @ given[1], large + 1])
    program = esat.compile(graph, esat.Mode("fast_run", threads=4, variants=0))
    generator = np.random.default_rng(0)
    matrices = [generator.standard_normal(shape).astype(dtype) for shape in ((rows, inner), (inner, many))]
    arrays = [
        one if order == "C" else np.ascontiguousarray(one.T)
        for one, order in zip(matrices, orders, strict=True)
    ]
    arrays.append(np.zeros(1 << 18, dtype))
    program(*arrays)
    calls = program._calls
    recipe = recipe_in_one_thread(calls.program, calls.table, tuple(one.shape for one in arrays))
    assert recipe.unlocked
    assert not recipe.libraries
    is_odd = rows == 3  # one row would be left over, a product with a vector
    assert calls_python(recipe.steps) == is_odd
    product, _ = recipe.function(program)(*arrays)
    wanted = matrices[0].astype(np.float64) @ matrices[1]
    bound = np.abs(matrices[0]).astype(np.float64) @ np.abs(matrices[1])
    assert np.all(np.abs(product - wanted) <= 16 * np.finfo(dtype).eps * bound)
    arrays[0][...] = np.nan
    assert np.isnan(recipe.function(program)(*arrays)[0]).all()


PRODUCTS = """
import json, sys
import numpy as np
import esat

rows, columns = {shape}
data = np.sin(np.arange(1.0 * rows * columns)).reshape(rows, columns)
m, w, x = esat.matrix("m"), esat.vector("w"), esat.vector("x")
function = esat.compile(esat.Graph([m, w, x], [m @ w, x @ m]))
arrays = data, np.linspace(0.0, 1.0, columns), np.linspace(0.0, 1.0, rows)
results = [one.tolist() for one in function(*arrays)]
print(json.dumps([results, type(function).__name__, sorted(sys.modules)]))
"""


@pytest.mark.parametrize("shape", ["(18_000, 10)", "(60_000, 10)"])
def test_a_second_process_compiles_no_products(tmp_path, shape):
    """Of large ones the library's routine is recorded; others are native, and need nothing of numba's."""
    environment = {**os.environ, "ESAT_CACHE_DIR": str(tmp_path), "ESAT_EGRAPH_CACHE": "1"}
    environment["NUMBA_NUM_THREADS"] = "2"
    command = [sys.executable, "-c", PRODUCTS.replace("{shape}", shape)]
    (first, kind, _), (again, second, loaded) = (
        json.loads(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
        for _ in range(2)
    )
    assert (kind, second) == ("Executable", "RecordedExecutable")
    assert not {"egglog", "esat.compilation.pipeline"} & {*loaded}
    assert ("numba" in loaded) == (shape == "(60_000, 10)")
    for one, other in zip(first, again, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13)


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
