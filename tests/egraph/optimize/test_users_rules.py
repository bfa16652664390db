"""Greedy modes take the rules that other modes take, and know what these ask for."""

import pytest

import esat
from esat.errors import RuleError

x = esat.vector("x")

RELATION = """
(relation tame (T))
(rule ((= e (Sin x))) ((tame e)) :name "sines-are-tame")
(rewrite (Erf x) x :when ((tame x)) :name "erf-of-tame")
"""
RULES_FOR_TABLES = {
    "a relation": RELATION,
    "a function": """(function depth (T) i64 :merge old)
        (rule ((= e (Sin x))) ((set (depth e) 1)) :name "depth-of-sines")
        (rewrite (Erf x) x :when ((= 1 (depth x))) :name "shallow")""",
    "a fact": """(rule ((= e (Sin x))) ((positive e)) :name "sines-are-positive")
        (rewrite (Erf x) x :when ((positive x)) :name "erf-of-positive")""",
    "a primitive": '(rewrite (Erf (Mul x y)) x :when ((= 1 (% (to-i64 (val y)) 2))) :name "one")',
}


@pytest.mark.parametrize("mode", ["greedy", "fast_run"])
@pytest.mark.parametrize("name", RULES_FOR_TABLES)
def test_rules_may_state_and_ask_what_is_in_tables(name, mode):
    mode = esat.Mode(mode, accuracy="ignore")
    for scale, left in ((3.0, set()), (4.0, {"erf"} if name == "a primitive" else set())):
        inner = esat.sin(x) * scale if name == "a primitive" else esat.sin(x)
        graph = esat.Graph([x], esat.erf(inner))
        for rules in ((), [RULES_FOR_TABLES[name]]):
            found = esat.compile(graph, mode, rules=rules).optimized.toposort()
            assert {node.op.name for node in found} & {"erf"} == (left if rules else {"erf"})


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


@pytest.mark.parametrize("condition", ["(= 3.0 (* 1.5 (val y)))", "(= (to-f64 2) (val y))"])
def test_numbers_of_conditions_are_computed(condition):
    rule = f'(rewrite (Arctan2 x y) x :when ({condition}) :name "mine")'
    for number, count in ((2.0, 1), (4.0, 0)):
        f = esat.compile(esat.Graph([x], esat.arctan2(x, number)), "greedy", rules=[rule])
        assert ("mine" in f.report.rules) == bool(count)


v, n = esat.vector("v"), esat.vector("n", dtype="int32")
a, b, y = esat.matrix("a"), esat.matrix("b"), esat.matrix("y")

KNOWN = {
    "isfinite-of-finite": esat.isfinite(esat.cast(n, "float64")),
    "isnan-of-finite": esat.isnan(esat.sin(esat.cast(n, "float64"))),
    "eq-same-of-finite": esat.eq(esat.tanh(esat.cast(n, "float64")), esat.tanh(esat.cast(n, "float64"))),
    "isinf-of-finite": esat.isinf(esat.max(esat.cast(n, "float64"))),
    "solve-positive-definite": esat.linalg.solve(b @ b.T + esat.diag(esat.exp(v)), y),
    "transpose-of-symmetric": esat.linalg.inv(a @ a.T + esat.diag(esat.exp(v))).T,
}


@pytest.mark.parametrize("name", KNOWN)
def test_facts_that_rules_ask_for_are_found_in_greedy(name):
    output = KNOWN[name]
    inputs = [one for one in esat.graph.inputs_of([output]) if not isinstance(one, esat.graph.Constant)]
    assert name in esat.compile(esat.Graph(inputs, [output]), "greedy").report.rules
