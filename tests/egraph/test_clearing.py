"""What a use of an engine added is gone after it, what it held at rest is not."""

import pytest
from egraph.term_graphs import GraphBuilder, load, rules_engine

from esat.egraph.clearing import clear, with_twins
from esat.egraph.engine import Engine

PROGRAM = """
(sort T)
(constructor A (i64) T) (constructor F (T T) T)
(relation known (i64)) (known 1) (known 2)
(function value (T) i64 :merge old)
(ruleset r)
(rule ((= e (F a b)) (known 1)) ((union e a) (subsume (F a b))) :ruleset r :name "first")
"""


@pytest.fixture
def engine():
    (text,) = with_twins([PROGRAM])
    engine = Engine()
    engine.load(text)
    return engine


def test_subsumed_rows_are_cleared_too(engine):
    rest = engine.sizes()
    for number in range(5):
        engine.execute(f"(F (A {number}) (F (A 8) (A 9))) (set (value (A 9)) {number})")
        engine.execute("(run r 2)")
        rows = engine.freeze().functions["F"].rows
        assert rows
        assert all(row.subsumed for row in rows)
        assert clear(engine, rest)
        assert engine.sizes() == {**rest, "esat-padding": 0}
        assert rest["known"] == 2


def test_a_table_declared_in_between_is_cleared(engine):
    rest = engine.sizes()
    engine.execute("(constructor Opaque (T i64) T) (Opaque (A 1) 3)")
    assert clear(engine, rest)
    assert engine.sizes()["Opaque"] == 0


def test_rows_beside_those_at_rest_cannot_be_cleared(engine):
    rest = engine.sizes()
    engine.execute("(known 3)")
    assert not clear(engine, rest)


def test_a_row_that_no_rule_sees_is_noticed():
    engine = Engine()
    engine.load(PROGRAM)  # nobody notes what it subsumes
    rest = engine.sizes()
    engine.execute("(F (A 1) (A 2)) (run r 1)")
    assert not clear(engine, rest)


@pytest.mark.parametrize("operands", ["(Log a)", "(F (G a b) (multiset-of c))"])
def test_twins_hold_the_operands_of_any_term(operands):
    name, _, rest = operands[1:].partition(" ")
    text = f"(constructor {name} (T) T) (rule () ((subsume {operands}) (union a b)))"
    (noted,) = with_twins([text])
    assert f"(relation subsumed/{name} (T))" in noted
    assert f"((subsumed/{name} {rest} (subsume {operands}) (union a b))" in noted


def test_an_empty_graph_leaves_nothing_to_clear():
    engine = rules_engine()
    rest = engine.sizes()
    load(engine, GraphBuilder().graph())
    assert clear(engine, rest)
