"""Results kept from call to call: computed once, and never out of date."""

import threading

import numpy as np
import pytest

import esat
from esat.extract.prices import lasting
from esat.runtime import invariants
from esat.runtime.executable import Executable

N = 120


@pytest.fixture(autouse=True)
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small results are kept, too."""
    monkeypatch.setattr(lasting, "SMALLEST_SAVING", 1e-6)


def matrix(seed: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, n)) / n


def inverse_applied() -> tuple[esat.SharedVariable, Executable]:
    """x -> (exp(w) w) + x: the product depends on w alone."""
    x, w = esat.matrix("x"), esat.shared(matrix(0), name="w")
    return w, esat.compile(esat.Graph([x], [(esat.exp(w) @ w) + x]))


def expected(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.exp(w) @ w + x


def computed(f: Executable) -> int:
    (value,) = f.kept
    return value.computed


def test_computed_once_for_many_calls() -> None:
    w, f = inverse_applied()
    for seed in range(5):
        np.testing.assert_allclose(f(matrix(seed)), expected(w.get_value(), matrix(seed)))
    assert computed(f) == 1
    assert not any("exp" in str(node.op) for node in f.graph.toposort())


def test_computed_anew_after_set_value() -> None:
    w, f = inverse_applied()
    x = matrix(9)
    f(x)
    for seed, n in ((1, N), (2, N), (3, 7)):
        w.set_value(matrix(seed, n))
        given = x[:n, :n].copy()
        for _ in range(3):
            np.testing.assert_allclose(f(given), expected(matrix(seed, n), given))
    assert computed(f) == 4


def test_computed_anew_after_updates_of_another_function() -> None:
    w, f = inverse_applied()
    x = matrix(9)
    step = esat.compile(esat.Graph([], [], updates={w: w * 0.5 + 0.01}))
    replaced = esat.compile(esat.Graph([], [], updates={w: w.T @ w}))
    value = matrix(0)
    for _ in range(3):
        np.testing.assert_allclose(f(x), expected(value, x))
        step()
        value = value * 0.5 + 0.01
        np.testing.assert_allclose(f(x), expected(value, x))
        np.testing.assert_allclose(f(x), expected(value, x))
        replaced()
        value = value.T @ value
    assert computed(f) == 6


def test_lent_memory_may_change_unnoticed() -> None:
    w, f = inverse_applied()
    x = matrix(9)
    f(x)
    lent = w.get_value(borrow=True)
    for factor in (2.0, 0.5, -1.0):
        lent *= factor
        np.testing.assert_allclose(f(x), expected(lent, x))
    w.set_value(matrix(3))
    before = computed(f)
    for _ in range(3):
        np.testing.assert_allclose(f(x), expected(matrix(3), x))
    assert computed(f) == before + 1  # what was lent is w's no more
    own = matrix(4)
    w.set_value(own, borrow=True)
    for factor in (1.0, 3.0):
        own *= factor
        np.testing.assert_allclose(f(x), expected(own, x))


def test_what_the_function_updates_itself_is_not_kept() -> None:
    x, w = esat.matrix("x"), esat.shared(matrix(0))
    f = esat.compile(esat.Graph([x], [(esat.exp(w) @ w) + x], updates={w: w + x}))
    value = matrix(0)
    for seed in range(3):
        np.testing.assert_allclose(f(matrix(seed)), expected(value, matrix(seed)))
        value = value + matrix(seed)
    assert f.kept == ()


def test_one_part_kept_while_another_is_updated() -> None:
    x, w, b = esat.matrix("x"), esat.shared(matrix(0)), esat.shared(matrix(1))
    f = esat.compile(esat.Graph([x], [(esat.exp(w) @ w) + x @ b], updates={b: b + 1.0}))
    for turn in range(3):
        np.testing.assert_allclose(f(matrix(5)), expected(matrix(0), matrix(5) @ (matrix(1) + turn)))
    assert computed(f) == 1


def test_kept_results_are_nobody_elses() -> None:
    x, w = esat.matrix("x"), esat.shared(matrix(0))
    product = esat.exp(w) @ w
    state = esat.shared(np.zeros((N, N)))
    f = esat.compile(esat.Graph([x], [product, product + x], updates={state: product}))
    right = expected(matrix(0), np.zeros((N, N)))
    for _ in range(2):
        returned, _sum = f(np.ones((N, N)))
        returned[:] = np.nan
        held = state.get_value(borrow=True)
        np.testing.assert_allclose(held, right)
        held[:] = np.nan
        for value in f.kept:
            value.get_value(borrow=True)[:] = np.nan
    assert len(f.kept) == 1
    given = np.empty((N, N)), np.empty((N, N))
    f(np.ones((N, N)), out=given)
    given[0][:] = 0.0
    np.testing.assert_allclose(f(np.ones((N, N)))[0], right)


def test_views_of_kept_results() -> None:
    x, w = esat.matrix("x"), esat.shared(matrix(0))
    f = esat.compile(esat.Graph([x], [esat.tanh(esat.exp(w) @ w).T @ x]))
    for _ in range(2):
        np.testing.assert_allclose(f(matrix(1)), np.tanh(np.exp(matrix(0)) @ matrix(0)).T @ matrix(1))
    assert computed(f) == 1


def test_large_constants() -> None:
    x, c = esat.matrix("x"), esat.constant(matrix(0, 600))
    f = esat.compile(esat.Graph([x], [(esat.exp(c) @ c) + x]))
    for _ in range(2):
        np.testing.assert_allclose(f(matrix(1, 600)), expected(matrix(0, 600), matrix(1, 600)))
    assert all(value.computed == 1 for value in f.kept)
    assert not any("exp" in str(node.op) for node in f.graph.toposort())


def test_random_values_are_drawn_anew() -> None:
    x, w = esat.vector("x"), esat.shared(np.ones(5000))
    stream = esat.random.RandomStream(3)
    noise = esat.exp(esat.exp(stream.normal(size=(5000,)))) + esat.exp(esat.exp(w))
    f = esat.compile(esat.Graph([x], [noise + x], updates=stream.updates()))
    rng = np.random.default_rng(3)
    for _ in range(2):
        right = np.exp(np.exp(rng.normal(size=5000))) + np.exp(np.exp(1.0))
        np.testing.assert_allclose(f(np.zeros(5000)), right)


def test_a_mode_without_and_branches_not_taken() -> None:
    x, w = esat.matrix("x"), esat.shared(matrix(0))
    graph = esat.Graph([x], [(esat.exp(w) @ w) + x])
    assert esat.compile(graph, mode=esat.Mode("fast_run", invariants=False)).kept == ()
    condition = esat.scalar("condition", dtype="bool")
    branch = esat.Graph([condition, x], [esat.ifelse(condition, esat.linalg.inv(w) @ w, x)])
    f = esat.compile(branch)
    assert f.kept == ()
    w.set_value(np.zeros((N, N)))  # without an inverse, but the branch is not taken
    np.testing.assert_array_equal(f(np.False_, matrix(2)), matrix(2))


def test_an_error_is_raised_at_each_call_and_passes() -> None:
    x, w = esat.matrix("x"), esat.shared(np.zeros((N, N)))
    f = esat.compile(esat.Graph([x], [esat.linalg.inv(w) + x]))
    assert len(f.kept) == 1
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            f(matrix(0))
    w.set_value(np.eye(N))
    np.testing.assert_allclose(f(matrix(0)), np.eye(N) + matrix(0))


def test_room_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invariants, "LARGEST_BYTES", N * N * 8 - 1)
    assert inverse_applied()[1].kept == ()


def test_in_threads() -> None:
    w, f = inverse_applied()
    x = matrix(5)
    right = [expected(matrix(seed), x) for seed in range(4)]
    wrong: list[int] = []

    def call() -> None:
        for _ in range(50):
            result = f(x)
            if not any(np.allclose(result, one) for one in right):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        w.set_value(matrix(turn % 4))
    for thread in threads:
        thread.join()
    assert not wrong
    w.set_value(matrix(2))
    np.testing.assert_allclose(f(x), right[2])
