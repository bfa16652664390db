"""Text in chunks with true line numbers; failures become EsatErrors and break the engine."""

import pytest

from esat.egraph.engine import Engine, chunks, split_forms
from esat.errors import RuleError, SaturationError

DECLARATIONS = "(sort T) (constructor A (i64) T) (constructor B (T T) T) (ruleset rules)"


def test_chunks_keep_lines():
    text = "; a comment with (parentheses\n" + "\n".join(
        f'(relation r{number} (i64))\n; between "(" them\n' for number in range(35)
    )
    forms = split_forms(text)
    assert len(forms) == 35
    for chunk in chunks(text):
        for number, line in enumerate(chunk.split("\n")):
            if line:
                assert line == text.split("\n")[number]
    engine = Engine()
    engine.load(text)
    assert len(engine.sizes()) == 35


@pytest.mark.parametrize(("text", "line"), [("(a)\n(b\n\n(c)", 2), ("(a)\n)", 1)])
def test_unbalanced_parentheses(text, line):
    with pytest.raises(RuleError) as caught:
        split_forms(text)
    assert caught.value.line == line


def test_mistakes_are_rule_errors_with_positions():
    engine = Engine()
    engine.load(DECLARATIONS)
    text = "\n" * 30 + '(rule ((= e (Bad x)))\n      ((union e x)) :ruleset rules :name "bad")'
    with pytest.raises(RuleError) as caught:
        engine.load(text, "user.egg")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("user.egg", 31, 13)
    assert "Unbound function Bad" in str(caught.value)
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
