"""Groups that have to match whole are sought by their lengths."""

from __future__ import annotations

from esat.rules import read_forms
from esat.rules.language.reader import show

from .conftest import compiled

WHOLE = "(rewrite (Log (Add o (Exp x))) (Tanh x) :when ((= (val o) 1.0)))"


def test_a_group_that_must_match_whole_is_sought_among_those_of_its_lengths() -> None:
    facts = [show(fact) for form in read_forms(compiled(WHOLE).text) if form[0] == "rule" for fact in form[1]]
    assert any(fact.startswith("(= 2000 (nary-sum-lengths ") for fact in facts)
