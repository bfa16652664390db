"""Rules never change the dtype, rank or broadcast mask of a class."""

from __future__ import annotations

import pytest

from esat.egraph.preparation.rule_compiler.guarding import with_type_guards
from esat.egraph.preparation.rule_compiler.rule_compilation import CORE
from esat.egraph.preparation.rule_compiler.surface import prepare
from esat.errors import RuleError
from esat.rules import read_rules

from .conftest import BOOL, OPERATORS, Case, Laboratory, compiled, leaf, multiset

A, B, C = leaf(0), leaf(1), leaf(2)
ROW, SCALAR = 0b101, -1
INT32 = 3


def product(*numerators: str, over: tuple[str, ...] = ()) -> str:
    return f"(NaryProd {multiset(numerators)} {multiset(over)})"


def guards_of(text: str) -> str:
    """The compiled text of one rule."""
    return compiled(text).chunks[-1].text


def test_bare_variable_fires_only_at_the_shape_of_the_whole(laboratory: Laboratory) -> None:
    rule = "(rewrite (Switch c x x) x)"
    term = f"(Switch (Lt {A} {A}) {B} {B})"
    laboratory.check(rule, [Case(term, B)])
    laboratory.check(rule, [Case(term, B)], words={0: ROW, 1: ROW})
    laboratory.check(rule, [Case(term, B, equal=False)], words={1: ROW})
    laboratory.check(rule, [Case(term, B, equal=False)], words={1: SCALAR})


def test_fewer_operands_fire_where_the_rest_keeps_the_shape(laboratory: Laboratory) -> None:
    rule = "(rewrite (Mul (Exp x) (Sin y)) (H1 x))"
    alone = product(f"(Exp {A})", f"(Sin {B})")
    with_matrix = product(f"(Exp {A})", f"(Sin {B})", C)
    laboratory.check(rule, [Case(alone, f"(H1 {A})", equal=False)], words={0: ROW})
    laboratory.check(rule, [Case(with_matrix, product(f"(H1 {A})", C))], words={0: ROW})
    laboratory.check(rule, [Case(alone, f"(H1 {A})")], words={0: ROW, 1: ROW})


def test_reduced_shapes_are_compared_after_normalisation(laboratory: Laboratory) -> None:
    # Both axes reduced: the word of the left side is -1, that computed for the right side 0b111.
    rule = "(rewrite (Foo (ReduceSum x m) k) (ReduceSum x m))"
    laboratory.check(rule, [Case(f"(Foo (ReduceSum {A} 3) $one)", f"(ReduceSum {A} 3)")])
    laboratory.check(rule, [Case(f"(Foo (ReduceSum {A} 1) {B})", f"(ReduceSum {A} 1)", equal=False)])
    laboratory.check(rule, [Case(f"(Foo (ReduceSum {A} 1) {B})", f"(ReduceSum {A} 1)")], words={1: ROW})


def test_dtypes_must_agree(laboratory: Laboratory) -> None:
    rule = "(rewrite (Cast (Exp x) d) x)"
    laboratory.check(rule, [Case(f"(Cast (Exp {A}) 10)", A)])
    laboratory.check(rule, [Case(f"(Cast (Exp {A}) 9)", A, equal=False)])


@pytest.mark.parametrize(
    "rule",
    [
        "(rewrite (Add (Mul a b) (Mul a c)) (Mul a (Add b c)))",
        "(rewrite (Mul x (Sigmoid x)) (Div x (Add (K 1.0 d) (Exp (Neg x)))) :when ((= d (dt x))))",
        "(rewrite (ReduceSum (ReduceSum x m) k) (ReduceSum x (| k m)))",
        "(rewrite (ReduceSum (Add x y) m) (Add (ReduceSum x m) (ReduceSum y m)))",
        "(rewrite (DimShuffle (DimShuffle x p) q) (DimShuffle x (ds-comp p q)))",
        "(rewrite (DimShuffle (Maximum x y) p) (Maximum (DimShuffle x p) (DimShuffle y p)))",
        "(rewrite (Not (Lt x y)) (Ge x y))",
        "(rewrite (Switch (Not c) x y) (Switch c y x))",
        "(rewrite (Tanh (Maximum x x)) (Tanh x))",
    ],
)
def test_no_guard_where_types_are_proven(rule: str) -> None:
    surface = prepare(read_rules(rule).rules[0], {**OPERATORS, **CORE})
    guarded = with_type_guards(surface)
    assert guarded.guards == surface.guards
    assert not guarded.shape_guards


@pytest.mark.parametrize(
    ("rule", "guard"),
    [
        ("(rewrite (Exp (Log x)) x)", None),
        ("(rewrite (Maximum x y) x)", "(= (bp ?root) (bp ?x))"),
        ("(rewrite (Foo x y) (H1 y))", "(= (bp ?root) (bp ?y))"),
        ("(rewrite (Switch c x x) x :when ((= (bp x) (bp (Switch c x x)))))", "(= (bp ?x) "),
        ("(rewrite (Cast x d) x)", "(= (dt ?root) (dt ?x))"),
        ("(rewrite (Foo x y) (Switch (Lt x y) x z) :when ((= (H1 x) (H2 z))))", "(bp ?z)"),
        ("(rewrite (Switch c x y) (Switch y x x))", "(= (dt ?root) 0)"),
    ],
)
def test_guards_added(rule: str, guard: str | None) -> None:
    text = guards_of(rule)
    assert (guard in text) if guard else "(bp " not in text


def test_impossible_types_are_refused() -> None:
    with pytest.raises(RuleError, match=r"user.egg:2:1: rule 'odd': .*dtype id"):
        compiled('\n(rewrite (Lt x y) (Switch (Lt x y) (K 1.0 10) (K 2.0 9)) :name "odd")')


def test_rules_about_numbers_leave_bools_alone(laboratory: Laboratory) -> None:
    rule = "(rewrite (Add (Not x) (Not x)) (Not x))"
    logical_or = f"(Add (Not {A}) (Not {A}))"
    laboratory.check(rule, [Case(logical_or, f"(Not {A})")], dtype=BOOL)
    laboratory.check("(rewrite (Add x x) (H1 x))", [Case(f"(Add {A} {A})", f"(H1 {A})", False)], dtype=BOOL)
    laboratory.check("(rewrite (Add x x) (H1 x))", [Case(f"(Add {A} {A})", f"(H1 {A})")], dtype=INT32)
    explicit = "(rewrite (Add x x) (H1 x) :when ((= (dt x) 0)))"
    laboratory.check(explicit, [Case(f"(Add {A} {A})", f"(H1 {A})")], dtype=BOOL)
    laboratory.check(explicit, [Case(f"(Add {A} {A})", f"(H1 {A})", False)], dtype=INT32)


def test_products_of_integers_get_no_denominator(laboratory: Laboratory) -> None:
    rule = "(rewrite (Foo x y) (Div x y))"
    laboratory.check(rule, [Case(f"(Foo {A} {B})", f"(Div {A} {B})")])
    laboratory.check(rule, [Case(f"(Foo {A} {B})", f"(Div {A} {B})", equal=False)], dtype=INT32)


def test_integers_reassociate(laboratory: Laboratory) -> None:
    rule = "(rewrite (Mul (H1 x) (H2 y)) (Foo x y))"
    term = f"(Mul (Mul (H2 {A}) {C}) (H1 {B}))"
    laboratory.check(rule, [Case(term, product(f"(Foo {B} {A})", C))], dtype=INT32)
