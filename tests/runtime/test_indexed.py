"""Programs that read by index arrays: as kernels and as native functions, against NumPy."""

import threading

import numpy as np
import pytest

import esat
from esat.errors import IndexingError, ShapeError
from esat.runtime.native import direct

RNG = np.random.default_rng(7)
X, M = esat.vector("x"), esat.matrix("m")
PLACES, OTHERS = esat.lvector("i"), esat.lvector("j")


@pytest.fixture(scope="module")
def several():
    """One program with several reads of one index, a reduction of them, and results beside."""
    part = X[PLACES]
    outputs = [
        esat.exp(part) + part,
        (part * M[PLACES, OTHERS]).sum(),
        esat.sqrt(X),
        M[:, OTHERS].sum(axis=1),
    ]
    return esat.compile(esat.Graph([X, M, PLACES, OTHERS], outputs))


def expected(x, m, i, j):
    return [np.exp(x[i]) + x[i], (x[i] * m[i, j]).sum(), np.sqrt(x), m[:, j].sum(axis=1)]


def agrees(program, *arrays):
    for got, wanted in zip(program(*arrays), expected(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-12)


def data(count, size=5):
    i, j = RNG.integers(-size, size, (2, count))
    return RNG.random(size), RNG.standard_normal((size, size)), i, j


def test_reads_are_kernels(several):
    assert {group.kind for group in several.steps} == {"kernel"}
    agrees(several, *data(40))
    agrees(several, *data(0))
    agrees(several, *data(30_000))
    x, m, i, j = data(40)
    agrees(several, x[::-1], m.T, np.repeat(i, 2)[::2], j)


def test_an_index_of_one_place_is_stretched(several):
    x, m, i, j = data(40)
    with pytest.raises(esat.errors.EsatError):
        several(x, m, i, j[:7])
    program = esat.compile(esat.Graph([M, PLACES, OTHERS], [M[PLACES, OTHERS] * 2]))
    for _ in range(direct.CALLS + 2):
        np.testing.assert_array_equal(program(m, i, j), m[i, j] * 2)
    np.testing.assert_array_equal(program(m, i, j[:1]), m[i, j[:1]] * 2)
    np.testing.assert_array_equal(program(m, i[:1], j), m[i[:1], j] * 2)


@pytest.mark.parametrize("calls", [1, direct.CALLS + 2])
def test_places_that_are_not_there(several, calls):
    x, m, i, j = data(40)
    for _ in range(calls):
        agrees(several, x, m, i, j)
    wrong = j.copy()
    wrong[39] = 5
    for _ in range(2):
        with pytest.raises(
            IndexingError, match=r"index 5 is out of bounds for axis 1 with size 5.*\n  at .*indexed"
        ):
            several(x, m, i, wrong)
    out = tuple(np.empty_like(one) for one in expected(x, m, i, j))
    with pytest.raises(IndexingError):
        several(x, m, i, wrong, out=out)
    agrees(several, x, m, i, j)


def test_a_call_that_fails_changes_no_shared_variable():
    table, count = esat.shared(np.arange(4.0), "table"), esat.shared(np.zeros(()), "count")
    program = esat.compile(
        esat.Graph([PLACES], [table[PLACES].sum()], updates={count: count + 1, table: table * 0.5})
    )
    for number in range(direct.CALLS + 2):
        before = table.get_value()
        assert program(np.array([1, -1])) == before[1] + before[-1]
        assert count.get_value() == number + 1
    before = table.get_value()
    with pytest.raises(IndexingError):
        program(np.array([1, 4]))
    np.testing.assert_array_equal(table.get_value(), before)
    assert count.get_value() == direct.CALLS + 2


@pytest.mark.parametrize("mode", ["debug", "fast_compile", "greedy", "strict"])
def test_modes(mode):
    outputs = [esat.tanh(X[PLACES]) * 2, X[PLACES].sum(), X + 1]
    program = esat.compile(esat.Graph([X, PLACES], [*outputs, esat.grad(outputs[1], X)]), mode=mode)
    x, _, i, _ = data(30)
    found = program(x, i)
    wanted = [np.tanh(x[i]) * 2, x[i].sum(), x + 1, np.bincount(i % 5, minlength=5)]
    for got, one in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-12)


def test_threads_read_alike(several):
    arrays = data(50_000)
    threads = [threading.Thread(target=agrees, args=(several, *arrays)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture(scope="module")
def written():
    """A program that reads and writes by one index, and a gradient of what it reads, beside other results."""
    value = esat.vector("v")
    outputs = [
        (X * 2).at[PLACES].add(value * 3),
        X.at[PLACES].set(value),
        esat.grad(esat.tanh(X[PLACES] * value).sum(), X),
        esat.exp(value),
    ]
    return esat.compile(esat.Graph([X, PLACES, value], outputs))


def test_writes_are_kernels_too(written):
    assert {group.kind for group in written.steps} == {"kernel"}
    x, places = RNG.standard_normal(6), RNG.integers(-6, 6, 50)
    value = RNG.standard_normal(50)
    wanted = [x * 2, x.copy(), np.zeros(6), np.exp(value)]
    np.add.at(wanted[0], places, value * 3)
    wanted[1][places] = value
    np.add.at(wanted[2], places, value / np.cosh(x[places] * value) ** 2)
    before = x.copy()
    for _ in range(direct.CALLS + 2):
        for got, one in zip(written(x, places, value), wanted, strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(x, before)
    places[3] = -7
    with pytest.raises(IndexingError, match="index -7 is out of bounds for axis 0 with size 6"):
        written(x, places, value)


def test_a_value_must_fit_its_part(written):
    x, places = np.zeros(6), np.zeros(4, np.int64)
    for size in (1, 3):
        with pytest.raises(ShapeError):
            written(x, places, np.ones(size))


def test_a_shared_variable_is_written_in_place():
    table = esat.shared(np.zeros((5, 2)), "table")
    new = esat.matrix("new")
    program = esat.compile(esat.Graph([PLACES, new], [new.sum()], updates={table: table.at[PLACES].add(new)}))
    held = table.get_value(borrow=True)
    program(np.array([0, 0, -1]), np.ones((3, 2)))
    assert table.get_value(borrow=True) is held
    np.testing.assert_array_equal(held[:, 0], [2, 0, 0, 0, 1])
    with pytest.raises(IndexingError):
        program(np.array([0, 5, 0]), np.ones((3, 2)))
    np.testing.assert_array_equal(held[:, 0], [2, 0, 0, 0, 1])
