"""Rules of rule files, read as replacements."""

import numpy as np
import pytest

import esat
from esat.classic import EquilibriumOptimizer
from esat.classic.rule_phase import RuleOptions, RulePhase
from esat.classic.rule_rewriter import RuleContext, RuleRewriter
from esat.classic.standard import standard_database
from esat.egraph.constructors import op_signature
from esat.graph import FunctionGraph
from esat.graph.evaluate import evaluate
from esat.rules.database import RuleDatabase
from esat.rules.replacement import replacement_of


def rewriters(text):
    rules = RuleDatabase()
    rules.add(text)
    context = RuleContext(op_signature())
    return [RuleRewriter(rule, context) for rule in rules.list() if replacement_of(rule) is not None]


def optimize(text, inputs, output):
    graph = FunctionGraph(inputs, [output])
    optimizer = RulePhase(rewriters(text))
    optimizer.optimize(graph)
    return str(graph)


@pytest.fixture
def xy():
    return [esat.vector("x"), esat.vector("y")]


def test_left_side_becomes_right_side(xy):
    x, y = xy
    rule = '(rewrite (Exp (Neg x)) (Reciprocal (Exp x)) :name "r")'
    assert optimize(rule, [x, y], esat.exp(-x) * y) == "[mul(reciprocal(exp(x)), y)]"
    assert optimize(rule, [x], esat.exp(x)) == "[exp(x)]"


def test_operands_of_commutative_ops_in_either_order(xy):
    x, y = xy
    rule = '(rewrite (Add (Exp a) (Log b)) (Sub a b) :name "r")'
    assert optimize(rule, xy, esat.exp(x) + esat.log(y)) == "[sub(x, y)]"
    assert optimize(rule, xy, esat.log(y) + esat.exp(x)) == "[sub(x, y)]"
    rule = '(rewrite (Sub (Exp a) (Log b)) (Sub a b) :name "r")'
    assert optimize(rule, xy, esat.log(y) - esat.exp(x)) == "[sub(log(y), exp(x))]"


def test_conditions(xy):
    x, _ = xy
    rule = '(rewrite (Pow x z) (Sqr x) :when ((= (val z) 2.0)) :name "r")'
    assert optimize(rule, [x], esat.pow(x, 2.0)) == "[sqr(x)]"
    assert "pow" in optimize(rule, [x], esat.pow(x, 3.0))
    rule = '(rewrite (Abs x) x :when ((nonnegative x)) :name "r")'
    assert optimize(rule, [x], esat.abs(esat.exp(x))) == "[exp(x)]"
    assert optimize(rule, [x], esat.abs(esat.sin(x))) == "[abs(sin(x))]"
    rule = '(rewrite (Exp x) (Neg x) :when ((<= (dt x) 10)) :name "r")'
    narrow = esat.vector("n", dtype="float32")
    assert optimize(rule, [narrow], esat.exp(narrow)) == "[neg(n)]"
    assert optimize(rule, [x], esat.exp(x)) == "[exp(x)]"


def test_reductions_whose_axes_were_dropped():
    x = esat.matrix("x")
    rule = '(rewrite (ReduceSum (Neg x) m) (Neg (ReduceSum x m)) :name "r")'
    assert optimize(rule, [x], esat.sum(-x, axis=0)) in (
        "[neg(sum{0}(x))]",
        "[dimshuffle{1}(neg(sum{0, keepdims}(x)))]",
    )


def test_a_replacement_of_another_type_is_not_made():
    row = esat.tensor("row", shape=(1, None))
    matrix = esat.matrix("m")
    rule = '(rewrite (Mul (Exp a) b) a :name "r")'
    assert "mul" in optimize(rule, [row, matrix], esat.exp(row) * matrix)
    assert optimize(rule, [row, matrix], esat.exp(matrix) * row) == "[m]"


def test_rules_that_are_no_replacements_are_left_to_saturation():
    database = RuleDatabase()
    database.load('(relation marked (T)) (rule ((= e (Exp x))) ((marked x)) :name "fact")')
    (rule,) = database.list()
    assert replacement_of(rule) is None


def test_a_rule_that_costs_more_is_declined_unless_it_stabilizes():
    rules = RuleDatabase()
    rules.load('(rewrite (Exp x) (Exp (Neg (Neg (Tanh x)))) :name "dear")', tags=["canonicalize", "fast_run"])
    rules.load(
        """(ruleset stable :tags (stabilize fast_run))
           (rewrite (Log x) (Tanh (Tanh x)) :subsume :ruleset stable :name "stable")"""
    )
    x = esat.vector("x")
    graph = FunctionGraph([x], [esat.exp(x), esat.log(x)])
    standard_database(rules).query(esat.Query(["fast_run"]), options=RuleOptions()).optimize(graph)
    assert str(graph) == "[exp(x), tanh(tanh(x))]"


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    x, y = esat.matrix("x"), esat.matrix("y")
    pool = [x, y, esat.constant(2.0), x.sum(axis=0), y.max(axis=1, keepdims=True)]
    unary = [esat.exp, esat.neg, esat.sqr, esat.tanh, esat.abs, esat.sigmoid, esat.log1p]
    binary = [esat.add, esat.sub, esat.mul, esat.maximum]
    for _ in range(25):
        one, other = (pool[int(index)] for index in rng.integers(0, len(pool), 2))
        if rng.random() < 0.4:
            pool.append(unary[int(rng.integers(len(unary)))](esat.tanh(one)))
        elif rng.random() < 0.2 and one.tensor_type.ndim == 2:
            pool.append(esat.sum(one, axis=int(rng.integers(2))))
        else:
            pool.append(binary[int(rng.integers(len(binary)))](one, other))
    graph = esat.Graph([x, y], [*pool[-4:], x * y]).function_graph()
    values = [rng.uniform(0.5, 1.5, (3, 3)) for _ in range(2)]
    expected = evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
    esat.optdb.query(esat.Query(["fast_run"])).optimize(graph)
    found = evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


def test_names_are_those_of_the_rules():
    (rewriter,) = rewriters('(rewrite (Exp x) x :name "named")')
    assert str(rewriter) == "named"
    assert EquilibriumOptimizer([rewriter]).summary()[1] == "  named"
