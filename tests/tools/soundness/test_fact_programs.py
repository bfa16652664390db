"""Facts about matrices hold of programs whose operands have them; a planted wrong rule is found and named."""

import pytest
from planted_rules import NONNEGATIVE_PRODUCTS, TRIDIAGONAL_PRODUCTS, planted_rule

from esat.egraph.preparation.rule_program import program_for
from esat.rules import RULES
from esat.rules.language.query import Query
from esat.tools.soundness.fact_programs import check_facts

FACTS = ("tridiagonal", "positive_definite", "orthogonal", "nonpositive")


def _program():
    return program_for(RULES.query(Query(["fast_run"]), soundness="real"))


def test_facts_of_matrices() -> None:
    count, wrong = check_facts(_program(), FACTS)
    assert count > 12 * len(FACTS)
    assert wrong == []


@pytest.mark.parametrize(
    ("rule", "fact"), [(TRIDIAGONAL_PRODUCTS, "tridiagonal"), (NONNEGATIVE_PRODUCTS, "nonnegative")]
)
def test_a_wrong_rule_is_named(rule: str, fact: str) -> None:
    with planted_rule(rule):
        _, wrong = check_facts(_program(), (fact,))
    assert wrong
    assert all("planted" in text for text in wrong)
