"""Rules of the package are read, all of them."""

import pytest

from esat.egraph.preparation.prepare import prepared
from esat.egraph.preparation.rule_program import program_for
from esat.engine.matching_engine import MatchingEngine
from esat.rules import RULES
from esat.rules.language.query import Query


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("tags", [[], ["fast_run"], ["fast_run", "unsafe"]])
def test_all_rules_of_the_package_are_known(tags: list[str], strict: bool) -> None:
    soundness = "unsafe" if "unsafe" in tags else "exact" if strict else "real"
    rules = prepared(program_for(RULES.query(Query(tags), soundness=soundness), strict))
    engine = MatchingEngine()
    for module in rules.modules:
        engine.load(module.text)
    assert len(engine._rules) == sum(1 for module in rules.modules if module.ruleset) > 100
