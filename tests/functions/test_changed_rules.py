"""Rules and optimizers that are added or removed count for functions that were compiled before.

The rule is wrong for negative numbers, so that it shows whether a program was made with it.
"""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from caches import with_rules

import esat
from esat.classic.optimizers.local import local_optimizer

X = np.array([-2.0, 3.0])
RULE = '(rewrite (Sqrt (Sqr x)) x :name "of-changed-rules")'


def root(x):
    return np.sqrt(x**2)


def total(x):
    return root(x).sum()


def taking(function, call):
    """``call`` with a function of its own for the first argument."""
    return lambda x: call(function, x)


def functions():
    """Functions of each kind, whose values show which rules they were compiled with."""
    inner = esat.jit(root)
    return {
        "jit": esat.jit(root),
        "symbolic": esat.jit(root, shapes="symbolic"),
        "o3": esat.jit(root, mode="o3"),
        "list": taking(esat.jit(lambda parts: root(parts[0])), lambda f, x: f([x])),
        "several": taking(esat.jit(lambda x: (root(x), x * 2.0)), lambda f, x: f(x)[0]),
        "number": taking(esat.jit(lambda x, n: root(x) * n), lambda f, x: f(x, 1.0)),
        "static": taking(esat.jit(lambda x, n: root(x) * n, static_argnames="n"), lambda f, x: f(x, 1.0)),
        "known number": taking(esat.jit(lambda x, n: root(x) if n else x), lambda f, x: f(x, 1)),
        "keyword": taking(esat.jit(root), lambda f, x: f(x=x)),
        "method": Squared().root,
        "nested": esat.jit(lambda x: inner(x)),  # noqa: PLW0108
        "vmap": esat.vmap(root),
        "grad": taking(esat.grad(total), lambda f, x: f(x) * x),
        "value_and_grad": taking(esat.value_and_grad(total), lambda f, x: f(x)[1] * x),
        "jacobian": taking(esat.jacobian(root), lambda f, x: np.diag(f(x)) * x),
        "jvp": esat.jit(lambda x: esat.jvp(root, (x,), (x,))[1]),
        "vjp": lambda x: esat.vjp(root, x)[1](np.ones(2))[0] * x,
    }


class Squared:
    @esat.jit
    def root(self, x):
        return root(x)


KINDS = sorted(functions())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calls", [1, 3])
def test_rules_that_come_and_go(kind, calls):
    function = functions()[kind]
    for _ in range(2):
        for _ in range(calls):
            np.testing.assert_allclose(function(X), np.abs(X), rtol=1e-15)
        with esat.rules.add(RULE):
            for _ in range(calls):
                np.testing.assert_allclose(function(X), X, rtol=1e-15)
    np.testing.assert_allclose(function(X), np.abs(X), rtol=1e-15)


@local_optimizer([esat.sqrt], name="root_of_square")
def root_of_square(node):
    below = node.inputs[0].owner
    return [below.inputs[0]] if below is not None and below.op.name in ("sqr", "pow") else False


@pytest.mark.parametrize("kind", ["jit", "symbolic", "grad", "vmap", "number"])
def test_optimizers_that_come_and_go(kind):
    function, database = functions()[kind], esat.optdb["canonicalize"]
    np.testing.assert_allclose(function(X), np.abs(X), rtol=1e-15)
    database.register("root_of_square", root_of_square)
    try:
        np.testing.assert_allclose(function(X), np.abs(X), rtol=1e-15)
        database.add_tags("root_of_square", "fast_run")
        np.testing.assert_allclose(function(X), X, rtol=1e-15)
        database.remove_tags("root_of_square", "fast_run")
        np.testing.assert_allclose(function(X), np.abs(X), rtol=1e-15)
        database.add_tags("root_of_square", "fast_run")
        np.testing.assert_allclose(function(X), X, rtol=1e-15)
    finally:
        database.remove("root_of_square")
    np.testing.assert_allclose(function(X), np.abs(X), rtol=1e-15)


def test_what_was_compiled_by_hand_stays():
    x = esat.vector("x")
    before = esat.compile(esat.Graph([x], [esat.sqrt(x**2)]))
    with esat.rules.add(RULE):
        np.testing.assert_array_equal(before(X), np.abs(X))
        within = esat.compile(esat.Graph([x], [esat.sqrt(x**2)]))
    np.testing.assert_array_equal(within(X), X)


def test_programs_are_not_made_twice_without_a_change():
    made = []
    function = esat.jit(lambda x: made.append(1) or root(x))
    for _ in range(5):
        function(X)
    assert len(made) == 1


def test_changes_while_other_threads_call():
    function, stop, wrong = esat.jit(root), threading.Event(), []

    def call():
        while not stop.is_set():
            found = function(X)
            if not (np.array_equal(found, np.abs(X)) or np.array_equal(found, X)):
                wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        with esat.rules.add(RULE):
            np.testing.assert_array_equal(function(X), X)
        np.testing.assert_array_equal(function(X), np.abs(X))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    np.testing.assert_array_equal(function(X), np.abs(X))


PROGRAM = """
import numpy as np
import esat
x = esat.vector("x")
compiled = esat.compile(esat.Graph([x], [esat.sqrt(x**2)]))
function = esat.jit(lambda x: np.sqrt(x**2))
X = np.array([-2.0, 3.0])
for _ in range(2):
    assert (function(X) == [2, 3]).all(), "before"
    assert (compiled(X) == [2, 3]).all(), "compiled"
    with esat.rules.add('(rewrite (Sqrt (Sqr x)) x :name "of-changed-rules")'):
        assert (function(X) == X).all(), "within"
        assert (compiled(X[:1]) == [2]).all(), "compiled, another shape"
    assert (function(X) == [2, 3]).all(), "after"
print("right")
"""


def test_recorded_programs(tmp_path, monkeypatch):
    """The second process runs what the first one recorded."""
    monkeypatch.setenv("ESAT_CACHE_DIR", str(with_rules(tmp_path)))
    tmp_path.chmod(0o700)
    for _ in range(3):
        done = subprocess.run(  # noqa: PLW1510
            [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=300
        )
        assert done.stdout == "right\n", done.stderr
