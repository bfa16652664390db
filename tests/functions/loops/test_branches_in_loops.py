"""``if`` and ``else`` in loops of jitted functions, where values of arrays decide between branches."""

import math

import numpy as np
import pytest

import esat
from esat.errors import TracingError
from esat.frontend.tracing.rolling import iterated as rolling

from .loop_programs import wrong_of_random_programs

rng = np.random.default_rng(0)
X, ROWS = rng.normal(size=40), rng.normal(size=(30, 3))


def metropolis(x, steps, levels):
    kept, accepted = np.zeros(len(levels)), 0
    for t in range(len(levels)):
        proposal = x + steps[t]
        ratio = np.exp(0.5 * (x**2 - proposal**2))
        if levels[t] < ratio:
            x = proposal
            accepted += 1
        kept[t] = x
    return kept, accepted


def knapsack(weights, values):
    best = np.zeros(11)
    for i in range(len(weights)):
        for c in range(10, 0, -1):
            if weights[i] <= c and best[c - 1] + values[i] > best[c]:
                best[c] = best[c - 1] + values[i]
    return best


def clipped(x):
    y = np.empty_like(x)
    for i in range(len(x)):
        if x[i] > 1:
            y[i] = 1
        elif x[i] < -1:
            y[i] = -1
        else:
            y[i] = x[i]
    return y


def counted(x):
    total = inside = 0
    best, place = -np.inf, -1
    for i in range(len(x)):
        if -1 < x[i] < 0.5 or x[i] > 2:
            inside += 1
        if not x[i] <= best:
            best, place = x[i], i
        total += 1
    return total, inside, best, place


def skipping(x):
    total = 0.0
    for value in x:
        if value < 0:
            continue
        total += np.sqrt(value)
        if total > 5:
            total = total - 5
            continue
        total = total * 1.01
    return total


def in_objects(x):
    state = {"sum": 0.0, "counts": [0, 0]}

    def update(value):
        if value > 0.3:
            state["sum"] = state["sum"] + value
            state["counts"][1] += 1
        else:
            state["counts"][0] += 1

    for value in x:
        update(value)
    return state["sum"], state["counts"][0], state["counts"][1]


def expressions(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] if x[i] > 0 else -2 * x[i]
        total = total if 0 < total < 50 else total * 0.5
    return total


def solving(rows):
    v = np.ones(3)
    for t in range(len(rows)):
        if rows[t] @ v > 0:
            v = np.linalg.solve(3 * np.eye(3) + np.outer(rows[t], rows[t]), v)
        else:
            v[1] += 0.5
            v = v * 0.9
        v[0] += 1
    return v


def by_math(x):
    total = 0.0
    for value in x:
        if value >= 0:
            total += math.sqrt(value)
        else:
            total -= math.log(-value)
    return total


def aliased(rows):
    u = v = np.ones(3)
    for t in range(len(rows)):
        if rows[t, 0] > 0:
            u[1] = rows[t, 1]
        else:
            v = v * 0.5
            u = v
        u[0] += v[0] * rows[t, 2]
    return u, v


PROGRAMS = [
    (metropolis, 0.5, X[:30], rng.random(30)),
    (knapsack, rng.integers(1, 8, 6).astype(float), rng.random(6)),
    (clipped, 2 * X),
    (clipped, 2 * rng.normal(size=200)),
    (counted, X),
    (skipping, X),
    (in_objects, X),
    (expressions, X),
    (solving, ROWS),
    (by_math, X),
]


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize(("function", "given"), [(one, more) for one, *more in PROGRAMS],
                         ids=lambda one: getattr(one, "__name__", ""))  # fmt: skip
def test_values_are_those_of_python(function, given, mode):
    compiled = esat.jit(function, mode=mode)
    found, wanted = (one(*(np.copy(each) if np.ndim(each) else each for each in given))
                     for one in (compiled, function))  # fmt: skip
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert type(one) is type(other)
        np.testing.assert_allclose(one, other, rtol=1e-12)
    if mode == "fast_run":
        assert "is one op" in str(compiled.explain().loops)


@pytest.mark.parametrize(("function", "given"), [
    (lambda x: metropolis(x[0], x, 0.3 + 0 * x)[0].sum(), X),
    (lambda x: clipped(1.3 * x) @ x, X),
    (skipping, X),
    (lambda x: in_objects(x)[0], X),
    (expressions, X),
    (by_math, X),
    (lambda x: solving(x.reshape(10, 3)) @ x[:3], X[:30]),
], ids=["metropolis", "clipped", "skipping", "in_objects", "expressions", "by_math", "solving"])  # fmt: skip
def test_gradients_are_those_of_the_branches_that_are_taken(function, given):
    found = esat.grad(function)(given)
    for place in range(0, len(given), 5):
        step = np.zeros_like(given)
        step[place] = 1e-6
        slope = (function(given + step) - function(given - step)) / 2e-6
        assert found[place] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_what_is_not_taken_raises_no_error():
    def chosen(x, places):
        total = 0.0
        for t in range(10):
            if places[t] < len(x):
                total += x[places[t]]
            if total > 0:
                total = total / np.linalg.cholesky(total * np.eye(2))[0, 0]
        return total

    compiled = esat.jit(chosen)
    for places in (np.arange(10), np.arange(10) + 35, np.full(10, 100)):
        assert compiled(X, places) == pytest.approx(chosen(X, places))


