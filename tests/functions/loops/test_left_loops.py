"""Loops of Python's that are left where a value says so: ``break`` and ``return`` in jitted functions."""

import numpy as np
import pytest

import esat
from esat.errors import TracingError
from esat.ops.loops.record import While

rng = np.random.default_rng(0)
SQUARE = rng.normal(size=(5, 5))
POSITIVE = SQUARE @ SQUARE.T + np.eye(5)


def with_a_flag(a):
    converged, n, x = False, 0, a
    for k in range(3, 40, 2):
        y = 0.5 * (x + a / x)
        if abs(y - x) <= 1e-9 * abs(y):
            converged, n = True, k
            break
        x = y
    return x, converged, n, k


def with_else(a, tolerance):
    x = a
    for _ in range(20):
        x = np.cos(x)
        if np.abs(x - np.cos(x)).max() < tolerance:
            break
    else:
        x = x * 0 - 1
    return x


def in_place(u, tolerance):
    for count in range(200):  # noqa: B007 - returned
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2])
        if np.abs(u - old).max() < tolerance:
            break
    return count


def power_iteration(A):
    v, size = np.ones(A.shape[0]), 0.0
    for i in range(500):  # noqa: B007 - returned
        w = A @ v
        w = w / np.linalg.norm(w)
        new = w @ A @ w
        if np.abs(new - size) < 1e-10:
            break
        v, size = w, new
    return size, v, i


def returning(x, level):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i]
        if total > level / (i + 1):
            return i, total
    return -1, total


def twice(a, b):
    x = a
    for i in range(50):  # noqa: B007 - returned
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < 1e-10:
            break
    y = b
    for j in range(60):  # noqa: B007 - returned
        y = y - (y**3 - x) / (3 * y * y)
        if abs(y**3 - x) < 1e-10:
            break
    return x, y, i, j


def writing(a):
    kept, x = np.zeros(30), a
    for i in range(30):
        x = np.cos(x)
        kept[i] = x
        if abs(np.cos(x) - x) < 1e-3:
            break
    return kept, x


def with_the_one_before(a):
    x, before = a, a * 0
    for i in range(40):  # noqa: B007 - returned
        before, x = x, np.cos(x)
        if abs(before - x) < 1e-6:
            break
    return before, x, i


def rotating(a, tolerance):
    x, y, z = a, a + 1, a * 0.5
    for i in range(30):  # noqa: B007 - returned
        x, y, z = y, z, 0.3 * x + 0.2 * np.cos(z)
        if abs(z - y) < tolerance:
            break
    return x, y, z, i


def conjugate_gradients(A, b):
    x = np.zeros_like(b)
    r = b - A @ x
    p, rr = r.copy(), r @ r
    for _ in range(100):
        Ap = A @ p
        step = rr / (p @ Ap)
        x += step * p
        r -= step * Ap
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p = r + new / rr * p
        rr = new
    return x


def checked_first(A, b):
    x = np.zeros(5)
    for _ in range(60):
        slope = A @ x - b
        if np.linalg.norm(slope) < 1e-10:
            break
        x = x - 0.1 * slope
    return x


NUMBERS = [np.float64(one) for one in (5.0, 1.0, 1e30, 0.25)]
CASES = {
    with_a_flag: [(one,) for one in NUMBERS],
    with_else: [(np.ones(3), one) for one in (1e-2, 1e-12, 10.0)],
    in_place: [(rng.random((8, 8)), one) for one in (1e-3, 0.0, 10.0)],
    power_iteration: [(POSITIVE,)],
    returning: [(rng.random(100), one) for one in (10.0, 1e9, -1.0)],
    twice: [(np.float64(3.0), np.float64(2.0)), (np.float64(1.0), np.float64(1.0))],
    writing: [(np.float64(1.0),), (np.float64(0.739),)],
    with_the_one_before: [(np.float64(1.0),), (np.float64(0.7390851332151607),)],
    rotating: [(np.float64(1.0), one) for one in (1e-1, 1e-4, 0.0, 10.0)],
    conjugate_gradients: [(POSITIVE, rng.random(5))],
    checked_first: [(0.1 * POSITIVE, rng.random(5)), (POSITIVE, np.zeros(5))],
}


def copied(arguments):
    return [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "debug"])
@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_values_are_those_of_python(function, mode):
    compiled = esat.jit(function, mode=mode)
    for arguments in CASES[function]:
        own, other = copied(arguments), copied(arguments)
        found, wanted = compiled(*own), function(*other)
        found = found if isinstance(found, tuple) else (found,)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for one, value in zip((*found, *own), (*wanted, *other), strict=True):
            assert type(one) is type(value)
            np.testing.assert_allclose(one, value, rtol=1e-7, atol=1e-9)


def test_it_is_one_op_that_ends():
    compiled = esat.jit(conjugate_gradients)
    compiled(POSITIVE, rng.random(5))
    (loop,) = [one.op for one in compiled.latest.optimized.apply_nodes if isinstance(one.op, While)]
    assert loop.max_steps == 100


def test_gradients_go_through_the_steps_that_ran():
    slope = esat.grad(lambda a: with_a_flag(a)[0])
    for a in (2.0, 5.0):
        assert slope(np.float64(a)) == pytest.approx(0.5 / np.sqrt(a), rel=1e-8)


def test_errors_are_raised_where_python_raises_them():
    @esat.jit
    def summed(x):
        total = 0.0
        for i in range(30):
            total = total + x[i]
            if total > 100:
                text = "too large"
                raise ValueError(text)
        return total

    assert summed(np.ones(30)) == 30
    with pytest.raises(ValueError, match="too large"):
        summed(10 * np.ones(30))


def test_steps_that_count_and_that_may_fail_are_left():
    def counted(x):
        count = 0
        for _ in range(30):
            count += 1
            x = np.cos(x)
            if abs(x - np.cos(x)) < 1e-3:
                break
        return x, count

    def solved(A, x):
        for _ in range(30):
            if np.abs(x).max() < 1e-3:
                break
            x = np.linalg.solve(A, x)
        return x

    for function, *arguments in ((counted, np.float64(1.0)), (solved, POSITIVE, np.ones(5))):
        found, wanted = esat.jit(function)(*arguments), function(*arguments)
        for one, other in zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True):
            np.testing.assert_allclose(one, other)


def test_what_does_not_leave_a_loop_is_refused():
    def collected(x):
        found = []
        for _ in range(30):
            x = np.cos(x)
            found.append(x)
            if abs(x - np.cos(x)) < 1e-3:
                break
        return found

    with pytest.raises(TracingError, match=r"esat\.while_loop"):
        esat.jit(collected)(np.float64(1.0))
