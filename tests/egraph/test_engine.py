"""Texts of any length with true line numbers; failures become EsatErrors and break the engine."""

import pytest

from esat.egraph.engine import Engine, split_forms
from esat.errors import RuleError, SaturationError

DECLARATIONS = "(sort T) (constructor A (i64) T) (constructor B (T T) T) (ruleset rules)"


def test_forms_know_their_places():
    text = "; a comment with (parentheses\n(a)  (b\n)\n\n   (c)"
    assert [(form.line, form.column, form.text) for form in split_forms(text)] == [
        (1, 0, "(a)"),
        (1, 5, "(b\n)"),
        (4, 3, "(c)"),
    ]


def test_a_long_text_with_comments_is_loaded():
    text = "; a comment with (parentheses\n" + "\n".join(
        f'(relation r{number} (i64))\n; between "(" them\n' for number in range(35)
    )
    engine = Engine()
    engine.load(text)
    assert engine.sizes() == {f"r{number}": 0 for number in range(35)}


@pytest.mark.parametrize(("text", "line"), [("(a)\n(b\n\n(c)", 2), ("(a)\n)", 1)])
def test_unbalanced_parentheses(text, line):
    with pytest.raises(RuleError) as caught:
        split_forms(text)
    assert caught.value.line == line


def test_mistakes_are_rule_errors_with_positions():
    engine = Engine()
    engine.load(DECLARATIONS)
    text = "\n" * 30 + '  (rule ((= e (Bad x)))\n      ((union e x)) :ruleset rules :name "bad")'
    with pytest.raises(RuleError) as caught:
        engine.load(text, "user.egg")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("user.egg", 31, 15)
    assert "Unbound function Bad" in str(caught.value)
    with pytest.raises(SaturationError):
        engine.sizes()


def test_an_unfinished_text_breaks_the_engine():
    engine = Engine()
    with pytest.raises(RuleError) as caught:
        engine.load("(sort T)\n(sort U\n")
    assert caught.value.line >= 2
    with pytest.raises(SaturationError):
        engine.sizes()


def test_a_panic_breaks_the_engine():
    engine = Engine()
    engine.load(DECLARATIONS)
    with pytest.raises(SaturationError, match="discarded"):
        engine.execute("(run nowhere 1)")
    with pytest.raises(SaturationError, match="of no use"):
        engine.execute("(push)")
    with pytest.raises(SaturationError):
        _ = engine.values


def test_push_pop_and_freeze():
    engine = Engine()
    engine.load(DECLARATIONS)
    engine.execute("(A 1)")
    engine.execute("(push)")
    engine.execute("(B (A 1) (A 2))")
    assert engine.sizes() == {"A": 2, "B": 1}
    (row,) = engine.freeze().functions["B"].rows
    assert len(row.inputs) == 2
    engine.execute("(pop)")
    assert engine.sizes() == {"A": 1, "B": 0}


def test_a_snapshot_is_taken_anew_only_after_something_ran():
    engine = Engine()
    engine.load(DECLARATIONS + "(A 1)")
    first = engine.freeze()
    assert engine.sizes()["A"] == 1
    assert engine.freeze() is first
    engine.execute("(A 2)")
    assert [len(snapshot.functions["A"].rows) for snapshot in (first, engine.freeze())] == [1, 2]
