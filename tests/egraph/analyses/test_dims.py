"""Sizes of axes: what is known to be equal, and the one rule that depends on it."""

import numpy as np
import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.language.loader import flatten, load
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import Budgets
from esat.graph import FunctionGraph, TensorType
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query


def fixed(name, *shape):
    return TensorType("float64", shape=shape).make_variable(name)


def value(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def optimized(inputs, output):
    function = esat.compile(esat.Graph(inputs, output))
    return function, [node.op.name for node in function.optimized.toposort()]


def test_sums_over_axes_of_other_sizes_stay_apart():
    x, y = fixed("x", 64, 128), fixed("y", 128, 64)
    function, names = optimized([x, y], esat.sum(x) + esat.sum(y))
    assert names.count("sum") == 2
    a, b = value(64, 128), value(128, 64, seed=1)
    np.testing.assert_allclose(function(a, b), a.sum() + b.sum())


def test_sums_over_axes_of_unknown_sizes_stay_apart():
    x, y = esat.matrix("x"), esat.matrix("y")
    function, names = optimized([x, y], esat.sum(x, axis=0) + esat.sum(y, axis=0))
    assert names.count("sum") == 2
    a, b = value(64, 128), value(128, 128, seed=1)
    np.testing.assert_allclose(function(a, b), a.sum(0) + b.sum(0))


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sums_over_equal_axes_are_summed_at_once(axis):
    x, y, z = fixed("x", 64, 128), fixed("y", 64, 128), fixed("z", 64, 128)
    total = esat.sum(x, axis=axis) + esat.sum(y, axis=axis) - esat.sum(z, axis=axis)
    function, names = optimized([x, y, z], total)
    assert names.count("sum") == 1
    a, b, c = (value(64, 128, seed=seed) for seed in range(3))
    np.testing.assert_allclose(function(a, b, c), a.sum(axis) + b.sum(axis) - c.sum(axis))


def test_sizes_pass_through_ops():
    x, y = fixed("x", 64, 128), fixed("y", 128, 64)
    function, names = optimized([x, y], esat.sum(esat.exp(x), axis=0) + esat.sum(esat.tanh(y.T), axis=0))
    assert names.count("sum") == 1
    a, b = value(64, 128), value(128, 64, seed=1)
    np.testing.assert_allclose(function(a, b), np.exp(a).sum(0) + np.tanh(b.T).sum(0))


def test_a_symbol_is_equal_to_itself():
    x = esat.matrix("x")
    function, names = optimized([x], esat.sum(esat.exp(x), axis=0) + esat.sum(esat.sin(x), axis=0))
    assert names.count("sum") == 1
    a = value(5, 7)
    np.testing.assert_allclose(function(a), np.exp(a).sum(0) + np.sin(a).sum(0))


def shapes_of_classes(output, inputs):
    """Sizes that the saturated e-graph knows of the output's class: axis -> the size's own class."""
    terms = encode(FunctionGraph(inputs, [output], clone=False))
    program = program_for(RULES.query(Query(include=("fast_run",))))
    engine = prepared_engine(program, terms)
    load(engine, terms, flatten(terms))
    saturate(engine, prepared(program).schedule_for(terms), Budgets(), program.constructors)
    tables = engine.freeze().functions
    numbers = engine.values.value_to_i64
    root = next(hash(row.output) for row in tables["N"].rows if numbers(row.inputs[0]) == terms.roots[0])
    known = {hash(row.output): numbers(row.inputs[0]) for row in tables["DK"].rows}
    dims = [row for row in tables["dim"].rows if hash(row.inputs[0]) == root]
    return {numbers(row.inputs[1]): known.get(hash(row.output)) for row in dims}


def test_only_axes_that_may_differ_from_one_have_sizes():
    x, row = fixed("x", 4, 3), fixed("row", 1, 3)
    total = esat.sum(x, axis=0, keepdims=True) + esat.sum(x * row, axis=0, keepdims=True)
    assert shapes_of_classes(total, [x, row]) == {1: 3}


def test_that_sizes_are_wanted_is_found_once_however_many_sums_there_are():
    vectors = [esat.vector(f"x{number}") for number in range(12)]
    outputs = [esat.sum(esat.sin(one) + esat.cos(one)) for one in vectors]
    graph = esat.Graph(vectors, outputs).function_graph()
    _, report = saturated(encode(graph), program_for(RULES.query(Query(include=("fast_run",)))), Budgets())
    matches = {rule.name: rule.matches for rule in report.rules}
    assert matches["sizes-summed"] >= len(vectors)
    assert matches["sizes-wanted"] == 1
