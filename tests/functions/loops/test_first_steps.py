"""First steps of loops that differ from others, names that some cases bind only, and errors before loops."""

import numpy as np
import pytest

import esat
from esat.errors import TracingError
from esat.ops.loops.record import While

rng = np.random.default_rng(3)
NAMES = r"cannot access local variable '\w+' where it is not associated with a value"


def joined(before, new):
    return new if before is None else before @ new / 10


def registration(p, q):
    """Iterations to the nearest points: a transformation of None, and an error of infinity, at first."""
    transformation, change, previous, count = None, np.inf, np.inf, 0
    while change >= 1e-4:
        count += 1
        error = np.abs(p - q).sum()
        q = q + 0.5 * (p - q)
        change = previous - error
        if change < 0:
            break
        previous = error
        transformation = joined(transformation, np.eye(3) * q.sum())
        if change <= 1e-4:
            break
        if count >= 100:
            break
    return transformation[0:1], q, count


def from_an_integer(x):
    previous, n = 0, 0
    while n < 50:
        current = x * 0.5 + previous * 0.1
        n += 1
        if abs(current.sum() - np.sum(previous)) < 1e-9:
            break
        previous = current
    return current, n


def from_another_shape(x):
    weight = 1.0
    while np.sum(weight) < 50:
        weight = weight + x
    return weight.sum()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (registration, (rng.random((2, 5)), rng.random((2, 5)))),
        (from_an_integer, (rng.random(4),)),
        (from_another_shape, (rng.random(4),)),
    ],
)
def test_a_first_step_of_other_types(function, arguments):
    wanted, found = function(*arguments), esat.jit(function)(*arguments)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_none_in_place_of_a_number_is_an_error_where_it_is_used():
    def added(x):
        total, before = 0.0, None
        for i in range(2):
            if x[i] > 0:
                total = 1.0 + before
            total = total + x[i]
        return total

    f = esat.jit(added)
    np.testing.assert_allclose(f(-np.ones(8)), added(-np.ones(8)))
    with pytest.raises(TypeError, match="NoneType"):
        f(np.ones(8))


def test_results_of_a_first_step_of_another_type_are_refused():
    def first_one(x):
        previous = 0
        while np.sum(previous) < 3:
            if x.sum() > 100:
                break
            previous = previous + x
        return previous

    with pytest.raises(TracingError, match="previous changes its type in a step: it is of type int"):
        esat.jit(first_one)(rng.random(4))


def read_in_the_loop(x):
    total = 0.0
    for i in range(8):
        if x[i] > 0:
            part = x[i] * 2
        total = total + part
    return total


def read_after_the_loop(x):
    for i in range(8):
        if x[i] > 0:
            last = x[i : i + 1] * 3
    return last


def added_to(x):
    for i in range(8):
        if x[i] > 0 and i == 0:
            total = 0.0
        if x[i] != 5:
            total += x[i]
    return total


def of_a_step_of_while(x):
    s = x.sum()
    while s > 1.0:
        s = s / 2
        if s < 3.0:
            found = s * 10
    return s + found


def of_while(x):
    s = x.sum()
    while s > 1.0:
        s = s / 2
        last = s
    return last


def of_a_step_that_is_left(x):
    for value in range(20):
        s = x.sum() * 0.5**value
        if s < 0.5:
            break
        kept = s
    return kept


def gain(x):
    p, e = x, 1.0
    while e > 1e-6:
        if e > 0.1:
            k = p * 0.5
        after = 0.5 * (p + k)
        e = np.abs(after - p).max()
        p = after
    return p


@pytest.mark.parametrize(
    ("function", "bound", "unbound"),
    [
        (read_in_the_loop, np.array([1.0, 2, -3, 4, -5, 6, -7, 8]), np.array([-1.0, 2, -3, 4, -5, 6, -7, 8])),
        (read_after_the_loop, np.array([-1.0, 2, -3, 4, -5, 6, -7, -8]), -np.ones(8)),
        (added_to, np.arange(8.0) + 1, -np.ones(8)),
        (of_a_step_of_while, rng.random(9) * 9, np.zeros(9)),
        (of_while, rng.random(9) * 9, np.zeros(9)),
        (of_a_step_that_is_left, rng.random(9) * 9, np.zeros(9)),
        (gain, rng.random(5), None),
    ],
)
def test_names_that_some_cases_bind(function, bound, unbound):
    jitted = esat.jit(function)
    np.testing.assert_allclose(jitted(bound), function(bound), rtol=1e-12)
    if unbound is not None:
        for f in (function, jitted, jitted):
            with pytest.raises(UnboundLocalError, match=NAMES):
                f(unbound)
    np.testing.assert_allclose(jitted(bound), function(bound), rtol=1e-12)


