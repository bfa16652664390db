"""Compilations whose rules run on esat's own engine, and on egglog."""

import numpy as np
import pytest

import esat
from esat.egraph.engine import Engine
from esat.egraph.preparation.prepare import PreparedProgram
from esat.engine.matching_engine import MatchingEngine
from esat.errors import ModeError


def softmax(xp, x, y):
    shifted = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return shifted / xp.sum(shifted, axis=1, keepdims=True)


def variance(xp, x, y):
    return xp.mean(x * x, axis=0) - xp.mean(x, axis=0) ** 2 + y * 0.0


def integers(xp, x, y):
    return (x > 0.5).astype("int64").sum(axis=1) * 3 - (x > 0.2).astype("int64").sum(axis=1)


def products(xp, x, y):
    return (x.T @ x) @ (x.T @ (x @ y)) / xp.sqrt(xp.sum(y * y))


CASES = [softmax, variance, integers, products]


def graph_of(case) -> esat.Graph:
    x, y = esat.matrix("x", shape=(6, 4)), esat.vector("y", shape=(4,))
    return esat.Graph([x, y], case(esat, x, y), on_unused_input="ignore")


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """The kinds of engines that hold terms."""
    used: list[type] = []
    original = PreparedProgram.engine_for

    def engine_for(program, terms):
        used.append(type(engine := original(program, terms)))
        return engine

    monkeypatch.setenv("ESAT_EGRAPH_CACHE", "0")
    monkeypatch.setattr(PreparedProgram, "engine_for", engine_for)
    return used


@pytest.mark.parametrize("mode", ["fast_run", "o3", "strict", "unsafe", "debug"])
@pytest.mark.parametrize("case", CASES)
def test_values_are_right(case, mode: str, engines: list[type]) -> None:
    function = esat.compile(graph_of(case), mode=mode)
    assert {*engines} == {MatchingEngine}
    draw = np.random.default_rng(3)
    values = draw.uniform(0.1, 1.0, (6, 4)), draw.uniform(0.1, 1.0, 4)
    np.testing.assert_allclose(function(*values), case(np, *values), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("case", CASES)
def test_the_same_graph_gives_the_same_program(case) -> None:
    first = str(esat.compile(graph_of(case)).optimized)
    for other in (softmax, products):
        esat.compile(graph_of(other))
    assert str(esat.compile(graph_of(case)).optimized) == first


def test_a_rule_that_it_does_not_know_runs_on_egglog(engines: list[type]) -> None:
    rule = '(rewrite (Exp (Tanh x)) (Sin x) :when ((= 0.0 (% 6.0 3.0))) :name "wrong-on-purpose")'
    x = esat.vector("x", shape=(3,))
    graph = esat.Graph([x], esat.exp(esat.tanh(x)))
    function = esat.compile(graph, rules=[rule])
    assert engines[-1] is Engine
    np.testing.assert_allclose(function(np.ones(3)), np.sin(np.ones(3)))


def test_users_rules_run_on_it(engines: list[type]) -> None:
    rule = '(rewrite (Exp (Tanh x)) (Sin x) :name "wrong-on-purpose")'
    x = esat.vector("x", shape=(3,))
    function = esat.compile(esat.Graph([x], esat.exp(esat.tanh(x))), rules=[rule])
    assert engines[-1] is MatchingEngine
    np.testing.assert_allclose(function(np.ones(3)), np.sin(np.ones(3)))


def test_a_match_limit_ends_it() -> None:
    mode = esat.Mode(match_limit=20)
    function = esat.compile(graph_of(products), mode=mode)
    assert function.report.saturation.stop_reason == "match limit"
    draw = np.random.default_rng(3)
    values = draw.uniform(0.1, 1.0, (6, 4)), draw.uniform(0.1, 1.0, 4)
    np.testing.assert_allclose(function(*values), products(np, *values), rtol=1e-10)


def test_there_are_two_engines() -> None:
    with pytest.raises(ModeError, match="engine"):
        esat.Mode(engine="egg")


@pytest.mark.parametrize("count", [13, 65, 100])
def test_terms_of_any_length_are_loaded(count: int) -> None:
    """Longer than a row of the loader, than what an action computes, and than a table is wide."""
    inputs = [esat.vector(f"v{number}") for number in range(count)]
    outputs = [sum(inputs[1:], inputs[0]), esat.concatenate(inputs)]
    values = [np.full(2, float(number)) for number in range(count)]
    total, joined = esat.compile(esat.Graph(inputs, outputs))(*values)
    np.testing.assert_array_equal(total, sum(values))
    np.testing.assert_array_equal(joined, np.concatenate(values))
