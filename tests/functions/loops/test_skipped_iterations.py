"""Iterations that are not traced: only where no state that Python could see makes them differ."""

import contextvars
import functools
import itertools
import operator
import os
import tempfile

import numpy as np
import pytest

import esat
from esat.frontend.tracing.rolling import iterated as rolling

from .loop_programs import arguments, difference, loaded, text

STEPS = 100
LATE = 70
"""The iteration that differs, long after those that are traced."""
rng = np.random.default_rng(1)
X, ROWS = rng.standard_normal(STEPS), rng.standard_normal((STEPS, 3))


class Counter:
    total = 0

    def __init__(self):
        self.n = 0
        self._steps = 0

    def up(self):
        self.n += 1
        return self.n

    @property
    def steps(self):
        self._steps += 1
        return self._steps


NUMBERS = {"n": 0}
SEEN = []
FOLDER = tempfile.mkdtemp()


def local_number(x):
    y, k = 0.0, 0
    for t in range(STEPS):
        k += 1  # noqa: SIM113 - on purpose
        y = y * 0.5 + x[t] if k != LATE else y - 1.0
    return y


def copy_of_the_variable(x):
    y, last = 0.0, 0
    for t in range(STEPS):
        y = y * 0.5 + x[t] if last != LATE else y - 1.0
        last = t
    return y


def attribute(x):
    y, counter = 0.0, Counter()
    for t in range(STEPS):
        y = y * 0.5 + x[t] if counter.up() != LATE else y - 1.0
    return y


def property_of_an_object(x):
    y, counter = 0.0, Counter()
    for t in range(STEPS):
        y = y * 0.5 + x[t] if counter.steps != LATE else y - 1.0
    return y


def attribute_of_a_class(x):
    Counter.total = 0
    y = 0.0
    for t in range(STEPS):
        Counter.total += 1
        y = y * 0.5 + x[t] if Counter.total != LATE else y - 1.0
    return y


def module_dict(x):
    NUMBERS["n"] = 0
    y = 0.0
    for t in range(STEPS):
        NUMBERS["n"] += 1
        y = y * 0.5 + x[t] if NUMBERS["n"] != LATE else y - 1.0
    return y


def module_list(x):
    del SEEN[:]
    y = 0.0
    for t in range(STEPS):
        SEEN.append(1)
        y = y * 0.5 + x[t] if len(SEEN) != LATE else y - 1.0
    return y


def closure(x):
    n = 0

    def step(y, value):
        nonlocal n
        n += 1
        return y * 0.5 + value if n != LATE else y - 1.0

    y = 0.0
    for t in range(STEPS):
        y = step(y, x[t])
    return y


def default(x):
    def step(y, value, seen=[]):  # noqa: B006 - on purpose
        seen.append(1)
        return y * 0.5 + value if len(seen) != LATE else y - 1.0

    y = 0.0
    for t in range(STEPS):
        y = step(y, x[t])
    return y


def attribute_of_a_function(x):
    def step(y, value):
        step.n += 1
        return y * 0.5 + value if step.n != LATE else y - 1.0

    step.n = 0
    y = 0.0
    for t in range(STEPS):
        y = step(y, x[t])
    return y


def array(x):
    y, n = 0.0, [np.float64(0.0)]
    for t in range(STEPS):
        n[0] = n[0] + 1
        y = y * 0.5 + x[t] if float(n[0]) != LATE else y - 1.0
    return y


def iterator(x):
    y, numbers = 0.0, iter([1.0] * LATE + [7.0] * STEPS)
    for t in range(STEPS):
        y = y * 0.5 + x[t] * next(numbers)
    return y


def counting(x):
    y, up = 0.0, itertools.count()
    for t in range(STEPS):
        y = y * 0.5 + x[t] if next(up) != LATE else y - 1.0
    return y


def partial_of_an_iterator(x):
    numbers = [1.0] * LATE + [7.0] * STEPS
    take = operator.methodcaller("pop", 0)
    y = 0.0
    for t in range(STEPS):
        y = y * 0.5 + x[t] * take(numbers)
    return y


def growing_list(x):
    y, kept = 0.0, []
    for t in range(STEPS):
        y = y * 0.5 + x[t]
        kept.append(y)
    return kept[3] + kept[-1] + len(kept)


def generator(x):
    def values():
        for t in range(STEPS):
            yield x[t]

    y, n = 0.0, 0
    for value in values():
        n += 1  # noqa: SIM113 - on purpose
        y = y * 0.5 + value if n != LATE else y - 1.0
    return y


def comprehension(x):
    return np.stack([np.sin(x[t]) + x[STEPS - 1 - t] for t in range(STEPS)])


def branch(x):
    y = 0.0
    for t in range(STEPS):
        y = np.tanh(y + x[t]) if t != LATE else y * 2.0
    return y


def power_of_the_variable(x):
    y = 0.0
    for t in range(STEPS):
        y = y * 0.5 + x[t] * float(t**12 % 1000003)
    return y


def product_of_the_variable(x):
    y = 0.0
    for t in range(STEPS):
        y = y * 0.5 + x[t] * (t * t * t * t * t * t * t * t * t * t * t * 1e-20)
    return y


def rotating(x):
    rows, y = [x[0], x[1], x[2], x[3], x[4], x[5], x[6]], 0.0
    for t in range(STEPS):
        y = 0.5 * y + rows[0] * x[t]
        rows = [*rows[1:], rows[0]]
    return y


