"""Facts about matrices hold of programs whose operands have them; a planted wrong rule is found and named."""

from esat.egraph import prepare, structure
from esat.egraph.rule_program import program_for
from esat.rules import RULES
from esat.rules.query import Query
from esat.soundness import egraph_checker
from esat.soundness.fact_programs import check_facts

FACTS = ("tridiagonal", "positive_definite", "orthogonal", "nonpositive")


def _program():
    return program_for(RULES.query(Query(["fast_run"]), soundness="real"))


def test_facts_of_matrices() -> None:
    count, wrong = check_facts(_program(), FACTS)
    assert count > 12 * len(FACTS)
    assert wrong == []


def test_a_wrong_rule_is_named(monkeypatch) -> None:
    known = structure.structure_program()
    planted = (
        "(rule ((= e (MatMul a b r)) (tridiagonal a) (tridiagonal b)) ((set (tridiagonal e) ()))"
        ' :ruleset esat-known :name "planted")'
    )
    for module in (prepare, egraph_checker):
        monkeypatch.setattr(module, "structure_program", lambda: known + planted)
    monkeypatch.setattr(prepare, "prepared_rules", lambda digest, rules, make: make())
    prepare.prepared.cache_clear()
    egraph_checker._rules.cache_clear()
    try:
        _, wrong = check_facts(_program(), ("tridiagonal",))
    finally:
        prepare.prepared.cache_clear()
        egraph_checker._rules.cache_clear()
    assert wrong
    assert all("planted" in text for text in wrong)