def test_the_error_is_raised_at_the_users_line():
    with pytest.raises(UnboundLocalError) as raised:
        esat.jit(read_after_the_loop)(-np.ones(8))
    lines = [one.frame.code.name for one in raised.traceback]
    assert "read_after_the_loop" in lines


def roots(x):
    total = 0.0
    for i in range(8):
        if x[i] < 0:
            raise ValueError("negative")
        s = x[i] + 1.0
        while abs(s * s - x[i]) > 1e-9:
            s = 0.5 * (s + x[i] / s)
        total += s
    return total


def root(x):
    if x[0] < 0:
        raise ValueError("negative")
    s = x[0] + 1.0
    while abs(s * s - x[0]) > 1e-9:
        s = 0.5 * (s + x[0] / s)
    return s


def roots_of_any(x):
    total = 0.0
    for i in range(8):
        if x[i] != 5:
            if x[i] < 0:
                raise ValueError("negative")
            total += 1
        s = abs(x[i]) + 1.0
        while abs(s * s - abs(x[i])) > 1e-9:
            s = 0.5 * (s + abs(x[i]) / s)
        total += s
    return total


def halved(x):
    total = 0.0
    for i in range(8):
        s, n = x[i], 0
        while s > 1.0:
            s, n = s / 2, n + 1
            if n > 20:
                raise ValueError(f"{n} steps")
        total += s
    return total


def of_derivatives(c):
    out = np.zeros_like(c)
    for i in range(len(c)):
        x = 1.0
        while abs(x * x - c[i]) > 1e-9:
            if x == 0:
                raise ZeroDivisionError("derivative is zero")
            x = x - (x * x - c[i]) / (2 * x)
        out[i] = x
    return out


def within_while(x):
    total, n = 0.0, 0
    while total < 10:
        if x[n] < 0:
            raise ValueError("negative")
        s = x[n] + 1.0
        while abs(s * s - x[n]) > 1e-9:
            s = 0.5 * (s + x[n] / s)
        total, n = total + s + 1, n + 1
    return total


@pytest.mark.parametrize(
    ("function", "right", "wrong"),
    [
        (roots, np.arange(8.0), np.arange(8.0) - 4),
        (root, np.arange(8.0), np.arange(8.0) - 4),
        (roots_of_any, np.arange(8.0), np.arange(8.0) - 4),
        (halved, rng.random(8) * 99, np.full(8, 1e30)),
        (of_derivatives, rng.random(7) + 0.1, np.zeros(7) - 1e-30),
        (within_while, np.arange(12.0), np.arange(12.0) - 1),
    ],
)
def test_loops_after_errors_do_not_run(function, right, wrong):
    """What the error excludes would let the loops run for ever."""
    jitted = esat.jit(function)
    for x in (right, wrong, right):
        try:
            wanted = function(x)
        except (ValueError, ZeroDivisionError) as error:
            with pytest.raises(type(error), match=str(error)):
                jitted(x)
        else:
            np.testing.assert_allclose(jitted(x), wanted, rtol=1e-12)


def test_esats_while_loop_after_an_error():
    @esat.jit
    def root_of(x):
        if x < 0:
            raise ValueError("negative")
        return esat.while_loop(lambda s: abs(s * s - x) > 1e-9, lambda s: 0.5 * (s + x / s), x + 1.0)

    np.testing.assert_allclose(root_of(np.float64(2.0)), np.sqrt(2.0))
    with pytest.raises(ValueError, match="negative"):
        root_of(np.float64(-1.0))


def test_loops_do_not_run_earlier_ones_again():
    """What one leaves is handed to the next, although it may raise an error."""

    def climbing(x):
        k, z = 0, np.zeros(9)
        for q in range(4):
            s = x[q]
            while s <= z[k]:
                k, s = k - 1, s + 1
            k = k + 1
            z[k] = s
        return z

    x = np.arange(9.0) + 1
    f = esat.jit(climbing, mode="fast_compile")
    np.testing.assert_array_equal(f(x), climbing(x))
    loops = [node.op for node in f.latest.graph.apply_nodes if isinstance(node.op, While)]
    assert loops
    assert not any(isinstance(node.op, While) for loop in loops for node in loop.body.apply_nodes)
