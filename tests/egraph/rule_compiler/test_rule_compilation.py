"""What `compile_rules` returns: names, rule sets, modes of compilation."""

from __future__ import annotations

from typing import Any

import pytest

from esat.egraph.preparation.rule_compiler import compile_rules, rule_compilation
from esat.errors import RuleError
from esat.rules import read_forms, read_rules

from .conftest import OPERATORS, Case, Laboratory, compiled, leaf

A, B, C = leaf(0), leaf(1), leaf(2)
FACTOR = '(rewrite (Add (Mul a b) (Mul a c)) (Mul a (Add b c)) :name "factor")'


def test_every_generated_rule_has_a_name_that_leads_back() -> None:
    rules = compiled(
        "(ruleset algebra :tags (canonicalize)) (ruleset linear)"
        '(rewrite (Add (Exp x) (Exp y)) (Foo x y) :name "foo" :ruleset algebra)'
        '(birewrite (Tanh (Neg x)) (Neg (Tanh x)) :name "odd" :ruleset linear)'
        '(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)) :name "collect (exp)" :ruleset algebra)'
    )
    names = []
    for form in read_forms(rules.text):
        if form[0] == "rule":
            name = str(form[form.index(":name") + 1]).strip('"')
            names.append(name)
            assert rules.origins[name].name == name.partition("#")[0]
    assert set(names) == set(rules.origins)
    assert len(names) == len(set(names))
    assert {rules.origins[name].report_name for name in names} == {"foo", "odd", "collect (exp)"}
    assert rules.rulesets == ("rules-algebra", "rules-linear")


def test_expanding_rules_have_a_rule_set_of_their_own() -> None:
    rules = compiled("(rewrite (Mul x (Add y z)) (Add (Mul x y) (Mul x z)))" + FACTOR)
    assert rules.rulesets == ("rules-user",)
    assert rules.expanding == ("rules-user-expanding", "rules-user-expanding-wide")
    assert {chunk.ruleset for chunk in rules.chunks if chunk.rule and chunk.rule.name == "factor"} == {
        "rules-user"
    }


def test_rules_between_equal_nary_terms_are_dropped() -> None:
    rules = compiled(
        "(birewrite (Sub a b) (Add a (Neg b)))"
        "(rewrite (Add a b) (Add b a))"
        "(rewrite (Add (Add a b) c) (Add a (Add b c)))"
        "(rewrite (Div x y) (Mul x (Reciprocal y)))"
    )
    assert len(rules.dropped) == 5
    assert not rules.origins


def test_a_left_side_that_is_a_bare_variable_in_nary_form_is_dropped() -> None:
    rules = compiled("(rewrite (Neg (Neg x)) x) (rewrite (Reciprocal (Reciprocal x)) (H1 x))")
    assert [reason for _, reason in rules.dropped] == [
        "both sides are the same n-ary term",
        "as an n-ary term its left side is a bare variable",
    ]


def test_double_negations_inside_patterns_vanish(laboratory: Laboratory) -> None:
    rule = "(rewrite (Exp (Neg (Neg (Sin x)))) (H1 x))"
    laboratory.check(rule, [Case(f"(Exp (Sin {A}))", f"(H1 {A})")])


def test_exact_only_keeps_binary_patterns_of_exact_rules() -> None:
    text = (
        '(rewrite (Add (Exp x) (Sin y)) (Foo x y) :name "foo" :soundness exact)'
        '(rewrite (Exp (Log x)) x :name "real" :soundness real)'
        '(rewrite (Sub a b) (Add a (Neg b)) :name "sub" :soundness exact)'
    )
    rules = compiled(text, exact_only=True)
    assert [rule.name for rule, _ in rules.dropped] == ["real"]
    assert "Nary" not in rules.text
    Laboratory(strict=True).check(
        rules,
        [
            Case(f"(Add (Exp {A}) (Sin {B}))", f"(Foo {A} {B})"),
            Case(f"(H1 (Add (Add (Exp {A}) {C}) (Sin {B})))", f"(H1 (Add (Foo {A} {B}) {C}))", equal=False),
        ],
    )


def test_variables_may_be_called_like_functions_and_globals(laboratory: Laboratory) -> None:
    rule = "(rewrite (Add (Exp bp) (Sin one)) (Foo bp one) :when ((= val (bp bp)) (!= val 77)))"
    laboratory.check(rule, [Case(f"(Add (Exp {A}) (Sin {B}))", f"(Foo {A} {B})")])


