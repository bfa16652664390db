"""Selections of rules by Query, which are made once, and their digests."""

from esat.egraph.preparation.rule_database import SELECTIONS_KEPT, RuleDatabase
from esat.rules.language.query import Query

QUERY = Query(include=("fast_run",))


def names(database: RuleDatabase) -> list[str]:
    return [rule.name for rule in database.query(QUERY).rules]


def test_a_selection_is_made_once():
    database = RuleDatabase()
    database.add('(rewrite (Exp (Log x)) x :name "exp-of-log")')
    selection = database.query(QUERY)
    assert database.query(Query(include=("fast_run",))) is selection
    assert database.query(QUERY, soundness="exact") is not selection
    assert [rule.name for rule in selection.rules] == ["exp-of-log"]


def test_rules_that_come_and_go_count_at_once():
    database = RuleDatabase()
    database.add('(rewrite (Exp (Log x)) x :name "one")')
    digests = {database.query(QUERY).digest}
    database.add('(rewrite (Log (Exp x)) x :name "two")')
    assert names(database) == ["one", "two"]
    digests.add(database.query(QUERY).digest)
    database.remove("one")
    assert names(database) == ["two"]
    digests.add(database.query(QUERY).digest)
    assert len(digests) == 3


def test_rules_of_one_compilation_are_not_kept():
    database = RuleDatabase()
    extra = database.read('(rewrite (Log (Exp x)) x :name "mine")')
    assert [rule.name for rule in database.query(QUERY, extra=[extra]).rules] == ["mine"]
    assert names(database) == []


def test_few_selections_are_kept():
    database = RuleDatabase()
    for number in range(3 * SELECTIONS_KEPT):
        database.query(Query(include=(f"tag{number}",)))
    assert len(database._selections) <= SELECTIONS_KEPT
