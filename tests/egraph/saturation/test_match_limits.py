"""Rules of users that have too many matches in a run."""

import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.language.loader import flatten, load
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import Budgets
from esat.errors import EsatWarning
from esat.graph import FunctionGraph
from esat.rules import RULES
from esat.rules.language.query import Query

TRIPLE = """
(rule ((= a (Exp x)) (= b (Sin y)) (= c (Tanh z)) (= d (dt x)) (= d (dt y)) (= d (dt z))
       (= m (bp x)) (= m (bp y)) (= m (bp z)))
      ((Maximum a (Maximum b c))) :name "triple")
"""
BESIDE = '(rewrite (Cosh x) (Cosh (Neg x)) :name "beside-it")'


def program_of(rules):
    return program_for(RULES.query(Query(include=("fast_run",)), extra=(RULES.read(rules),)))


def saturated(rules, count):
    """The report on ``count`` terms of each pattern of the triple, and one of the rule beside it."""
    x = esat.vector("x")
    outputs = [op(x * float(k + 2)) for k in range(count) for op in (esat.exp, esat.sin, esat.tanh)]
    return saturation(rules, x, [*outputs, esat.cosh(x)])


def saturation(rules, x, outputs):
    terms = encode(FunctionGraph([x], outputs, clone=False))
    program = program_of(rules)
    engine = prepared_engine(program, terms)
    load(engine, terms, flatten(terms, program.strict))
    schedule = prepared(program).schedule_for(terms)
    return saturate(engine, schedule, Budgets(), program.constructors)


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


KEYED = {
    "three by a term": """
(rule ((= a (Arctan2 x y)) (= b (Arctan2 x z)) (= c (Arctan2 x w)))
      ((Maximum a (Maximum b c))) :name "keyed")""",
    "two by a term": '(rule ((= a (Arctan2 x y)) (= b (Arctan2 x z))) ((Maximum a b)) :name "keyed")',
    "a relation": """
(relation by-first-t (T T))
(rule ((= a (Arctan2 x y))) ((by-first-t x a)) :name "begin")
(rule ((by-first-t x a) (by-first-t x b) (by-first-t x c)) ((Maximum a (Maximum b c))) :name "keyed")""",
}


@pytest.mark.parametrize("name", KEYED)
def test_a_join_on_a_key_of_hundreds_of_rows_does_not_run_and_does_not_starve_the_rest(name):
    """The first run of each would have from 160,000 matches to 64 million, and take up to minutes."""
    x = esat.vector("x")
    terms = [esat.arctan2(x, esat.exp(x * float(k + 2))) for k in range(400)]
    with pytest.warns(EsatWarning, match=r"match limit.*keyed"):
        report = saturation(KEYED[name] + BESIDE, x, [*terms, esat.cosh(x)])
    matches = {rule.name: rule.matches for rule in report.rules}
    assert sum(matches.values()) < 100_000
    assert "keyed" not in matches
    assert matches["beside-it"] > 1


def test_a_pair_of_summands_is_not_looked_for_in_longer_sums():
    rule = '(rule ((= t (Add (Arctan2 x y) (Arctan2 x z)))) ((Hypot y (Hypot z t))) :name "summands")'
    x = esat.vector("x")
    terms = [esat.arctan2(x, esat.exp(x * float(k + 2))) for k in range(400)]
    report = saturation(rule, x, [sum(terms[1:], terms[0])])
    assert report.stop_reason == "saturated"
    assert "summands" not in {rule.name for rule in report.rules}
    found = saturation(rule, x, [terms[0] + terms[1]])
    assert {rule.name: rule.matches for rule in found.rules}["summands"] >= 2


def test_a_rule_that_makes_no_terms_has_a_part_of_the_matches():
    """Its 125,000 matches cost no e-node, and are more than all rules of a graph of that size may have."""
    rule = """
(relation near (T T T))
(rule ((= a (Arctan2 x y)) (= b (Arctan2 x z)) (= c (Arctan2 x w))) ((near y z w)) :name "keyed")"""
    x = esat.vector("x")
    outputs = [esat.arctan2(x, esat.exp(x * float(k + 2))) for k in range(50)]
    with pytest.warns(EsatWarning, match=r"match limit.*keyed"):
        report = saturation(rule + BESIDE, x, [*outputs, esat.cosh(x)])
    matches = {rule.name: rule.matches for rule in report.rules}
    assert "keyed" not in matches
    assert matches["beside-it"] > 1
    few = saturation(rule, x, outputs[:10])
    assert {rule.name: rule.matches for rule in few.rules}["keyed"] == 1000


def test_a_key_that_each_row_has_alone_is_no_reason():
    rule = """
(rule ((= a (Arctan2 x y)) (= b (Arctan2 z y)) (= c (Arctan2 w y)))
      ((Maximum a (Maximum b c))) :name "own-key")"""
    x = esat.vector("x")
    outputs = [esat.arctan2(x, esat.exp(x * float(k + 2))) for k in range(400)]
    matches = {rule.name: rule.matches for rule in saturation(rule, x, outputs).rules}
    assert matches["own-key"] == 400


def test_rules_that_match_only_what_a_rule_subsumed_do_not_end_a_compilation():
    rules = """
(rewrite (Exp x) (Reciprocal (Exp (Neg x))) :subsume :name "all-exponentials-t")
(rule ((= a (Exp x)) (= b (Exp y)) (= c (Exp z))) ((Maximum a (Maximum b c))) :name "of-three-t")
"""
    x = esat.vector("x")
    outputs = [esat.exp(x * float(k + 2)) for k in range(60)]
    report = saturation(rules, x, outputs)
    assert {rule.name: rule.matches for rule in report.rules}["all-exponentials-t"] >= 60
