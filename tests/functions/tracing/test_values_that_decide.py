"""Values in `if`, `assert` and `while`: guards of numbers, checks, and ways that a program chooses."""

import warnings

import numpy as np
import pytest

import esat
from esat.errors import DtypeError, EsatWarning
from tests.functions.users_helpers import Negative, checked

X = np.array([0.3, 0.5, 2.0])


def programs(f):
    return len(f.programs)


def test_numbers_guard_by_how_they_compare():
    @esat.jit
    def f(x, t):
        return x * t if t > 0 else x - t

    with warnings.catch_warnings():
        warnings.simplefilter("error", EsatWarning)
        for t in (1.0, -1.0, 2.5, -3.5, 4.0, 0.0):
            np.testing.assert_allclose(f(X, t), X * t if t > 0 else X - t)
    assert programs(f) == 2


def test_guards_follow_expressions_and_each_other():
    def f(x, a, n):
        if 2 * a - 1 > n:
            return x + a
        if abs(a) <= n / 2 or -a == 3:
            return x * a
        return max(a, float(n)) * x

    compiled = esat.jit(f)
    for a in (0.5, 5.0, -5.0, -3.0, 1.75):
        for n in (1, 2, 3):
            np.testing.assert_allclose(compiled(X, a, n), f(X, a, n))
    assert programs(compiled) <= 8


def test_sizes_are_still_asked_for():
    @esat.jit
    def f(x, n):
        if n > 2:
            x = x + 1.0
        for _ in range(n):
            x = 2.0 * x
        return x

    for n in (1, 2, 3, 4, 3):
        np.testing.assert_allclose(f(X, n), (X + (n > 2)) * 2.0**n)
    assert programs(f) == 4


def test_numpys_bools_are_pythons():
    @esat.jit
    def f(x, flag):
        return x + 1.0 if flag else x - 1.0

    for flag in (np.bool_(True), np.bool_(False), True, False):
        np.testing.assert_allclose(f(X, flag), X + 1.0 if flag else X - 1.0)


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "o2", "o3", "strict", "unsafe", "greedy"])
def test_errors_of_the_users_are_raised(mode):
    f = esat.jit(checked, mode=mode)
    np.testing.assert_allclose(f(X), np.sqrt(X), rtol=1e-14)
    for bad in (-X, 1000.0 * X, X * np.inf, np.array([1.0, np.nan, 2.0])):
        with pytest.raises(Exception) as expected:
            checked(bad)
        with pytest.raises(type(expected.value)) as raised:
            f(bad)
        assert str(raised.value) == str(expected.value)
        assert getattr(raised.value, "code", 0) == getattr(expected.value, "code", 0)
        assert raised.traceback[-1].path == expected.traceback[-1].path
        assert raised.traceback[-1].lineno == expected.traceback[-1].lineno
    np.testing.assert_allclose(f(X), np.sqrt(X), rtol=1e-14)


def test_what_comes_first_is_raised():
    def f(x):
        if x[0] < 0:
            raise ValueError("first")
        if x[1] < 0:
            raise KeyError("second")
        return np.linalg.inv(np.array([[x[0], x[1]], [x[1], x[2]]]))

    compiled = esat.jit(f)
    np.testing.assert_allclose(compiled(X), f(X))
    for bad in (-X, X * [1, -1, 1], np.ones(3), np.zeros(3), np.array([1.0, -1.0, 1.0])):
        with pytest.raises(Exception) as expected:
            f(bad)
        with pytest.raises(type(expected.value)):
            compiled(bad)


def test_arguments_are_not_written_to_where_an_error_is_raised():
    @esat.jit
    def f(x):
        if x[0] < 0:
            raise ValueError("negative")
        x[1] = 7.0

    x = -X
    with pytest.raises(ValueError, match="negative"):
        f(x)
    np.testing.assert_array_equal(x, -X)
    x = X.copy()
    f(x)
    assert x[1] == 7.0


def test_errors_in_loops():
    def f(a):
        out = np.zeros(6)
        for k in range(6):
            if a[k] == 0.0:
                raise ZeroDivisionError(f"pivot {k}")
            out[k] = 1.0 / a[k]
        return out

    compiled = esat.jit(f)
    a = np.arange(1.0, 7.0)
    np.testing.assert_allclose(compiled(a), f(a))
    a[3] = a[5] = 0.0
    with pytest.raises(ZeroDivisionError, match="pivot 3"):
        compiled(a)


def chosen(x):
    if x.sum() > 0:
        return 2.0 * x
    return x - 1.0


def by_parts(x):
    x = x.copy()
    if x[0] > 0:
        x[0] = 5.0
    else:
        x[1:] = 7.0
    return x.cumsum()


def nested(x):
    if x[0] > 0:
        if x[1] > 0:
            return x.sum(), 1
        return x.prod(), 2
    if x[2] > 0 and x[1] < 0:
        return x.max(), 3
    return x.min(), 4


def of_bools(x):
    if x[0] > 0:
        return True
    return bool(x[1] > 0)


def with_zero(x):
    total = x.sum()
    if total == 0:
        return 0
    return x / total


def caught(x):
    try:
        if x[0] < 0:
            raise ValueError
        return x + 1.0
    except ValueError:
        return -x


def refused_if_negative(x):
    if x[0] < 0:
        raise ValueError("negative")
    return x


def caught_from_a_call(x):
    try:
        return refused_if_negative(x) + 1.0
    except ValueError:
        return -x


def inverse_or_not(x):
    if abs(x[0]) > 1e-3:
        return np.linalg.inv(np.diag(x))
    return np.zeros((3, 3))


