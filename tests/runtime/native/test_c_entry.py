"""Programs as C functions: the values of calls, in several threads, from ctypes and from SciPy."""

import ctypes
import gc
import threading

import numpy as np
import pytest
from scipy import LowLevelCallable, integrate

import esat
from esat.errors import CallError
from esat.extract.prices.machine import MachineProfile
from esat.runtime.native import direct

X, M = esat.vector("x"), esat.matrix("m")
V = esat.vector("v")


def density(x):
    """A log-density with a system of equations, a determinant and special functions."""
    covariance = esat.outer(x, x) + 3.0 * esat.eye(4)
    solved = esat.linalg.solve(covariance, esat.sin(x))
    rest = esat.sum(esat.gammaln(x**2 + 1.0) - esat.ndtri(esat.sigmoid(x)))
    return -0.5 * (esat.sin(x) @ solved) - 0.5 * esat.linalg.slogdet(covariance)[1] + rest


def entry_of(inputs, outputs, *arguments, **named):
    function = esat.compile(esat.Graph(inputs, outputs, **named))
    return function, function.c_entry(*arguments)


def density_function(address):
    words = (ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *words)(address)


def test_values_are_those_of_calls():
    m = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    cases = [
        ([X, M], [esat.tanh(M @ X) + 1.0, esat.sum(M.T, axis=0), X[::-1]]),
        ([M, X], [esat.concatenate([M * 2.0, X[None]]), esat.softmax(M, axis=1)]),
        ([X], [esat.sort(X * -1.0), esat.cumsum(X), esat.exp(1j * X)]),
        ([X, V], [esat.scan(lambda c, x: (c * x + 1.0, c), V, X)[1]]),
    ]
    for inputs, outputs in cases:
        given = {X: np.arange(4.0), M: m, V: np.ones(3)}
        arrays = [given[one] for one in inputs]
        function, entry = entry_of(inputs, outputs, *arrays)
        wanted = function(*arrays)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found = [np.full(shape, 7, dtype) for dtype, shape in entry.outputs]
        assert entry(arrays, found) == 0
        assert entry.density_address == 0
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("order", [None, 4, 40, 200])
def test_gradients_of_cholesky_factors_are_native(order):
    """Of small matrices and of those that libraries have threads for, whether or not sizes are known."""
    a, w = (esat.tensor(name, dtype="float64", shape=(order, order)) for name in "aw")
    factor = esat.linalg.cholesky(a, on_error="nan")
    value = esat.sum(esat.tanh(factor) * w) + esat.sum(esat.log(esat.diagonal(factor)))
    size = order or 30
    given = np.random.default_rng(0).normal(size=(size, size))
    arrays = [given @ given.T + size * np.eye(size), given]
    function, entry = entry_of([a, w], [value, esat.grad(value, a)], *arrays)
    found = [np.full(shape, 7, dtype) for dtype, shape in entry.outputs]
    assert entry(arrays, found) == 0
    for one, other in zip(found, function(*arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_what_shapes_decide_is_native():
    outputs = [esat.arange(X.shape[0]) * X, esat.tri(X.shape[0]) @ X, esat.eye(X.shape[0]) + X]
    function, entry = entry_of([X], outputs, np.ones(5))
    found = [np.full(shape, 7, dtype) for dtype, shape in entry.outputs]
    assert entry([np.arange(5.0)], found) == 0
    for one, other in zip(found, function(np.arange(5.0)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_kernels_in_threads_read_operands_of_any_layout():
    """As the driver's do, with its bits."""
    m = np.random.default_rng(3).normal(size=(40, 30))
    columns = esat.cumsum(M, axis=0)  # of its own memory, of which views are read
    outputs = [
        esat.sum(esat.exp(columns.T), axis=1),
        esat.exp(columns[:, ::3]) + columns[:, ::3],
        esat.sum(esat.exp(columns.T) * columns.T),
    ]
    for threads in (1, 2):
        mode = esat.Mode("o2", threads=threads, machine=MachineProfile(parallel_from=1e-30))
        function = esat.compile(esat.Graph([M], outputs), mode)
        wanted, entry = function(m), function.c_entry(m)
        found = [np.full(shape, 7, dtype) for dtype, shape in entry.outputs]
        assert entry([m], found) == 0
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_densities_have_the_signature_of_samplers():
    function, entry = entry_of([X], [density(X), esat.grad(density(X), X)], np.zeros(4))
    call = density_function(entry.density_address)
    x, gradient, value = np.linspace(-1.0, 2.0, 4), np.zeros(4), np.zeros(())
    pointers = [one.ctypes.data for one in (x, gradient, value)]
    assert call(4, *pointers, None) == 0
    for found, wanted in zip((value, gradient), function(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert call(5, *pointers, None) == -1


def test_further_inputs_of_a_density_have_the_values_that_it_was_made_with():
    scale, shift = esat.scalar("scale"), esat.matrix("shift", dtype="float32")
    value = -0.5 * esat.sum((X * scale + esat.sum(shift)) ** 2)
    inputs = [X, scale, shift]
    offsets = np.ones((2, 2), np.float32)
    function, entry = entry_of(inputs, [value, esat.grad(value, X)], np.zeros(3), 2.0, offsets)
    wanted = function(np.arange(3.0), 2.0, offsets)
    offsets[:] = 7.0
    x, gradient, number = np.arange(3.0), np.zeros(3), np.zeros(())
    pointers = [one.ctypes.data for one in (x, gradient, number)]
    assert density_function(entry.density_address)(3, *pointers, None) == 0
    np.testing.assert_array_equal(number, wanted[0])
    np.testing.assert_array_equal(gradient, wanted[1])


def test_mappings_have_the_signature_of_samplers():
    function, entry = entry_of([X, V], [esat.concatenate([X * 2.0, V])], np.zeros(3), np.ones(2))
    assert entry.density_address == 0
    words = (ctypes.c_uint64, ctypes.c_uint64, *[ctypes.c_void_p] * 3)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *words)(entry.mapping_address)
    x, result = np.arange(3.0), np.zeros(5)
    assert call(3, 5, x.ctypes.data, result.ctypes.data, None) == 0
    np.testing.assert_array_equal(result, function(x, np.ones(2)))
    assert call(3, 4, x.ctypes.data, result.ctypes.data, None) == -1
    assert call(2, 5, x.ctypes.data, result.ctypes.data, None) == -1


def test_several_threads_call_at_once_each_with_memory_of_its_own():
    function, entry = entry_of([X], [density(X), esat.grad(density(X), X)], np.zeros(4))
    points = np.random.default_rng(0).normal(size=(4, 4))
    wanted = [function(point) for point in points]
    call, wrong = density_function(entry.density_address), []

    def work(number):
        gradient, value = np.zeros(4), np.zeros(())
        pointers = [one.ctypes.data for one in (points[number], gradient, value)]
        for _ in range(3000):
            status = call(4, *pointers, None)
            if status or value != wanted[number][0] or not np.array_equal(gradient, wanted[number][1]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_what_a_call_would_refuse_is_told_by_the_status():
    _, entry = entry_of([M], [esat.linalg.cholesky(M) * 2.0], np.eye(3))
    found = [np.zeros((3, 3))]
    assert entry([np.eye(3)], found) == 0
    assert entry([-np.eye(3)], found) != 0
    _, checked = entry_of([X], [esat.assert_(X, X > 0.0) * 2.0], np.ones(3))
    assert checked([np.array([1.0, -1.0, 1.0])], [np.zeros(3)]) != 0


def test_the_function_outlives_the_program():
    _, entry = entry_of([X], [esat.exp(X) + 1.0], np.zeros(3))
    gc.collect()
    found = np.zeros(3)
    assert entry([np.ones(3)], [found]) == 0
    np.testing.assert_allclose(found, np.exp(1.0) + 1.0)


def test_scipy_integrates_through_the_address():
    """By a C function of SciPy's signature, made of the entry with ctypes."""
    s = esat.scalar("s")
    _, entry = entry_of([s], [esat.exp(-s * s)], 0.0)
    run = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(entry.address)

    @ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    def integrand(x):
        given, found = ctypes.c_double(x), ctypes.c_double()
        inputs, outputs = (
            (ctypes.c_void_p * 1)(ctypes.addressof(given)),
            (ctypes.c_void_p * 1)(ctypes.addressof(found)),
        )
        assert run(inputs, outputs) == 0
        return found.value

    result, _ = integrate.quad(LowLevelCallable(integrand), 0.0, np.inf)
    assert result == pytest.approx(np.sqrt(np.pi) / 2.0, rel=1e-10)


def test_what_has_no_c_function_says_why():
    w = esat.shared(np.ones(3), name="w")
    cases = [
        ([X], [X * w], {}, r"reads shared variables \(w\)"),
        ([M], [esat.linalg.expm(M)], {}, "expm run by Python"),
        ([X], [esat.sort(X[X > 0.0])], {}, "has no native form"),
    ]
    for inputs, outputs, named, reason in cases:
        argument = np.ones(3) if inputs[0] is X else np.eye(3)
        with pytest.raises(CallError, match=reason):
            entry_of(inputs, outputs, argument, **named)
    _, entry = entry_of([X], [esat.exp(X)], np.ones(3))
    for given, results in (
        ([np.ones(4)], [np.ones(3)]),
        ([np.ones(3, np.float32)], [np.ones(3)]),
        ([np.ones(6)[::2]], [np.ones(3)]),
        ([np.ones(3)], []),
    ):
        with pytest.raises(CallError, match="a C entry takes"):
            entry(given, results)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    with pytest.raises(CallError, match="read-only"):
        entry([np.ones(3)], [fixed])


def test_large_programs_have_entries_and_no_other_native_functions(monkeypatch):
    """A call of Python's that took long would handle no signal meanwhile."""
    monkeypatch.setattr(direct, "LARGEST", 1 << 10)
    monkeypatch.setattr(direct, "LARGEST_UNLOCKED", 1 << 14)
    x = np.linspace(-1.0, 1.0, 5_000)
    function, entry = entry_of([X], [esat.cumsum(esat.sin(X))], x)
    (found,) = (np.full(shape, 7, dtype) for dtype, shape in entry.outputs)
    assert entry([x], [found]) == 0
    np.testing.assert_array_equal(found, function(x))
    calls = function._calls
    assert direct.recipe_in_one_thread(calls.program, calls.table, (x.shape,)) is None
