"""Loops of Python's in traced functions that become one op where their iterations are shown equal."""

import ast
import linecache
import pickle

import numpy as np
import pytest

import esat
from esat.frontend.tracing.rolling import iterated as rolling
from esat.ops.loops.record import Scan
from esat.runtime.loop_routine import rewritten

from .loop_programs import arguments, difference, loaded, text

STEPS = 40
rng = np.random.default_rng(0)
X, ROWS = rng.standard_normal(STEPS), rng.standard_normal((STEPS, 3))


def recurrence(a, x):
    y, out = 0.0, np.zeros(len(x))
    for t in range(len(x)):
        y = np.tanh(a * y + x[t]) + 0.1 * np.cos(y)
        out[t] = y
    return out


def network(w, xs):
    h = np.zeros(w.shape[0])
    for t in range(xs.shape[0]):
        h = np.tanh(w @ h + xs[t])
        h = h / (1.0 + h @ h)
    return h


def is_rolled(jitted):
    nodes = jitted.latest.graph.apply_nodes
    return any(isinstance(node.op, Scan) for node in nodes) and len(nodes) < STEPS


@pytest.mark.parametrize("mode", ["fast_compile", "fast_run", "greedy", "strict", "debug"])
def test_a_loop_becomes_one_op_in_every_mode(mode):
    compiled = esat.jit(recurrence, mode=mode)
    assert np.allclose(compiled(0.7, X), recurrence(0.7, X), rtol=1e-12)
    assert is_rolled(compiled)


def test_its_gradient_is_that_of_differences():
    w, xs = rng.standard_normal((3, 3)), ROWS
    found = esat.grad(lambda w, xs: (network(w, xs) ** 2).sum(), argnums=(0, 1))(w, xs)
    for part, place in zip(found, (0, 1), strict=True):
        given = [w, xs]
        for index in list(np.ndindex(given[place].shape))[:7]:
            moved = [[one.copy() for one in given] for _ in range(2)]
            moved[0][place][index] += 1e-6
            moved[1][place][index] -= 1e-6
            costs = [(network(*one) ** 2).sum() for one in moved]
            assert part[index] == pytest.approx((costs[0] - costs[1]) / 2e-6, abs=1e-7)


def test_tangents_batches_and_float32():
    given = 0.7, X
    value, tangent = esat.jvp(recurrence, given, (1.0, np.ones(STEPS)))
    moved = (recurrence(0.7 + 1e-6, X + 1e-6) - recurrence(0.7 - 1e-6, X - 1e-6)) / 2e-6
    assert np.allclose(value, recurrence(*given))
    assert np.allclose(tangent, moved, atol=1e-7)
    batch = rng.standard_normal((4, STEPS))
    found = esat.vmap(recurrence, in_axes=(None, 0))(0.7, batch)
    assert np.allclose(found, [recurrence(0.7, x) for x in batch])

    def single(x):
        y = x[0]
        for t in range(STEPS):
            y = np.float32(0.5) * np.tanh(y) + x[t] * np.cos(y) + x[0]
        return y

    found = esat.jit(single)(X.astype(np.float32))
    assert found.dtype == np.float32
    assert found == pytest.approx(single(X.astype(np.float32)), abs=1e-4)


def test_functions_with_loops_are_pickled():
    compiled = esat.jit(recurrence)
    assert np.allclose(pickle.loads(pickle.dumps(compiled))(0.7, X), compiled(0.7, X))
    again = pickle.loads(pickle.dumps(compiled.latest))
    assert np.allclose(again(0.7, X), recurrence(0.7, X))


def test_sizes_that_are_open():
    compiled = esat.jit(fixed, shapes="symbolic")
    for size in (3, 5):
        w, xs = rng.standard_normal((size, size)), rng.standard_normal((STEPS, size))
        assert np.allclose(compiled(w, xs), network(w, xs))


def fixed(w, xs):
    h = np.zeros(w.shape[0])
    for t in range(STEPS):
        h = np.tanh(w @ h + xs[t])
        h = h / (1.0 + h @ h)
    return h


def taps(x):
    out = np.zeros(STEPS)
    out[0], out[1] = x[0], x[1]
    for t in range(2, STEPS):
        out[t] = 0.5 * out[t - 1] - 0.2 * out[t - 2] + x[t]
    return out


def two_back(x):
    a, b = 0.0, 1.0
    for t in range(STEPS):
        a, b = b, 0.5 * a + 0.3 * b + x[t]
    return a, b


def in_place(x):
    rows = np.outer(x, x[:3])
    for t in range(1, STEPS):
        rows[t] += 0.5 * rows[t - 1]
    return rows


