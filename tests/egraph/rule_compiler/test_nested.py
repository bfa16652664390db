"""Inner groups are matched into tables of their own, and rules join those instead."""

from __future__ import annotations

from esat.rules import read_forms
from esat.rules.reader import head_of, show, subforms

from .conftest import compiled

SIGMOID = "(rewrite (Div a (Add o (Exp x))) (Mul a (Tanh x)) :when ((= (val o) 1.0)))"
KEEPING = "(rewrite (Mul (Exp x) (Add (Exp x) (Add o y))) (Tanh (Add x y)) :when ((= (val o) 1.0)))"


def bodies(text: str) -> tuple[list[list[str]], list[list[str]]]:
    """Heads of all forms in the bodies of the rules that fill key tables, and of the others."""
    filling: list[list[str]] = []
    others: list[list[str]] = []
    for form in read_forms(compiled(text).text):
        if form[0] == "rule":
            heads = [head_of(part) for fact in form[1] for part in subforms(fact)]
            is_filling = any(head_of(action).startswith("key/") for action in form[2])
            (filling if is_filling else others).append(heads)
    return filling, others


def test_a_row_of_the_table_stands_for_the_facts_of_the_inner_group() -> None:
    filling, others = bodies(SIGMOID)
    assert filling
    assert others
    assert all("Exp" in heads and "NarySum" in heads for heads in filling)
    assert all("Exp" not in heads and "NarySum" not in heads for heads in others)
    assert all(any(head.startswith("key/") for head in heads) for heads in others)


def test_where_the_rule_needs_what_a_group_leaves_the_table_has_its_sides() -> None:
    # y + z is what the sum leaves over.
    text = compiled(KEEPING).text
    (declared,) = {form[2] for form in read_forms(text) if head_of(form) == "relation"}
    assert declared.count("MS") == 2
    _, others = bodies(KEEPING)
    with_key = [heads for heads in others if any(head.startswith("key/") for head in heads)]
    assert with_key
    # The terms are looked up, for they may have given way to others; their elements are not searched again.
    assert all("Exp" in heads and "NarySum" in heads for heads in with_key)
    assert all(heads.count("element-count") == 2 for heads in with_key)
    assert all("val" not in heads for heads in with_key)


WHOLE = "(rewrite (Log (Add o (Exp x))) (Tanh x) :when ((= (val o) 1.0)))"


def test_a_group_that_must_match_whole_is_sought_among_those_of_its_lengths() -> None:
    facts = [show(fact) for form in read_forms(compiled(WHOLE).text) if form[0] == "rule" for fact in form[1]]
    assert any(fact.startswith("(= 2000 (nary-sum-lengths ") for fact in facts)
