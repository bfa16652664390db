"""Loops in native functions: at the first call, of any layout, and where the rest needs Python."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from caches import with_rules

import esat
from esat.runtime.loop_routine import LoopRoutine

rng = np.random.default_rng(2)
X = rng.standard_normal(500)


def decayed(x, weight=0.5):
    return esat.scan(lambda y, v: ((y * weight + v) / (1.0 + y * y), y), 0.0, x)


def by_python(x, weight=0.5):
    y, rows = 0.0, []
    for v in x:
        rows.append(y)
        y = (y * weight + v) / (1.0 + y * y)
    return y, np.array(rows)


def compiled(function, *inputs):
    outputs = function(*inputs)
    return esat.compile(esat.Graph(list(inputs), list(outputs)))


@pytest.fixture
def _no_steps_in_python(monkeypatch):
    monkeypatch.setattr(LoopRoutine, "_step", lambda *_: pytest.fail("a step runs in Python"))


@pytest.mark.usefixtures("_no_steps_in_python")
def test_no_step_of_the_first_call_runs_in_python():
    run = compiled(decayed, esat.vector("x"))
    for given in (X, X[::2], X[::-1], X[:1], X[:0], list(X[:9])):
        found = run(given)
        assert np.allclose(found[0], by_python(given)[0], rtol=1e-13)
        assert np.allclose(found[1], by_python(given)[1], rtol=1e-13)


@pytest.mark.usefixtures("_no_steps_in_python")
def test_results_that_are_held_send_no_call_to_python():
    run = compiled(decayed, esat.vector("x"))
    large = rng.standard_normal(100_000)
    held = [run(large)[1] for _ in range(6)]
    assert all(np.array_equal(held[0], one) for one in held)
    assert not np.shares_memory(held[0], held[1])


@pytest.mark.usefixtures("_no_steps_in_python")
def test_a_loop_among_what_needs_python_is_native():
    x = esat.vector("x")
    last, rows = decayed(x)
    run = esat.compile(esat.Graph([x], [last, rows[rows > 0]]))
    wanted = by_python(X)
    found = run(X)
    assert np.allclose(found[0], wanted[0])
    assert np.allclose(found[1], wanted[1][wanted[1] > 0])


def test_the_native_text_shows_the_loop():
    run = compiled(decayed, esat.vector("x"))
    run(X)
    assert "phi double" in run.source()  # what numbers are handed on
    x, w = esat.vector("x"), esat.matrix("w")
    turned = esat.scan(lambda y, v: (esat.tanh(w @ y) + v, None), np.ones(3), x)[0]
    run = esat.compile(esat.Graph([x, w], [turned]))
    run(X, np.eye(3))
    assert "for index in range(500):" in run.source()
    root = esat.compile(esat.Graph([a := esat.scalar("a")], esat.while_loop(
        lambda x: abs(x * x - a) > 1e-9, lambda x: (x + a / x) / 2.0, a)))  # fmt: skip
    assert root(2.0) == pytest.approx(np.sqrt(2.0))
    assert "while " in root.source()


def test_carries_that_change_places():
    def body(carry, v):
        a, b, c = carry
        return (b, c, a + v * np.tanh(c)), (a, b)

    def python(x):
        a, b, c, rows = 0.0, np.ones(3), np.arange(3.0), []
        a = np.zeros(3)
        for v in x:
            rows.append((a, b))
            a, b, c = b, c, a + v * np.tanh(c)
        return (a, b, c), rows

    run = esat.jit(lambda x: esat.scan(body, (np.zeros(3), np.ones(3), np.arange(3.0)), x))
    for steps in (1, 2, 3, 40):
        carry, rows = run(X[:steps])
        wanted, kept = python(X[:steps])
        assert all(np.allclose(a, b) for a, b in zip(carry, wanted, strict=True))
        assert np.allclose(rows[0], [a for a, _ in kept])
        assert np.allclose(rows[1], [b for _, b in kept])


def test_an_error_of_a_step_is_that_of_the_op():
    def inverse(m):
        return esat.scan(lambda c, k: (np.linalg.inv(c - k * np.eye(2)) + m, None), m, np.arange(4.0))[0]

    run = esat.jit(inverse)
    wanted = m = np.array([[3.0, 1.0], [0.5, 2.5]])
    for k in range(4):
        wanted = np.linalg.inv(wanted - k * np.eye(2)) + m
    assert np.allclose(run(m), wanted)
    with pytest.raises(np.linalg.LinAlgError):
        run(np.zeros((2, 2)))


_PROGRAM = """
import sys
import numpy as np, esat
x = np.linspace(0.0, 1.0, 50)
last, rows = esat.jit(lambda x: esat.scan(lambda y, v: (np.tanh(y) + v, y), 0.0, x))(x)
root = esat.jit(lambda a: esat.while_loop(lambda v: v * v < a, lambda v: v * 1.5, 1.0))(10.0)
print(float(last).hex(), float(root).hex(), "numba" in sys.modules)
"""


def test_another_process_finds_programs_with_loops(tmp_path):
    environment = {"PATH": "", "ESAT_CACHE_DIR": str(with_rules(tmp_path)), "ESAT_EGRAPH_CACHE": "1"}
    command = [sys.executable, "-c", _PROGRAM]
    told = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert told[0][:2] == told[1][:2]
    assert [one[2] for one in told] == ["True", "False"]


class _RingError(Exception):
    pass


@pytest.mark.parametrize("size", [3, 200_000])
def test_handlers_of_signals_run_in_long_loops(size):
    """With the interpreter's lock, and without it where arrays are large."""

    def endless(x):
        rest = esat.while_loop(lambda v: v[0] > 0, lambda v: np.sqrt(v + 0.5), x[:3])
        return x + rest.sum()

    def ring(*_):
        raise _RingError

    run = esat.jit(endless)
    x = np.ones(size)
    assert np.array_equal(run(-x), -4 * x)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(_RingError):
            run(x)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert np.array_equal(run(-x), -4 * x)