def backwards(x):
    y, out = 0.0, np.zeros(STEPS)
    for t in range(STEPS - 1, -1, -1):
        y = 0.9 * y + x[t]
        out[t] = y
    return out


def stacked(x):
    y, kept = x[0], []
    for value in x:
        y = np.sin(y) + value
        kept.append(y)
    return np.stack(kept)


def numbered(x):
    y = 0.0
    for t in range(STEPS):
        y = y * 0.5 + np.sin(0.1 * t) * x[t] + t
    return y, t


def of_numbers(x):
    draws = iter(np.linspace(0, 1, STEPS).tolist())
    y = 0.0
    for t in range(STEPS):
        y = y * 0.5 + x[t] * next(draws)
    return y


def object_state(x):
    class State:
        pass

    state, known = State(), {"y": 0.0}
    state.y = 0.0
    for t in range(STEPS):
        state.y = 0.5 * state.y + x[t]
        known["y"] = known["y"] * 0.25 + state.y
    state.y = state.y + 100.0
    return state.y, known["y"]


def columns(x):
    rows, y = np.outer(x, x), 0.0
    for t in range(STEPS):
        for k in range(2):
            y = np.tanh(y + rows[t, k] + rows[k, STEPS - 1 - t])
    return y


def together(x):
    y, total = 0.0, 0.0
    for number, (a, b) in enumerate(zip(x, np.cos(x), strict=False)):
        y = 0.5 * y + a * b + 0.1 * number
    for place in reversed(range(STEPS)):
        total = 0.5 * total + x[place] * y
    for value in reversed(x):
        total = np.sin(total) + value
    return y, total


def of_a_list(x):
    parts, y = [x[:3] * t for t in range(STEPS)], np.zeros(3)
    for part in parts:
        y = np.tanh(y + part)
    return y


ROLLED = [
    together,
    of_a_list,
    taps,
    two_back,
    in_place,
    backwards,
    stacked,
    numbered,
    of_numbers,
    object_state,
    columns,
]


@pytest.mark.parametrize("function", ROLLED, ids=lambda one: one.__name__)
def test_what_is_rolled(function, monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 20)
    compiled = esat.jit(function, mode="fast_compile")
    found, wanted = compiled(X.copy()), function(X.copy())
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    assert all(np.allclose(a, b, rtol=1e-12) for a, b in pairs)
    assert any(isinstance(node.op, Scan) for node in compiled.latest.graph.apply_nodes)
    assert all(reason is None for _, _, reason in loops_of(function))


def loops_of(function):
    """What became of the loops of a function of one argument."""
    seen = []
    before = rolling._roll

    def noting(nodes, trace, *more, **named):
        reason = before(nodes, trace, *more, **named)
        seen.append((None, len(nodes), reason))
        return reason

    rolling._roll = noting
    try:
        esat.jit(function, mode="fast_compile")(X.copy())
    finally:
        rolling._roll = before
    return seen


def at_ten(x):
    y = 0.0
    for t in range(STEPS):
        y = np.tanh(y + x[t]) * np.cos(y) if t != 10 else y * 2.0
    return y


COUNTED = {"n": 0}


def counter(x):
    COUNTED["n"] = 0
    y = 0.0
    for t in range(STEPS):
        COUNTED["n"] += 1
        y = y * 0.5 + x[t] if COUNTED["n"] != 15 else y - 1.0
    return y


def growing_part(x):
    y = np.zeros(STEPS)
    for t in range(STEPS):
        y[t:] = y[t:] + x[t]
    return y


def left_early(x):
    y = 0.0
    for t in range(STEPS):
        if t > 12:
            break
        y = 0.5 * y + x[t]
    return y


@pytest.mark.parametrize(
    "function", [at_ten, counter, growing_part, left_early], ids=lambda one: one.__name__
)
def test_what_is_not_rolled_is_right_as_well(function):
    compiled = esat.jit(function)
    assert np.allclose(compiled(X.copy()), function(X.copy()), rtol=1e-12)
    assert not any(isinstance(node.op, Scan) for node in compiled.latest.graph.apply_nodes)


def test_an_explanation_tells_what_became_of_loops():
    compiled = esat.jit(recurrence)
    compiled(0.7, X)
    assert f"of {STEPS} steps, is one op" in str(compiled.explain())
    compiled = esat.jit(at_ten)
    compiled(X)
    told = str(compiled.explain())
    assert "is unrolled: iterations have" in told
    assert "test_rolled_loops.py" in told
    assert "if t != 10" in told