def test_errors_in_branches_are_raised_where_they_are_taken():
    def checked(x):
        total = 0.0
        for value in x:
            if value > 1:
                if total < 0:
                    raise ValueError("negative")
                total += math.sqrt(3 - value)
            else:
                total += value
        return total

    compiled = esat.jit(checked)
    for given in (np.array([2.0, -1, -5, 0, 1, 0.5, 0]), np.array([-1.0, 0, 0, 0, 0, 0, 0])):
        assert compiled(given) == pytest.approx(checked(given))
    for given in (np.array([2.0, -5, 2, 0, 1, 0.5, 0]), np.array([2.0, 4, 0, 0, 1, 0.5, 0])):
        with pytest.raises(ValueError, match=r"negative|math domain|nonnegative") as raised:
            checked(given)
        with pytest.raises(ValueError, match=str(raised.value)[:8]):
            compiled(given)


def of_two_types(x):
    total, mean = 0.0, np.zeros(3)
    for t in range(len(x)):
        weight = 2 if x[t] > 0 else 0.5
        if weight * 2 > 1:
            weight = weight - 1
        total = total + weight * x[t] + weight // 1 + weight / 2
        mean = mean * 0.5 + weight
    return total, mean


def of_integers(x):
    total, counts = 0.0, np.arange(len(x))
    for t in range(len(x)):
        half = counts[t] if x[t] > 0 else counts[t] / 2
        total = total + np.sqrt(half) - max(half, 1)
    return total


def within_expressions(x):
    total, flag, count = 0.0, False, 0
    for value in x:
        flag = value > 0 and not np.sin(value) > 0.5
        total = total + (value if not flag else 2 * value)
        if not (value > 1 or not -1 < np.sin(value) < 0.9):
            count += 1
    return total, flag, count


def guarded(x):
    best = np.zeros(4)
    for value in x:
        place = int(np.floor(5 * value))
        if place >= 0 and place < 4 and best[place] + 1 > value:
            best[place] = best[place] + value
    return best


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("function", [of_two_types, of_integers, within_expressions, guarded])
def test_numbers_of_two_types_and_conditions_of_several_parts(function, mode):
    jitted = esat.jit(function, mode=mode)
    found, wanted = jitted(X), function(X)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for one, other in pairs:
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_numbers_of_two_types_are_refused_where_results_depend_on_the_type():
    def of_whole_arrays(x):
        total = np.zeros(3)
        for value in x:
            weight = 1 if value > 0 else 0.5
            total = total + np.arange(3) * weight
        return total

    def of_less_bits(x):
        total = 0.0
        for value in x:
            weight = 1 if value > 0 else np.float32(value)
            total = total + np.sqrt(weight)
        return total

    def of_large_numbers(x):
        total = 0.0
        for value in x:
            weight = 2**53 + 1 if value > 0 else 0.5
            total = total + weight
        return total

    def of_two_floats(x):
        total = 0.0
        for value in x:
            weight = value if value > 0 else np.float32(value)
            total = total + weight
        return total

    def of_two_booleans(x):
        total = 0.0
        for value in x:
            weight = value > 0 and not value > 1
            total = total + (value if ~weight else 0.5)
        return total

    for function, reason in (
        (of_two_booleans, "of type bool or bool, and what numpy.invert"),
        (of_whole_arrays, "of type int or float, and what numpy.multiply makes of it"),
        (of_less_bits, "of type int or float32, and what numpy.sqrt makes"),
        (of_large_numbers, "no float64 is 9007199254740993"),
        (of_two_floats, "float64 in one case and float32 in another"),
    ):
        with pytest.raises(TracingError, match=reason) as raised:
            esat.jit(function)(X)
        assert "at " in str(raised.value)
        assert "weight" in str(raised.value)


def test_what_no_program_can_choose_is_refused():
    def kept(x):
        items = []
        for value in x:
            if value > 0:
                items.append(value)  # noqa: PERF401 - on purpose
        return sum(items)

    def of_names(x):
        name = "none"
        for value in x:
            if value > 0:
                name = "some"
        return name

    for function, reason in ((kept, "list or dict"), (of_names, "name is"),
                             (lambda x: aliased(x.reshape(-1, 1) * np.ones(3)), "another one")):  # fmt: skip
        with pytest.raises(TracingError, match=reason) as raised:
            esat.jit(function)(X)
        assert "esat.while_loop" in str(raised.value)


@pytest.mark.parametrize("seed", range(2000, 2012))
def test_random_programs_with_numbers_of_several_types(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 1)
    if seed % 2:
        monkeypatch.setattr(rolling, "FEWEST_SKIPPED", 8)
    shares = {"hostile": 0.0, "choosing": 0.2, "mixing": 0.5}
    assert wrong_of_random_programs([seed], tmp_path, **shares)[0] == []


@pytest.mark.parametrize("seed", [59, 124, 144, *range(200, 209)])
def test_random_programs_are_as_in_python(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 1)
    if seed % 2:
        monkeypatch.setattr(rolling, "FEWEST_SKIPPED", 8)
    assert wrong_of_random_programs([seed], tmp_path, hostile=0.1, choosing=0.6)[0] == []