@functools.lru_cache
def kept():
    return []


def cache_of_a_function(x):
    y = 0.0
    kept().clear()
    for t in range(STEPS):
        kept().append(t)
        y = y * 0.5 + x[t] if len(kept()) != LATE else y - 1.0
    return y


def environment(x):
    y, os.environ["STEPS_OF_A_TEST"] = 0.0, "0"
    for t in range(STEPS):
        os.environ["STEPS_OF_A_TEST"] = str(int(os.environ["STEPS_OF_A_TEST"]) + 1)
        y = y * 0.5 + x[t] if os.environ["STEPS_OF_A_TEST"] != str(LATE) else y - 1.0
    return y


def file(x):
    y, path = 0.0, os.path.join(FOLDER, "steps")
    open(path, "w").close()
    for t in range(STEPS):
        with open(path, "a") as steps:
            steps.write(".")
        y = y * 0.5 + x[t] if os.stat(path).st_size != LATE else y - 1.0
    return y


def context(x):
    y, steps = 0.0, contextvars.ContextVar("steps", default=0)
    for t in range(STEPS):
        steps.set(steps.get() + 1)
        y = y * 0.5 + x[t] if steps.get() != LATE else y - 1.0
    return y


def method_of_a_list(x):
    y, steps = 0.0, []
    grow, count = steps.append, steps.__len__
    del steps
    for t in range(STEPS):
        grow(0)
        y = y * 0.5 + x[t] if count() != LATE else y - 1.0
    return y


HOSTILE = [
    local_number, copy_of_the_variable, attribute, property_of_an_object, attribute_of_a_class, module_dict,
    module_list, closure, default, attribute_of_a_function, array, iterator, counting,
    partial_of_an_iterator, growing_list, generator, comprehension, branch, power_of_the_variable,
    product_of_the_variable, rotating, cache_of_a_function, environment, file, context, method_of_a_list,
]  # fmt: skip


@pytest.mark.parametrize("function", HOSTILE, ids=lambda one: one.__name__)
def test_what_differs_late_is_not_skipped(function):
    found = esat.jit(function, mode="fast_compile")(X.copy())
    assert np.allclose(found, function(X.copy()), rtol=1e-10)


def recurrence(x):
    y, out = 0.0, np.zeros(len(x))
    for t in range(len(x)):
        y = np.tanh(0.7 * y + x[t])
        out[t] = y
    return out, y, t


def state_in_objects(x):
    state, counter = {"y": 0.0}, Counter()
    counter.z = 1.0
    for t in range(STEPS):
        state["y"] = 0.5 * state["y"] + x[t] * (t + 1)
        counter.z = 0.25 * counter.z + state["y"]
    return state["y"], counter.z


def views(rows):
    h, last = np.zeros(3), rows[0]
    for t in range(STEPS):
        last = rows[t]
        h = np.tanh(h + last)
        last = rows[STEPS - 1 - t]
    return h, last, t


def taps(x):
    out = np.zeros(STEPS)
    for t in range(2, STEPS):
        out[t] = 0.5 * out[t - 1] - 0.2 * out[t - 2] + x[t] + 0.125 * t
    return out


SKIPPED = [(recurrence, X), (state_in_objects, X), (views, ROWS), (taps, X)]


@pytest.mark.parametrize(("function", "given"), SKIPPED, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.parametrize("mode", ["fast_compile", "fast_run"])
def test_what_is_skipped_is_as_in_python(function, given, mode, monkeypatch):
    seen = []
    before = rolling._skipping

    def noting(values, nodes, *rest):
        seen.append(len(nodes))
        return before(values, nodes, *rest)

    monkeypatch.setattr(rolling, "_skipping", noting)
    found, wanted = esat.jit(function, mode=mode)(given.copy()), function(given.copy())
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in pairs)
    assert seen == [5]


def test_debug_mode_traces_all(monkeypatch):
    monkeypatch.setattr(rolling, "_skipping", lambda *_: pytest.fail("iterations are skipped"))
    compiled = esat.jit(taps, mode="debug")
    assert np.allclose(compiled(X), taps(X))


def test_a_long_loop_is_traced_as_fast_as_a_short_one():
    compiled = esat.jit(recurrence)
    x = rng.standard_normal(200_000)
    out, y, t = compiled(x)
    wanted = 0.0
    for value in x[:1000]:
        wanted = np.tanh(0.7 * wanted + value)
    assert out[999] == pytest.approx(wanted)
    assert (t, y) == (len(x) - 1, out[-1])


@pytest.mark.parametrize("seed", range(100, 130))
def test_random_programs_with_skipped_iterations(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 1)
    monkeypatch.setattr(rolling, "FEWEST_SKIPPED", 8)
    generator = np.random.default_rng(seed)
    program = loaded(text(generator, 0.1), tmp_path, f"skipping_{seed}")
    given = arguments(generator, 24)
    theirs, mine = ([one.copy() for one in given] for _ in range(2))
    try:
        wanted = program(*theirs)
    except (IndexError, StopIteration):
        return  # what Python refuses has no value to compare with
    found = esat.jit(program, mode="fast_compile")(*mine)
    assert difference(found, wanted) < 1e-9
    assert difference(mine, theirs) < 1e-9