def test_values_of_all_steps_stay_what_they_are():
    """Also such as nobody could have exchanged: the function returns what it kept on the way."""

    def kept_on_the_way(x):
        y, kept = 0.0, {}
        for t in range(STEPS):
            y = np.tanh(0.5 * y + x[t]) - 0.25 * y * y
            if t % 7 == 3:
                kept[t] = y
        return y, kept

    found, wanted = esat.jit(kept_on_the_way)(X), kept_on_the_way(X)
    assert found[0] == pytest.approx(wanted[0])
    assert found[1].keys() == wanted[1].keys()
    assert np.allclose(list(found[1].values()), list(wanted[1].values()), rtol=1e-12)


def test_an_argument_that_a_loop_writes_to_is_changed():
    def smooth(x):
        for t in range(1, STEPS):
            x[t] = 0.5 * x[t] + 0.5 * x[t - 1] + 0.01 * np.sin(x[t - 1])

    mine, wanted = X.copy(), X.copy()
    compiled = esat.jit(smooth)
    compiled(mine)
    smooth(wanted)
    assert np.allclose(mine, wanted, rtol=1e-12)
    assert is_rolled(compiled)


def paths(x):
    price = np.ones((3, len(x) + 1))
    for t in range(1, len(x) + 1):
        price[:, t] = price[:, t - 1] * np.exp(0.1 * x[t - 1]) + 0.01 * price[:, t]
    return price


def knapsack(x):
    sizes = np.abs(3 * x).astype(int) + 1
    best = np.zeros((len(x) + 1, 12))
    for i in range(1, len(x) + 1):
        for c in range(12):
            if sizes[i - 1] <= c:
                best[i, c] = max(best[i - 1, c], best[i - 1, c - sizes[i - 1]] + x[i - 1])
            else:
                best[i, c] = best[i - 1, c]
    return best


def distances(x):
    table = np.full((len(x) + 1, len(x) + 1), np.inf)
    table[0, 0] = 0
    for i in range(1, len(x) + 1):
        for j in range(1, len(x) + 1):
            table[i, j] = abs(x[i - 1] - x[-j]) + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return table


def exchanged(x):
    y = x * 1.0
    for i in range(len(x) - 1):
        kept = y.copy()
        y[i + 1] = y[i] + 0.5 * kept[i + 1]
        y[0] += kept[i + 1]
    return y


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "debug"])
@pytest.mark.parametrize("function", [paths, knapsack, distances, exchanged], ids=lambda one: one.__name__)
def test_arrays_that_steps_write_to_anywhere(function, mode):
    x = X[:20]
    jitted = esat.jit(function, mode=mode)
    for _ in range(3):
        np.testing.assert_allclose(jitted(x), function(x), rtol=1e-12)
    assert all(reason is None for _, _, reason in loops_of(function))


def test_sizes_that_steps_compute_are_those_of_numpy():
    def votes(x):
        labels = np.abs(x * 3).astype(int).reshape(8, 5)
        return np.array([np.bincount(row, minlength=12) for row in labels])

    np.testing.assert_array_equal(esat.jit(votes)(X), votes(X))


def test_an_array_of_which_steps_write_a_part_is_not_copied_in_each():
    jitted = esat.jit(distances)
    jitted(X)
    scan = next(node for node in jitted.latest.graph.outputs if isinstance(node.owner.op, Scan)).owner
    (inner,) = [node for node in scan.op.body.apply_nodes if isinstance(node.op, Scan)]
    assert rewritten(inner.op) == {0}
    (_, function) = jitted.source().split("define i32 @run(")[-2:]
    assert function.count("phi i64") == 2  # both loops, without a third that copies
    assert function.count("store double") == 1
    assert "memcpy" not in function


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_are_as_in_python(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 1)
    generator = np.random.default_rng(seed)
    program = loaded(text(generator), tmp_path, f"program_{seed}")
    given = arguments(generator)
    theirs, mine = ([one.copy() for one in given] for _ in range(2))
    try:
        wanted = program(*theirs)
    except (IndexError, StopIteration):
        return  # what Python refuses has no value to compare with
    found = esat.jit(program, mode="fast_run" if seed % 10 == 0 else "fast_compile")(*mine)
    assert difference(found, wanted) < 1e-9
    assert difference(mine, theirs) < 1e-9


def test_what_is_kept_of_each_step_in_a_list_is_one_array(monkeypatch):
    monkeypatch.setattr(rolling, "FEWEST_NODES", 20)
    compiled = esat.jit(stacked)
    assert np.allclose(compiled(X), stacked(X), rtol=1e-12)
    assert len(compiled.latest.graph.apply_nodes) < 8


