"""Rules whose patterns are unrelated: what they would match is known before they run."""

import pytest

import esat
from esat.egraph.encode import encode
from esat.egraph.loader import flatten, load
from esat.egraph.prepare import prepared_engine, program_for
from esat.egraph.saturate import saturate
from esat.egraph.schedule import Budgets
from esat.errors import EsatWarning
from esat.graph import FunctionGraph
from esat.rules import RULES
from esat.rules.query import Query

TRIPLE = """
(rule ((= a (Exp x)) (= b (Sin y)) (= c (Tanh z)) (= d (dt x)) (= d (dt y)) (= d (dt z))
       (= m (bp x)) (= m (bp y)) (= m (bp z)))
      ((Maximum a (Maximum b c))) :name "triple")
"""
BESIDE = '(rewrite (Cosh x) (Cosh (Neg x)) :name "beside-it")'
RELATED = '(rewrite (Maximum (Exp x) (Sin y)) (Maximum (Sin y) (Exp x)) :name "related")'


def program_of(rules):
    return program_for(RULES.query(Query(include=("fast_run",)), extra=(RULES.read(rules),)))


def saturated(rules, count):
    """The report on ``count`` terms of each pattern of the triple, and one of the rule beside it."""
    x = esat.vector("x")
    outputs = [op(x * float(k + 2)) for k in range(count) for op in (esat.exp, esat.sin, esat.tanh)]
    terms = encode(FunctionGraph([x], [*outputs, esat.cosh(x)], clone=False))
    program = program_of(rules)
    with prepared_engine(program, terms) as engine:
        load(engine, terms, flatten(terms, program.strict))
        return saturate(engine, program.schedule_for(terms), Budgets(seconds=600.0), program.constructors)


def test_a_join_of_unrelated_patterns_does_not_run_and_does_not_starve_the_rest():
    with pytest.warns(EsatWarning, match=r"match limit.*triple"):
        report = saturated(TRIPLE + BESIDE, 25)
    matches = {rule.name: rule.matches for rule in report.rules}
    assert report.stop_reason == "match limit"
    assert "triple" not in matches
    assert matches["beside-it"]
    assert report.nodes < 1000


def test_a_small_one_runs():
    matches = {rule.name: rule.matches for rule in saturated(TRIPLE, 3).rules}
    assert matches["triple"] >= 27


def test_matches_are_the_product_of_the_parts():
    (join,) = program_of(TRIPLE + RELATED).joins.values()
    assert sorted(map(sorted, join.parts)) == [["Exp"], ["Sin"], ["Tanh"]]
    assert join.matches({"Exp": 300, "Sin": 200, "Tanh": 10}) == 600_000