POINTS = [X * signs for signs in ([1, 1, 1], [-1, 1, 1], [1, -1, 1], [-1, -1, 1], [1, 1, -1], [-1, -1, -1])]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "o3", "strict", "greedy"])
@pytest.mark.parametrize(
    "f",
    [chosen, by_parts, nested, of_bools, caught, caught_from_a_call, inverse_or_not],
    ids=lambda f: f.__name__,
)
def test_ways_are_chosen(f, mode):
    compiled = esat.jit(f, mode=mode)
    for x in [*POINTS, np.array([0.0, 0.5, 2.0])]:
        result, expected = compiled(x), f(x)
        for pair in (
            zip(np.atleast_1d(*result), np.atleast_1d(*expected), strict=True)
            if isinstance(expected, tuple)
            else [(result, expected)]
        ):
            np.testing.assert_allclose(*pair, rtol=1e-13)
        if not isinstance(expected, tuple):
            assert type(result) is type(expected)
    assert programs(compiled) == 1


def test_what_is_not_taken_is_not_computed():
    compiled = esat.jit(inverse_or_not)
    singular = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(compiled(singular), np.zeros((3, 3)))


def test_arguments_are_written_to_on_one_way():
    def f(x, y):
        if x[0] > 0:
            x[1] = 9.0
        else:
            y += 1.0
        return x

    compiled = esat.jit(f)
    for signs in (1.0, -1.0):
        given, plain = [signs * X, X.copy()], [signs * X, X.copy()]
        result = compiled(*given)
        f(*plain)
        np.testing.assert_array_equal(given, plain)
        assert result is given[0]


def test_gradients_are_those_of_the_way_that_is_taken():
    gradient = esat.grad(lambda x: (x**2).sum() if x[0] > 0 else x.sum())
    np.testing.assert_allclose(gradient(X), 2.0 * X)
    np.testing.assert_allclose(gradient(-X), np.ones(3))
    value, pair = esat.value_and_grad(lambda x: checked(x).sum())(X)
    np.testing.assert_allclose([value, *pair], [np.sqrt(X).sum(), *(0.5 / np.sqrt(X))])
    with pytest.raises(Negative, match=r"negative: -2\.00"):
        esat.grad(lambda x: checked(x).sum())(-X)


def test_checks_within_batches():
    def f(x):
        if x[0] < 0:
            raise ValueError("negative")
        return x.sum()

    with pytest.raises(DtypeError, match=r"esat\.where"):
        esat.vmap(f)(np.stack([X, X]))

    import math

    roots = esat.vmap(lambda x: math.sqrt(x[0]))
    np.testing.assert_allclose(roots(np.stack([X, 4.0 * X])), [X[0] ** 0.5, 2.0 * X[0] ** 0.5])
    with pytest.raises(ValueError, match="math domain"):
        roots(np.stack([X, -X]))


def halved(x):
    while x.sum() > 1.0:
        x = x / 2.0
    return x


def by_shape(x):
    if x.sum() > 0:
        return x
    return x[:2]


def by_text(x):
    return "large" if x.sum() > 0 else "small"


def test_loops_run_as_long_as_a_value_says():
    compiled = esat.jit(halved)
    for x in POINTS:
        np.testing.assert_allclose(compiled(8.0 * x), halved(8.0 * x))
    assert programs(compiled) == 1


@pytest.mark.parametrize("f", [by_shape, by_text])
def test_what_cannot_be_chosen_is_refused(f):
    with pytest.raises(DtypeError, match=r"esat\.where"):
        esat.jit(f)(X)


def test_symbolic_shapes():
    def f(x):
        if x.shape[0] > 3:
            raise ValueError("too long")
        return x * 2.0 if x[0] > 0 else x + 1.0

    compiled = esat.jit(f, shapes="symbolic")
    for x in (X, -X, X[:2]):
        np.testing.assert_allclose(compiled(x), f(x))
    with pytest.raises(ValueError, match="too long"):
        compiled(np.ones(4))
    assert programs(compiled) == 1


def test_functions_that_change_from_run_to_run_are_refused():
    runs = []

    def f(x):
        runs.append(0)
        if len(runs) % 2 and x[0] > 0:
            return x
        if x[1] > 0:
            return 2.0 * x
        return 3.0 * x

    with pytest.raises(DtypeError, match="does not do the same each time"):
        esat.jit(f)(X)


def test_places_that_some_ways_do_not_have():
    def f(x):
        place = 0
        if x[0] > 0:
            place += 2
        if x[1] > 0:
            place += 1
        return [x, 2.0 * x, 3.0 * x][place]

    compiled = esat.jit(f)
    for x in (X * [1, -1, 1], X * [-1, 1, 1], -X):
        np.testing.assert_allclose(compiled(x), f(x))
    with pytest.raises(IndexError, match="list index out of range"):
        compiled(X)


def test_loops_that_end_by_values_say_so():
    def f(x):
        for row in (x, x + 1.0, x + 2.0, x + 3.0, x + 4.0):
            for _ in (1, 2, 3):
                if row.sum() < 1.0:
                    break
                x = x / 2.0
        return x

    with pytest.raises(DtypeError, match="how often a loop runs"):
        esat.jit(f)(X)


def test_checks_hold_in_programs_that_are_entered_directly():
    @esat.jit
    def root(x):
        if np.any(x < 0):
            raise Negative("below zero")
        return np.sqrt(x)

    x = np.arange(4.0)
    for _ in range(300):
        np.testing.assert_array_equal(root(x), np.sqrt(x))
    for wrong in (-x, -np.ones((2, 3)), np.array(-1.0), -x.astype(np.float32)):
        for _ in range(3):
            with pytest.raises(Negative, match="below zero"):
                root(wrong)
        np.testing.assert_array_equal(root(x), np.sqrt(x))
        np.testing.assert_array_equal(root(-wrong), np.sqrt(-wrong))
