"""Compiled functions are pickled and copied: what they were compiled from travels, and is compiled again."""

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import esat
from esat.codegen import cache
from esat.graph import FunctionGraph
from esat.rules import RULES

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickled": lambda value: pickle.loads(pickle.dumps(value)),
    "deeply copied": copy.deepcopy,
    "copied": copy.copy,
}
X = np.array([[0.25, 1.0, -2.0], [3.0, 0.5, 1.5]])


def step(mode: Any = "fast_run", **options: Any) -> tuple[esat.Executable, Any]:
    """A function with an update, and the shared variable that it updates."""
    x, w = esat.matrix("x"), esat.shared(np.array([1.0, 2.0, 3.0]), name="w")
    graph = esat.Graph([x], [esat.exp(x @ w).sum(), esat.sin(x)], updates={w: w * 0.5})
    return esat.compile(graph, mode, **options), w


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("mode", ["fast_run", "greedy", "debug", esat.Mode("fast_run", variants=0)], ids=str)
def test_copies_compute_the_same_with_shared_variables_of_their_own(how: str, mode: Any) -> None:
    function, w = step(mode)
    function(X)
    other = COPIES[how](function)
    (mine,) = other.updated
    assert type(other) is type(function)
    assert (mine is w) == (how == "copied")
    np.testing.assert_array_equal(mine.get_value(), [0.5, 1.0, 1.5])
    for result, wanted in zip(other(X), (np.exp(X @ [0.5, 1.0, 1.5]).sum(), np.sin(X)), strict=True):
        np.testing.assert_allclose(result, wanted)
    np.testing.assert_array_equal(mine.get_value(), [0.25, 0.5, 0.75])
    np.testing.assert_array_equal(w.get_value(), mine.get_value() if mine is w else [0.5, 1.0, 1.5])


def test_machine_code_and_choices_are_the_same() -> None:
    x, y = esat.vector("x"), esat.matrix("y")
    function = esat.compile(esat.Graph([x, y], esat.tanh(y @ x)), shapes={y: (300, 40), x: (40,)}, donate=[x])
    before = cache.misses()
    other = COPIES["pickled"](function)
    assert cache.misses() == before
    assert other.source() == function.source()
    assert [str(one) for one in other.donated] == ["x"]
    assert other.report.cost_after == function.report.cost_after


def test_functions_that_are_pickled_together_share_what_they_shared() -> None:
    w = esat.shared(np.array([2.0]), name="w")
    double = esat.compile(esat.Graph([], w * 3.0, updates={w: w * 2.0}), "greedy")
    read = esat.compile(esat.Graph([], w + 0.0), "greedy")
    other_double, other_read = COPIES["pickled"]((double, read))
    other_double()
    assert (other_read(), read()) == (4.0, 2.0)


def test_rules_travel_along_and_others_stay_out() -> None:
    x = esat.vector("x")
    wrong = '(rewrite (Arctan x) (Fill x (K 7.0 d)) :when ((= d (dt x))) :name "added-of-copies")'
    graph = esat.Graph([x], esat.arctan(x))
    with RULES.add(wrong):
        added = esat.compile(graph)
    own = esat.compile(graph, rules=wrong)
    plain = esat.compile(graph)
    sevens, values = np.full(2, 7.0), np.arctan(np.ones(2))
    for function, wanted in ((added, sevens), (own, sevens), (plain, values)):
        data = pickle.dumps(function)
        np.testing.assert_allclose(pickle.loads(data)(np.ones(2)), wanted)
        with RULES.add(wrong):
            np.testing.assert_allclose(pickle.loads(data)(np.ones(2)), wanted)


def test_graphs_that_are_changed_later_do_not_change_copies() -> None:
    x = esat.vector("x")
    graph = FunctionGraph([x], [esat.exp(x)])
    function = esat.compile(graph)
    graph.replace(graph.outputs[0], graph.inputs[0])
    np.testing.assert_allclose(COPIES["pickled"](function)(np.ones(2)), np.exp(np.ones(2)))


def test_programs_within_programs_are_copied() -> None:
    x, a = esat.vector("x"), esat.shared(np.diag([2.0, 3.0]), name="a")
    function = esat.compile(esat.Graph([x], esat.linalg.inv(a @ a) @ x))
    graph = COPIES["pickled"](function.graph)
    (shared,) = graph.shared_variables
    shared.set_value(np.diag([1.0, 2.0]))
    np.testing.assert_allclose(esat.compile(graph)(np.ones(2)), [1.0, 0.25])
    np.testing.assert_allclose(function(np.ones(2)), [1 / 4, 1 / 9])


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_reports_and_profiles_are_pickled(mode: str) -> None:
    function, _ = step(mode)
    function.measure()
    function(X)
    for how in COPIES.values():
        assert str(how(function.report)) == str(function.report)
        assert str(how(function.profile)) == str(function.profile)
    if mode == "fast_run":
        assert str(COPIES["pickled"](function.report).explain()) == str(function.explain())


def apply(task: tuple[esat.Executable, np.ndarray]) -> Any:
    """In another process."""
    function, values = task
    return function(values)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_functions_go_to_other_processes(method: str) -> None:
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], esat.exp(x) + x * 3.0))
    with multiprocessing.get_context(method).Pool(1) as pool:
        for number, result in enumerate(pool.map(apply, [(function, np.full(3, k)) for k in (0.0, 1.0)])):
            np.testing.assert_allclose(result, np.exp(np.full(3, number)) + 3.0 * number)


def made_there(values: np.ndarray) -> tuple[esat.Executable, Any, str]:
    """A function that another process compiles and calls, and sends back with what it tells of itself."""
    function, _ = step()
    return function, function(values), str(function.report)


def test_functions_and_their_errors_come_back_from_other_processes() -> None:
    x = esat.matrix("x")
    product = esat.compile(esat.Graph([x], x @ np.ones(3)))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        function, results, report = pool.apply(made_there, (X,))
        message = r"inner sizes 2 and 3 do not match\n  at .*test_copies\.py"
        with pytest.raises(esat.ShapeError, match=message):
            pool.apply(apply, ((product, X.T),))
        # As joblib hands on large arguments: mapped from files, and not to be written to.
        fixed = X.copy()
        fixed.flags.writeable = False
        np.testing.assert_array_equal(pool.apply(apply, ((product, fixed),)), product(X))
    assert str(function.report) == report
    (mine,) = function.updated
    np.testing.assert_array_equal(mine.get_value(), [0.5, 1.0, 1.5])
    mine.set_value(np.array([1.0, 2.0, 3.0]))
    for result, wanted in zip(function(X), results, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_several_threads_take_one_function_apart() -> None:
    """As the workers of Dask do."""
    data = pickle.dumps(step("fast_run")[0])
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: pickle.loads(data)(X), range(8)))
    for result in results:
        np.testing.assert_allclose(result[0], np.exp(X @ [1.0, 2.0, 3.0]).sum())


ERRORS = [one for one in vars(esat.errors).values() if isinstance(one, type) and issubclass(one, Exception)]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_are_pickled(protocol: int) -> None:
    given = [one("op(vector): reason\n  at file:1") for one in ERRORS]
    for error in (*given, esat.RuleError("reason", "rules.egg", 3, 4)):
        other = pickle.loads(pickle.dumps(error, protocol))
        assert type(other) is type(error)
        assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))