@pytest.mark.parametrize("first", [False, True])
def test_several_values_of_each_step_in_a_list_are_columns_of_traces(first):
    def epidemic(s, i, x):
        kept = [[s, i, 1.0]] if first else []
        for t in range(60):
            new = 0.3 * s * i
            s, i = s - new + 0.01 * x[t, 0], i + new - 0.1 * i
            kept.append([s, i, 1.0])
        kept = np.array(kept)
        return kept, kept[:, 1].argmax()

    x = np.random.default_rng(0).normal(size=(60, 2))
    compiled = esat.jit(epidemic)
    for own, other in zip(compiled(0.9, 0.1, x), epidemic(0.9, 0.1, x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-13)
    assert len(compiled.latest.optimized.apply_nodes) < 40


def test_numbers_of_a_step_stay_numbers_of_its_body():
    """A power by a number that is known is a product; by an operand it would be a power."""

    def roots(a):
        x = a
        for _ in range(STEPS):
            x = x - (x**3 - a) / (3 * x**2)
        return x

    compiled = esat.jit(roots)
    a = np.linspace(1.0, 5.0, 20)
    assert np.allclose(compiled(a), np.cbrt(a))
    (node,) = [node for node in compiled.latest.graph.apply_nodes if isinstance(node.op, Scan)]
    assert "pow" not in str(node.op)


def substituted(a, b):
    for i in range(len(b)):
        if np.abs(a[i, i]) < 1e-8:
            raise ValueError("singular")
        b[i] = b[i] / a[i, i]
        for j in range(i + 1, len(b)):
            b[j] = b[j] - a[j, i] * b[i]
    return b


def iterated(x, steps):
    v = x * 0.5
    for _ in range(steps):
        assert v.max() < 100.0, "diverged"
        v = v * v + x
        v = np.sin(v) + 0.1 * v
    return v


def rooted(x, steps):
    for t in range(steps):
        if x[t] < 0:
            raise ValueError(f"negative at {t}: {x[t]:.1f}" if t % 2 else f"negative at {t}")
        x[t] = np.sqrt(x[t]) + 1
    return x


def raised(function, *arguments):
    try:
        function(*arguments)
    except (ValueError, AssertionError) as error:
        place = error.__traceback__
        while place.tb_next is not None:
            place = place.tb_next
        message = str(error).partition("\n")[0]  # pytest writes more to its assertions
        return type(error), message, place.tb_frame.f_code.co_name, place.tb_lineno
    return None


def test_errors_in_loops_are_those_of_the_first_step_that_has_one():
    a = np.tril(np.ones((7, 7))) + np.eye(7)
    solved = esat.jit(substituted)
    np.testing.assert_allclose(solved(a, np.arange(7.0)), substituted(a, np.arange(7.0)))
    for places in [(3,), (0, 5), (6,)]:
        bad = a.copy()
        bad[places, places] = 0.0
        for _ in range(3):
            assert raised(solved, bad, np.arange(7.0)) == raised(substituted, bad, np.arange(7.0)) != None  # noqa: E711


@pytest.mark.parametrize("steps", [3, 40, 200])
def test_assertions_stay_in_loops_that_are_one_op(steps):
    function = esat.jit(iterated, static_argnames="steps")
    x = np.linspace(-1.0, 1.0, 5)
    np.testing.assert_allclose(function(x, steps), iterated(x, steps), rtol=1e-9)
    for bad in (np.full(5, 250.0), np.array([0.0, 1.0, 500.0, 0.0, 0.0])):
        assert raised(function, bad, steps) == raised(iterated, bad, steps)
        assert raised(function, bad, steps)[:2] == (AssertionError, "diverged")
    if steps > 6:
        assert "is one op" in function.explain().loops[0]


def test_errors_tell_the_step():
    function = esat.jit(rooted, static_argnames="steps")
    x = np.arange(30.0)
    np.testing.assert_allclose(function(x.copy(), 30), rooted(x.copy(), 30))
    for places in [(8, 12), (3,), (29,)]:
        bad = x.copy()
        bad[list(places)] = -1.0
        assert raised(function, bad.copy(), 30) == raised(rooted, bad.copy(), 30)


def test_loops_of_notebooks_are_rolled():
    """IPython compiles each statement of a cell by itself, and keeps the text of the cell."""
    cell = """import numpy as np
import esat

def filtered(level, x):
    y, rows = 0.0, np.empty_like(x)
    for t in range(len(x)):
        y = level * y + x[t]
        rows[t] = y
    return rows
"""
    name = "<ipython-input-1-of-test>"
    linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
    namespace = {"__name__": "__main__"}
    for statement in ast.parse(cell).body:
        exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    x = rng.standard_normal(300)
    compiled = esat.jit(namespace["filtered"])
    np.testing.assert_allclose(compiled(0.7, x), namespace["filtered"](0.7, x), rtol=1e-13)
    assert "of 300 steps, is one op" in str(compiled.explain())
