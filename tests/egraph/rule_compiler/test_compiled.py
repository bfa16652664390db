"""Complaints of egglog about generated text come back at the user's own line and column."""

from __future__ import annotations

import pytest

from esat.egraph.preparation.rule_compiler import Chunk
from esat.errors import RuleError

from .conftest import Laboratory, compiled

CASES = [
    ("\n(rewrite (Exp x)\n  (unheard-of x))", (3, 3), "Unbound function unheard-of"),
    ("(rewrite (Mul (Sqr x) (Exp y)) (Foo x y)\n  :when ((= (amount x) 1.0)))", (2, 13), "amount"),
    ("(rule ((= e (Add x (Exp y))))\n      ((set (dt e) x)))", (1, 18), "type"),
]


@pytest.mark.parametrize(("text", "position", "reason"), CASES)
def test_positions(text: str, position: tuple[int, int], reason: str) -> None:
    engine = Laboratory().engine
    chunk = compiled(text).chunks[-1]
    engine.load(compiled(text).chunks[0].text)
    with pytest.raises(RuleError) as refused:
        engine.load(chunk.text)
    error = chunk.error(refused.value.reason)
    assert error.file == "user.egg"
    assert (error.line, error.column) == position
    assert reason in str(error)
    assert "?" not in str(error)


def test_messages_with_their_position() -> None:
    chunk = compiled("(rewrite (Exp x)\n (Foo x (H1 x)))").chunks[-1]
    error = chunk.error("In 3:4-12 of core.egg: (H1 ?x)\nUnbound function H1")
    assert (error.line, error.column) == (2, 9)
    assert str(error).endswith("egglog refused it: Unbound function H1")


def test_a_declaration_has_no_position() -> None:
    assert "declaration: Unbound" in str(Chunk("(ruleset a)").error("Unbound sort"))
