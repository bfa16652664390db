"""Rules that never fire are found out."""

import pytest

from esat.rules import read_rules
from esat.tools.soundness.firing import GIVERS, fires, never_fired, programs_with
from tests.tools.soundness.saturation import DATABASE, all_rules

IDLE = {
    "taken away by the n-ary layer": '(rewrite (Add x (Neg y)) (Sub x y) :name "nothing new")',
    "an impossible guard": '(rewrite (Exp x) (Exp2 x) :when ((= (dt x) 99)) :name "no such dtype")',
    "a fact that integers cannot have": "(rewrite (Mul x y) (Abs (Mul x y)) :when ((positive x) (= (dt x) 4))"
    ' :name "no such fact")',
}


@pytest.mark.parametrize("name", IDLE)
def test_rules_that_never_fire_are_found(name):
    file = read_rules(IDLE[name])
    idle = never_fired(file.rules, programs_with(file))
    assert [rule for rule, _ in idle] == list(file.rules)


def test_rules_that_fire_are_not_reported():
    file = read_rules(
        '(rewrite (Add (Exp x) (Exp y)) (Exp (Logaddexp x y)) :when ((<= (dt x) 11)) :name "mine")'
        '(rewrite (Abs x) (Neg x) :when ((negative x)) :name "theirs")'
    )
    assert never_fired(file.rules, programs_with(file)) == []


@pytest.mark.parametrize("fact", GIVERS)
def test_operands_with_facts_are_found(fact):
    rule = read_rules(
        f'(rewrite (Arctan x) (Arctan (Fill x x)) :when (({fact} x)) :name "asks for {fact}")'
    ).rules[0]
    file = read_rules(rule.source)
    program, _ = programs_with(file)
    assert fires(file.rules[0], program).fired


def test_the_outcome_says_what_was_loaded():
    rule = DATABASE.find("log1p")[0]
    firing = fires(rule, all_rules())
    assert firing.fired
    assert firing.united
    assert {"Log", "Log1p"} <= {term.constructor for term in firing.terms.terms}
    assert any(statistics.name == "log1p" and statistics.matches for statistics in firing.report.rules)
