"""From a saturated graph to the choice: the graph as it was written is always among the candidates."""

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.extract.choice.initial import initial_choice
from esat.extract.choice.selection import Problem
from esat.extract.extraction import SUPERSEDED_PENALTY, SaturatedGraph, extract
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.extract.prices.pricing import predicted_seconds
from esat.extract.verify import verify_selection
from esat.graph.op import is_constant
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query


def saturated_outputs(*outputs: esat.Variable, rounds: int = 4) -> SaturatedGraph:
    inputs = [leaf for leaf in esat.graph.inputs_of(outputs) if not is_constant(leaf)]
    graph = esat.Graph(inputs, list(outputs)).function_graph()
    program = program_for(RULES.query(Query(include=("fast_run",))))
    return saturated(encode(graph), program, Budgets(20_000, 10.0, rounds))[0]


def random_outputs(seed: int) -> list[esat.Variable]:
    rng = np.random.default_rng(seed)
    pool = [esat.matrix("x"), esat.matrix("y"), esat.row("r"), esat.scalar("s")]
    for _ in range(14):
        left, right = (pool[index] for index in rng.integers(len(pool), size=2))
        make = rng.integers(7)
        if make < 4:
            pool.append([left + right, left - right, left * right, left / right][make])
        elif make == 4:
            pool.append(esat.tanh(left))
        elif make == 5:
            pool.append(left - 2.0 * right)
        else:
            pool.append(left.sum())
    return [*pool[-3:], sum(pool[5:8], pool[4])]


@pytest.mark.parametrize("seed", range(12))
def test_never_predicted_to_be_slower_than_as_written(seed: int) -> None:
    graph = saturated_outputs(*random_outputs(seed))
    model = CostModel(MachineProfile(), graph.terms.opaque)
    found = extract(graph, model)
    verify_selection(graph.arrays, found.costs + found.penalties, graph.roots, found.selection)
    assert found.selection.cost < SUPERSEDED_PENALTY
    initial = initial_choice(graph.arrays, graph.terms, graph.plan)
    problem = Problem.of(graph.arrays, found.costs, graph.roots)
    written = problem.cost_of(problem.live(initial))  # complete: else this raises
    assert found.seconds <= written * (1 + 1e-12)
    assert written <= predicted_seconds(graph.terms, model) * (1 + 1e-9)


def test_a_replaced_form_comes_back_in_no_method() -> None:
    x = esat.matrix("x")
    graph = saturated_outputs(esat.log(esat.exp(x).sum(axis=1, keepdims=True)))
    model = CostModel(MachineProfile(), graph.terms.opaque)
    for method in ("tree", "area", "optimal"):
        found = extract(graph, model, method=method)
        assert "LogSumExp" in {term.constructor for term in found.terms()[0].terms}


def test_marks_of_what_was_replaced_are_no_ops() -> None:
    """A stabilized sum of exponentials beside parts of arrays: the mark has as many attributes as an op."""
    x, m, s = esat.tensor("x", shape=(40,)), esat.tensor("m", shape=(2,)), esat.tensor("s", shape=(2,))
    terms = [-0.5 * ((x - m[i]) / s[i]) ** 2 - esat.log(s[i]) for i in range(2)]
    loss = esat.log(esat.exp(terms[0]) + esat.exp(terms[1])).sum()
    outputs = [loss, esat.grad(loss, m), esat.grad(loss, s)]
    values = [np.linspace(-1.0, 1.0, 40), np.array([0.2, 0.7]), np.array([0.5, 1.5])]
    results = esat.compile(esat.Graph([x, m, s], outputs))(*values)
    wanted = esat.evaluate(outputs, dict(zip([x, m, s], values, strict=True)))
    for result, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-10)
