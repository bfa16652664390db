"""``while`` on values of arrays, and loops within loops that a value ends: one op in jitted functions."""

import numpy as np
import pytest

import esat
from esat.errors import TracingError
from esat.frontend.tracing.rolling import iterated as rolling
from esat.ops.loops.record import While

from .loop_programs import wrong_of_random_programs

rng = np.random.default_rng(0)
SQUARE = rng.normal(size=(5, 5))
POSITIVE = SQUARE @ SQUARE.T + 20 * np.eye(5)


def root(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def roots(a):
    out = np.zeros(len(a))
    for i in range(len(a)):
        x, n = a[i], 0
        while abs(x * x - a[i]) > 1e-10 and n < 50:
            x = 0.5 * (x + a[i] / x)
            n += 1
        out[i] = x + n
    return out


def mandelbrot(real, imaginary):
    counts = np.zeros((len(imaginary), len(real)))
    for j in range(len(imaginary)):
        for i in range(len(real)):
            x = y = 0.0
            n = 0
            for _ in range(50):
                if x * x + y * y > 4.0:
                    break
                x, y = x * x - y * y + real[i], 2 * x * y + imaginary[j]
                n += 1
            counts[j, i] = n
    return counts


def left_within(x):
    total = 0.0
    for value in x:
        y = value
        for k in range(20):  # noqa: B007 - used below
            y = y * 0.5
            if y < 0.1:
                y = y + 1
                break
        total += y * k
    return total


def jacobi(A, b):
    x, error, steps = np.zeros_like(b), 1.0, 0
    while error > 1e-8:
        new = (b - A @ x + np.diag(A) * x) / np.diag(A)
        error = np.abs(new - x).max()
        x = new
        steps += 1
    return x, steps


def in_place(u):
    steps = 0
    while True:
        old = u.copy()
        u[1:-1] = 0.5 * (old[2:] + old[:-2])
        steps += 1
        if np.abs(u - old).max() < 1e-4:
            break
    return steps


def bisection(low, high):
    while high - low > 1e-10:
        middle = 0.5 * (low + high)
        if np.cos(middle) - middle > 0:
            low = middle
        else:
            high = middle
    return low


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def in_a_dict(x):
    state = {"x": x, "n": 0}
    while state["x"] > 1:
        state["x"] = state["x"] * 0.5
        state["n"] += 1
    return state["x"], state["n"]


def adaptive(y):
    t, h, steps = 0.0, 0.1, 0
    while t < 1.0:
        first = -y
        second = -(y + h * first)
        error = np.abs(h * (second - first)).max()
        if error < 1e-2:
            t += h
            y = y + 0.5 * h * (first + second)
        h = 0.9 * h * min(2.0, max(0.3, np.sqrt(1e-2 / (error + 1e-14))))
        steps += 1
    return y, t, steps


CASES = [
    (root, np.float64(5.0)), (root, np.float64(1.0)), (roots, 10 * rng.random(8)),
    (roots, 10 * rng.random(80)),
    (mandelbrot, np.linspace(-2, 1, 7), np.linspace(-1, 1, 6)), (left_within, 5 * rng.random(9)),
    (left_within, 5 * rng.random(80)), (jacobi, POSITIVE, rng.normal(size=5)), (in_place, rng.random(20)),
    (bisection, np.float64(0.0), np.float64(2.0)), (collatz, np.int64(27)), (in_a_dict, np.float64(100.0)),
    (in_a_dict, np.float64(0.5)), (adaptive, np.ones(3)),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize(("function", "given"), [(one, more) for one, *more in CASES],
                         ids=lambda one: getattr(one, "__name__", ""))  # fmt: skip
def test_values_are_those_of_python(function, given, mode):
    compiled = esat.jit(function, mode=mode)
    mine, theirs = ([np.copy(one) if np.ndim(one) else one for one in given] for _ in range(2))
    found, wanted = compiled(*mine), function(*theirs)
    found = found if isinstance(found, tuple) else (found,)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other in zip((*found, *mine), (*wanted, *theirs), strict=True):
        assert type(one) is type(other)
        np.testing.assert_allclose(one, other, rtol=1e-9)


def test_a_loop_within_a_loop_is_one_op():
    compiled = esat.jit(roots)
    compiled(rng.random(80))
    assert "is one op" in str(compiled.explain().loops)
    compiled = esat.jit(root)
    assert compiled(np.float64(2.0)) == pytest.approx(np.sqrt(2.0))
    assert any(isinstance(node.op, While) for node in compiled.latest.graph.apply_nodes)


def test_names_that_the_first_step_binds_are_bound_after_the_loop():
    def ranked(x):
        while True:
            new = 0.5 * x + 0.1
            if np.abs(new - x).sum() < 1e-9:
                break
            x = new
        return new

    def limited(x):
        steps = 0
        while steps < 60:
            size = x.sum() / 10
            steps += 1
            if size < 1e-3:
                break
            x = x - 0.1 * size
        return x, size, steps

    def perhaps(x):
        while x.sum() > 1:
            size = x.sum()
            x = x * 0.5
        return size

    x = rng.random(9)
    np.testing.assert_allclose(esat.jit(ranked)(x), ranked(x))
    for found, wanted in zip(esat.jit(limited)(x), limited(x), strict=True):
        np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(esat.jit(perhaps)(x), perhaps(x))


def test_derivatives():
    slope = esat.grad(left_within)
    x = 5 * rng.random(9)
    for place in range(9):
        step = np.zeros(9)
        step[place] = 1e-6
        wanted = (left_within(x + step) - left_within(x - step)) / 2e-6
        assert slope(x)[place] == pytest.approx(wanted, rel=1e-6)
    _, tangent = esat.jvp(root, (np.float64(5.0),), (1.0,))
    assert tangent == pytest.approx(0.5 / np.sqrt(5.0))
    with pytest.raises(esat.errors.EsatError, match="max_steps"):
        esat.grad(root)(np.float64(5.0))


def test_arrays_of_two_names_are_refused_where_they_are_written_to():
    def shared(u):
        v = u
        while u[0] < 10:
            v[0] = v[0] + 1
            u = u * 1.5
        return u, v

    def growing(x):
        kept = []
        while x.sum() > 1:
            x = x * 0.5
            kept.append(x[0])
        return kept

    for function, reason in ((shared, "another name"), (growing, "other places")):
        with pytest.raises(TracingError, match=reason) as raised:
            esat.jit(function)(np.ones(3))
        assert "esat.while_loop" in str(raised.value)


@pytest.mark.parametrize("seed", range(400, 412))
def test_random_programs_are_as_in_python(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 1)
    if seed % 2:
        monkeypatch.setattr(rolling, "FEWEST_SKIPPED", 8)
    shares = {"hostile": 0.1, "choosing": 0.3, "ending": 0.5}
    assert wrong_of_random_programs([seed], tmp_path, **shares)[0] == []


def test_what_is_there_before_a_loop_is_not_computed_in_it():
    def sorted_by_insertion(x):
        for i in range(1, len(x)):
            key, j = x[i], i - 1
            while j >= 0 and x[j] > key:
                x[j + 1] = x[j]
                j -= 1
            x[j + 1] = key
        return x

    for count in (8, 12, 40):
        x = np.random.default_rng(count).normal(size=count)
        compiled = esat.jit(sorted_by_insertion, mode="fast_compile")
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x.copy()), np.sort(x))
        assert len(str(compiled.latest.graph)) < 4_000  # each loop had all those before it in its steps