def test_wildcards_are_independent(laboratory: Laboratory) -> None:
    rule = "(rewrite (Foo (Pair _ x) (Pair _ x)) (Pair x x) :when ((= _ (bp x))))"
    laboratory.check(rule, [Case(f"(Foo (Pair {A} {C}) (Pair {B} {C}))", f"(Pair {C} {C})")])


def test_declarations_come_before_the_rules(laboratory: Laboratory) -> None:
    text = (
        "(rewrite (Add (Exp x) (Exp y)) (Mine x y) :when ((twin x y)))"
        f"(constructor Mine (T T) T) (relation twin (T T)) (twin {A} {B})"
    )
    rules = compile_rules(read_rules(text), OPERATORS)
    laboratory.check(rules, [Case(f"(Add (Exp {A}) (Exp {B}))", f"(Mine {A} {B})")])


def test_macros_are_expanded(laboratory: Laboratory) -> None:
    rule = "(rewrite (DimShuffle (DimShuffle x p) q) (DimShuffle x (ds-comp p q)))"
    transposed, same = 2373112596481, 2373112596496
    term = f"(DimShuffle (DimShuffle {A} {transposed}) {transposed})"
    laboratory.check(rule, [Case(term, f"(DimShuffle {A} {same})")])


def test_staged_rest_reads_facts_of_a_term_it_makes(laboratory: Laboratory) -> None:
    # `x` and `y` are both read by guards, so the rest of a longer product must exist before it is tried.
    rule = "(rewrite (Abs (Mul x y)) (Foo x y) :when ((positive x) (below y x))) (relation below (T T))"
    rest = f"(NaryProd (multiset-of {A} {B}) (multiset-of))"
    facts = f"(positive {rest}) (below {C} {rest})"
    term = f"(Abs (NaryProd (multiset-of {A} {B} {C}) (multiset-of)))"
    rules = compiled(rule)
    assert rules.expanding
    laboratory.check(rules, [Case(term, f"(Foo {rest} {C})")], facts=facts, expansions=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(rewrite (Expp x) x)", r"user.egg:1:10: rule .*unknown op Expp \(did you mean Exp"),
        ("(rewrite (Add x) x)", r"user.egg:1:10: .*Add takes 2 operands \(T T\), got 1"),
        ("(rewrite (Exp x)\n (Foo x y))", r"user.egg:2:9: .*the variable y is not bound"),
        ("(rewrite (Exp x) (positve x))", r"user.egg:1:18: .*positve \(did you mean positive"),
    ],
)
def test_misspelt_rules_are_refused_before_egglog_sees_them(text: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        compiled(text)


def test_names_must_be_free() -> None:
    rules = read_rules(FACTOR).rules
    with pytest.raises(RuleError, match="'factor': the name is taken by the rule at <rules>:1:1"):
        compile_rules([*rules, *rules], OPERATORS)
    with pytest.raises(RuleError, match="loaded already"):
        compile_rules(rules, OPERATORS, taken={"factor"})


def test_compilation_is_deterministic() -> None:
    text = FACTOR + "(rewrite (Sub x (Floor x)) (Frac x)) (rewrite (Cast (Exp x) d) x)"
    assert compiled(text).text == compiled(text).text


@pytest.mark.parametrize("exact_only", [False, True])
def test_rules_compiled_before_are_taken_as_they_are(
    monkeypatch: pytest.MonkeyPatch, exact_only: bool
) -> None:
    text = (
        f"(ruleset algebra) (ruleset own) {FACTOR}"
        '(rewrite (Add x y) (Add y x) :name "swap" :ruleset algebra)'
        '(rewrite (Mul a (Add b c)) (Add (Mul a b) (Mul a c)) :name "spread" :ruleset algebra)'
        '(rewrite (Add (Exp x) (Exp y)) (Foo x y) :name "foo" :ruleset own)'
    )
    rules = read_rules(text).rules
    wanted = compile_rules(rules, OPERATORS, exact_only=exact_only)
    known = compile_rules(rules[:3], OPERATORS, exact_only=exact_only)
    prepare, prepared = rule_compilation.prepare, []

    def preparing(rule: Any, *rest: Any, **options: Any) -> Any:
        prepared.append(rule)
        return prepare(rule, *rest, **options)

    monkeypatch.setattr(rule_compilation, "prepare", preparing)
    assert compile_rules(rules, OPERATORS, exact_only=exact_only, known=known) == wanted
    assert prepared == ([] if exact_only else [rules[3]])
