"""Loops that read and write single elements of tables, and loops within loops: machine code of their own."""

import re
import signal

import numpy as np
import pytest

import esat
from tests.functions.loops.table_programs import compared
from tests.functions.loops.test_ended_loops import collatz

RNG = np.random.default_rng(0)
WORDS = RNG.integers(0, 4, 30), RNG.integers(0, 4, 35)


def knapsack(values, weights, limit=50):
    n = len(values)
    K = np.zeros((n + 1, limit + 1), dtype=np.int64)
    for i in range(1, n + 1):
        for w in range(1, limit + 1):
            if weights[i - 1] <= w:
                K[i][w] = max(values[i - 1] + K[i - 1][w - weights[i - 1]], K[i - 1][w])
            else:
                K[i][w] = K[i - 1][w]
    return K[n][limit]


def edit_distance(a, b):
    n, m = len(a), len(b)
    D = np.zeros((n + 1, m + 1), dtype=np.int64)
    for i in range(n + 1):
        D[i, 0] = i
    for j in range(m + 1):
        D[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                D[i, j] = D[i - 1, j - 1]
            else:
                D[i, j] = 1 + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


def warping(x, y):
    n, m = len(x), len(y)
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = abs(x[i - 1] - y[j - 1])
            D[i, j] = cost + min(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1])
    return D[n, m]


def paths(A):
    D = A.copy()
    n = len(D)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if D[i, k] + D[k, j] < D[i, j]:
                    D[i, j] = D[i, k] + D[k, j]
    return D


def prefixes(A):
    n, m = A.shape
    P = np.zeros((n + 1, m + 1))
    for i in range(n):
        for j in range(m):
            P[i + 1, j + 1] = A[i, j] + P[i, j + 1] + P[i + 1, j] - P[i, j]
    return P


def metropolis(u, z):
    x = 0.0
    out = np.zeros(len(u))
    for i in range(len(u)):
        y = x + z[i]
        if np.log(u[i]) < 0.5 * (x * x - y * y):
            x = y
        out[i] = x
    return out


def divisors(a, b):
    total = 0
    for i in range(len(a)):
        x, y = a[i], b[i]
        while y != 0:
            x, y = y, x % y
        total += x
    return total


def roots(xs):
    out = np.zeros(len(xs))
    for i in range(len(xs)):
        y = 1.0
        while abs(y * y - xs[i]) > 1e-10:
            y = 0.5 * (y + xs[i] / y)
        out[i] = y
    return out


PROGRAMS = {
    collatz: (np.int64(97),),
    knapsack: (RNG.integers(1, 100, 20), RNG.integers(1, 12, 20)),
    edit_distance: WORDS,
    warping: (RNG.normal(size=20), RNG.normal(size=24)),
    paths: (RNG.uniform(1, 9, (9, 9)),),
    prefixes: (RNG.normal(size=(12, 15)),),
    metropolis: (RNG.uniform(size=80), RNG.normal(size=80)),
    divisors: (RNG.integers(1, 10**6, 70), RNG.integers(1, 10**6, 70)),
    roots: (RNG.uniform(1, 100, 70),),
}


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "greedy", "o2", "strict", "Stabilization"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_values_are_those_of_numpy_in_every_call(function, mode):
    given = PROGRAMS[function]
    compiled, wanted = esat.jit(function, mode=mode), function(*given)
    for call in range(1, 301):
        found = compiled(*given)
        if call in (1, 2, 300):
            assert np.asarray(found).dtype == np.asarray(wanted).dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_all_steps_are_one_function(function):
    compiled = esat.jit(function)
    compiled(*PROGRAMS[function])
    text = compiled.source()
    assert "define i32 @run(" in text
    assert not re.search(r"^ +(for index in|while fixed)", text, re.MULTILINE)  # no steps on memory


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_are_as_in_python(seed, tmp_path):
    compared(seed, tmp_path)


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
@pytest.mark.parametrize("seed", range(100, 104))
def test_random_programs_in_other_modes(seed, mode, tmp_path):
    compared(seed, tmp_path, mode)


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_divided_and_wrap_around_as_in_numpy(dtype):
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.max, 0, 1, 2, 7, 100, limits.max - 1, limits.min + 1]
    edges += [-1, -2, -7] if limits.min else [3, 5, 9]
    a, b = (one.ravel() for one in np.meshgrid(*[np.array(edges, dtype)] * 2))

    def computed(a, b):
        quotients, rests = np.zeros_like(a), np.zeros_like(a)
        sums, least, odd = np.zeros_like(a), np.zeros_like(a), np.zeros(len(a), bool)
        total = a[0] * 0
        for i in range(len(a)):
            quotients[i] = a[i] // b[i]
            rests[i] = a[i] % b[i]
            total = total * b[i] + a[i]
            sums[i] = total - sums[i - 1]
            least[i] = min(a[i], b[i]) // 4 + max(a[i], b[i]) % 8
            odd[i] = (a[i] ^ b[i]) & 1 == 1
        return quotients, rests, sums, least, odd

    compiled = esat.jit(computed)
    with np.errstate(all="ignore"):
        wanted = computed(a, b)
    for _ in range(3):
        for own, other in zip(compiled(a, b), wanted, strict=True):
            assert own.dtype == other.dtype
            np.testing.assert_array_equal(own, other)


def test_an_index_out_of_bounds_raises_in_the_step_that_uses_it():
    def taken(x, places):
        found = np.zeros(len(places))
        for i in range(len(places)):
            for j in range(8):
                found[i] = found[i] + x[places[i] + j]
        return found

    compiled, x = esat.jit(taken), np.arange(20.0)
    fine = np.array([-20, 0, 5, 12, -3, 2, -8, 11])
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x, fine), taken(x, fine))
        for wrong in (13, -21):
            with pytest.raises(IndexError):
                compiled(x, np.where(fine == 5, wrong, fine))


def test_both_values_of_where_are_read():
    def chosen(x, places):
        total = 0.0
        for i in range(len(places)):
            total = total * 0.5 + np.where(places[i] > 0, x[places[i]], x[0])
        return total

    compiled, x, places = esat.jit(chosen), np.arange(5.0), RNG.integers(-5, 5, 40)
    np.testing.assert_allclose(compiled(x, places), chosen(x, places), rtol=1e-14)
    places[7] = -6  # not chosen, but read
    with pytest.raises(IndexError):
        compiled(x, places)


def test_arrays_that_are_exchanged_in_each_step():
    def rows(x, weights):
        before, now = np.zeros(20), np.zeros(20)
        before[0] = 1.0
        for i in range(len(weights)):
            for j in range(1, 20):
                now[j] = before[j - 1] * weights[i] + x[j]
            before, now = now, before
        return before, now

    x, weights = RNG.normal(size=20), RNG.normal(size=9)
    compiled = esat.jit(rows)
    for _ in range(3):
        for own, other in zip(compiled(x, weights), rows(x, weights), strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-13)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that send signals")
def test_handlers_of_signals_run_in_loops_that_do_not_end():
    @esat.jit
    def endless(n, factor):
        count = 0
        while n != 1:
            n = n * factor
            count += 1
        return count

    class LateError(Exception):
        pass

    def late(*_):
        raise LateError

    assert endless(np.int64(1), np.int64(1)) == 0
    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(LateError):
            endless(np.int64(3), np.int64(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert endless(np.int64(1), np.int64(1)) == 0
