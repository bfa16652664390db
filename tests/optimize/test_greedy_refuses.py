"""Greedy modes tell of rules that only an e-graph can follow, and know what rules ask for."""

import warnings

import numpy as np
import pytest

import esat
from esat.errors import EsatWarning, RuleError

x = esat.vector("x")

RELATION = """
(relation tame (T))
(rule ((= e (Sin x))) ((tame e)) :name "sines-are-tame")
(rewrite (Erf x) x :when ((tame x)) :name "erf-of-tame")
"""
FOR_EGRAPHS = {
    "a relation": (RELATION, "sines-are-tame.*says something else|erf-of-tame.*asks for"),
    "a relation that is asked": (
        '(relation tame (T)) (rewrite (Erf x) x :when ((tame x)) :name "erf-of-tame")',
        "erf-of-tame.*asks for .tame x",
    ),
    "a function": (
        '(function depth (T) i64 :merge old) (rewrite (Erf x) x :when ((= 1 (depth x))) :name "shallow")',
        "shallow.*asks for .depth x",
    ),
    "a fact": ('(rule ((= e (Erfinv x))) ((positive e)) :name "wrong")', "wrong.*says something else"),
    "two equalities": (
        '(rule ((= e (Erf x)) (= f (Erfc x))) ((union e x) (union f x)) :name "both")',
        "both.*says something else",
    ),
    "a primitive": (
        '(rewrite (Erf x) x :when ((= 1 (% (to-i64 (val x)) 2))) :name "one")',
        "one.*asks for .%",
    ),
}


@pytest.mark.parametrize("name", FOR_EGRAPHS)
def test_what_greedy_rewriting_cannot_do_is_refused(name):
    rules, reason = FOR_EGRAPHS[name]
    graph = esat.Graph([x], esat.erf(esat.sin(x)))
    with pytest.raises(RuleError, match=reason):
        esat.compile(graph, "greedy", rules=[rules])
    with esat.rules.add(rules):
        with pytest.warns(EsatWarning, match=reason):
            f = esat.compile(graph, "greedy")
        names = [rule.name for rule in esat.rules.list() if rule.file.startswith("<rules")]
        left_out = esat.Mode("greedy").excluding(*names)
        with warnings.catch_warnings():
            warnings.simplefilter("error", EsatWarning)
            esat.compile(graph, left_out)
            esat.compile(graph, "fast_run")
    np.testing.assert_allclose(f(np.array([0.0])), [0.0])


ILL_FORMED = {
    "(rewrite (Erff x) x)": "unknown op Erff",
    "(rewrite (Erf x) (Nope x))": "unknown op Nope",
    '(rewrite (Erf x) (K "a" 10))': "egglog refused it",
    "(rewrite (Erf x) (DimShuffle x 1.5))": "egglog refused it",
    "(rewrite (Pow x 2.0) x)": "egglog refused it",
    "(rewrite (Erf x) y)": "the variable y is not bound",
    "(rewrite (Erf x y) x)": "Erf takes 1 operands",
    "(rewrite (Erf x) x :when ((tame x)))": "Unbound function tame",
    "(rewrite (Erf x)": "never closed",
}


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o2", "fast_compile"])
@pytest.mark.parametrize("rule", ILL_FORMED)
def test_what_is_ill_formed_is_an_error_in_all_modes(rule, mode):
    with pytest.raises(RuleError, match=ILL_FORMED[rule]):
        esat.compile(esat.Graph([x], esat.erf(x)), mode, rules=rule)


def test_relations_hold_where_there_is_an_e_graph():
    f = esat.compile(esat.Graph([x], esat.erf(esat.sin(x))), "fast_run", rules=[RELATION])
    assert f.report.rules["erf-of-tame"]


@pytest.mark.parametrize("condition", ["(= 3.0 (* 1.5 (val y)))", "(= (to-f64 2) (val y))"])
def test_numbers_of_conditions_are_computed(condition):
    rule = f'(rewrite (Arctan2 x y) x :when ({condition}) :name "mine")'
    for number, count in ((2.0, 1), (4.0, 0)):
        f = esat.compile(esat.Graph([x], esat.arctan2(x, number)), "greedy", rules=[rule])
        assert f.report.rules.get("mine", 0) == count


def test_no_others_are_told_of():
    with esat.rules.add('(rewrite (Erf (Erfinv x)) x :name "mine")'), warnings.catch_warnings():
        warnings.simplefilter("error", EsatWarning)
        assert esat.compile(esat.Graph([x], esat.erf(esat.erfinv(x))), "greedy").report.rules


v, n, u = esat.vector("v"), esat.vector("n", dtype="int32"), esat.vector("u", dtype="int32")
a, b, y = esat.matrix("a"), esat.matrix("b"), esat.matrix("y")

KNOWN = {
    "isfinite-of-finite": esat.isfinite(esat.cast(n, "float64")),
    "isnan-of-finite": esat.isnan(esat.sin(esat.cast(n, "float64"))),
    "eq-same-of-finite": esat.eq(esat.tanh(esat.cast(n, "float64")), esat.tanh(esat.cast(n, "float64"))),
    "isinf-of-finite": esat.isinf(esat.max(esat.cast(n, "float64"))),
    "not-le-of-finite": esat.logical_not(esat.cast(n, "float64") <= esat.cast(u, "float64")),
    "solve-positive-definite": esat.linalg.solve(b @ b.T + esat.diag(esat.exp(v)), y),
    "transpose-of-symmetric": esat.linalg.inv(a @ a.T + esat.diag(esat.exp(v))).T,
}


@pytest.mark.parametrize("name", KNOWN)
def test_facts_that_rules_ask_for_are_found_in_greedy(name):
    output = KNOWN[name]
    inputs = [one for one in esat.graph.inputs_of([output]) if not isinstance(one, esat.graph.Constant)]
    assert name in esat.compile(esat.Graph(inputs, [output]), "greedy").report.rules
