"""Every rule fires at every size, sign and place of a sum or product, and only where it should."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from esat.rules import permutation_word

from .conftest import Case, Laboratory, compiled, leaf, nary

SUM, PRODUCT = "NarySum", "NaryProd"
A, B, C = leaf(0), leaf(1), leaf(2)
ONE = "$one"
TRANSPOSE = permutation_word((1, 0))


def total(*terms: str, minus: tuple[str, ...] = ()) -> str:
    """The sum of `terms` less `minus`."""
    return nary(SUM, [*((1, term) for term in terms), *((-1, term) for term in minus)])


def product(*terms: str, over: tuple[str, ...] = ()) -> str:
    """The product of `terms` divided by `over`."""
    return nary(PRODUCT, [*((1, term) for term in terms), *((-1, term) for term in over)])


@dataclass(frozen=True)
class Firing:
    """A rule, and signed elements that it replaces by those of `result` inside any group of the family."""

    name: str
    rule: str
    family: str
    elements: tuple[tuple[int, str], ...]
    result: str | tuple[str, ...]
    setting: dict[str, Any] = field(default_factory=dict)
    both_signs: bool = True


def element(term: str, sign: int = 1) -> tuple[int, str]:
    return sign, term


FIRINGS = [
    Firing(
        "two exponentials",
        "(rewrite (Add (Exp x) (Exp y)) (Foo x x))",
        SUM,
        (element(f"(Exp {A})"), element(f"(Exp {A})")),
        f"(Foo {A} {A})",
    ),
    Firing(
        "any two of a sum",
        "(rewrite (Add (Exp x) (Sin y)) (Foo x y))",
        SUM,
        (element(f"(Sin {A})"), element(f"(Exp {B})")),
        f"(Foo {B} {A})",
    ),
    Firing(
        "three of a sum",
        "(rewrite (Add (Exp x) (Add (Sin x) (Cos x))) (H1 x))",
        SUM,
        (element(f"(Sin {A})"), element(f"(Cos {A})"), element(f"(Exp {A})")),
        f"(H1 {A})",
    ),
    Firing(
        "non-linear",
        "(rewrite (Add (Mul a b) (Mul a c)) (Mul a (Add b c)))",
        SUM,
        (element(product(A, B)), element(product(C, A))),
        product(A, total(B, C)),
    ),
    Firing(
        "non-linear with long rests",
        "(rewrite (Add (Mul a b) (Mul a c)) (Mul a (Add b c)))",
        SUM,
        (element(product(A, B, leaf(3))), element(product(C, A, over=(leaf(4),)))),
        product(A, total(product(B, leaf(3)), product(C, over=(leaf(4),)))),
    ),
    Firing(
        "squares",
        "(rewrite (Add (Sqr (Sin x)) (Sqr (Cos x))) (OneLike x))",
        SUM,
        (element(product(f"(Sin {A})", f"(Sin {A})")), element(product(f"(Cos {A})", f"(Cos {A})"))),
        f"(OneLike {A})",
    ),
    Firing(
        "difference of squares",
        "(rewrite (Sub (Sqr a) (Sqr b)) (Mul (Add a b) (Sub a b)))",
        SUM,
        (element(product(A, A)), element(product(B, B), -1)),
        product(total(A, B), total(A, minus=(B,))),
        {"expansions": 1},
    ),
    Firing(
        "difference of logarithms",
        "(rewrite (Sub (Log x) (Log y)) (Log (Div x y)))",
        SUM,
        (element(f"(Log {A})"), element(f"(Log {B})", -1)),
        f"(Log {product(A, over=(B,))})",
        both_signs=False,
    ),
    Firing(
        "bare and nested variable",
        "(rewrite (Sub x (Floor x)) (Frac x))",
        SUM,
        (element(A), element(f"(Floor {A})", -1)),
        f"(Frac {A})",
    ),
    Firing(
        "bare and nested variable, bound to a sum",
        "(rewrite (Sub x (Floor x)) (Frac x))",
        SUM,
        (element(A), element(B), element(C, -1), element(f"(Floor {total(A, B, minus=(C,))})", -1)),
        f"(Frac {total(A, B, minus=(C,))})",
    ),
    Firing(
        "constant",
        "(rewrite (Sub (Exp x) one) (Expm1 x) :when ((= (val one) 1.0)))",
        SUM,
        (element(f"(Exp {A})"), element(ONE, -1)),
        f"(Expm1 {A})",
        both_signs=False,
    ),
    Firing(
        "matrix products",
        "(rewrite (Add (MatMul a b r) (MatMul a c r)) (MatMul a (Add b c) r) :when ((= (bp b) (bp c))))",
        SUM,
        (element(f"(MatMul {A} {B} 2)"), element(f"(MatMul {A} {C} 2)")),
        f"(MatMul {A} {total(B, C)} 2)",
    ),
    Firing(
        "logarithms in bulk",
        "(rewrite (Add (Log x) (Log y)) (Log (Mul x y)))",
        SUM,
        (element(f"(Log {A})"), element(f"(Log {B})"), element(f"(Log {C})")),
        f"(Log {product(A, B, C)})",
    ),
    Firing(
        "inner group",
        "(rewrite (Log (Add one (Exp x))) (Softplus x) :when ((= (val one) 1.0)))",
        SUM,
        (element(f"(Log {total(ONE, f'(Exp {A})')})"),),
        f"(Softplus {A})",
    ),
    Firing(
        "inner group with a rest",
        "(rewrite (Log (Add one x)) (Log1p x) :when ((= (val one) 1.0)))",
        SUM,
        (element(f"(Log {total(ONE, A, B, minus=(C,))})"),),
        f"(Log1p {total(A, B, minus=(C,))})",
    ),
    Firing(
        "inner negation",
        "(rewrite (Tanh (Neg x)) (Neg (Tanh x)))",
        SUM,
        (element(f"(Tanh {total(minus=(A,))})"),),
        f"(Neg (Tanh {A}))",
    ),
    Firing(
        "inner negation of a sum",
        "(rewrite (Tanh (Neg x)) (Neg (Tanh x)))",
        PRODUCT,
        (element(f"(Tanh {total(minus=(A, B))})"),),
        f"(Neg (Tanh {total(A, B)}))",
    ),
    Firing(
        "inner negation of a difference whose opposite is there",
        "(rewrite (Tanh (Neg x)) (Neg (Tanh x)))",
        PRODUCT,
        (element(f"(Pair (Tanh {total(B, minus=(A,))}) (Tanh {total(A, minus=(B,))}))"),),
        f"(Pair (Neg (Tanh {total(A, minus=(B,))})) (Tanh {total(A, minus=(B,))}))",
    ),
    Firing(
        "inner difference",
        "(rewrite (Abs (Sub (Exp x) y)) (Pair x y))",
        PRODUCT,
        (element(f"(Abs {total(f'(Exp {A})', minus=(B, C))})"),),
        f"(Pair {A} {total(B, C)})",
    ),
    Firing(
        "exponentials in bulk",
        "(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)))",
        PRODUCT,
        (element(f"(Exp {A})"), element(f"(Exp {B})"), element(f"(Exp {A})")),
        f"(Exp {total(A, B, A)})",
    ),
    Firing(
        "quotient of exponentials in bulk",
        "(rewrite (Div (Exp x) (Exp y)) (Exp (Sub x y)))",
        PRODUCT,
        (element(f"(Exp {A})"), element(f"(Exp {B})", -1), element(f"(Exp {C})")),
        f"(Exp {total(A, C, minus=(B,))})",
        both_signs=False,
    ),
    Firing(
        "guarded square roots in bulk",
        "(rewrite (Mul (Sqrt x) (Sqrt y)) (Sqrt (Mul x y)) :when ((positive x) (positive y)))",
        PRODUCT,
        (element(f"(Sqrt {A})"), element(f"(Sqrt {B})"), element(f"(Sqrt {leaf(5)})")),
        (f"(Sqrt {product(A, B)})", f"(Sqrt {leaf(5)})"),
        {"facts": f"(positive {A}) (positive {B})"},
    ),
    Firing(
        "repeated factor",
        "(rewrite (Mul x (Mul x x)) (H1 x))",
        PRODUCT,
        (element(A), element(A), element(A)),
        f"(H1 {A})",
    ),
    Firing(
        "factor and function of it",
        "(rewrite (Mul x (Sigmoid x)) (Foo x x))",
        PRODUCT,
        (element(A), element(f"(Sigmoid {A})")),
        f"(Foo {A} {A})",
    ),
    Firing(
        "factor and function of a product",
        "(rewrite (Mul x (Sigmoid x)) (Foo x x))",
        PRODUCT,
        (element(A), element(B), element(f"(Sigmoid {product(A, B)})")),
        f"(Foo {product(A, B)} {product(A, B)})",
    ),
    Firing(
        "numerator and denominator",
        "(rewrite (Div (Sin x) (Cos x)) (Tan x))",
        PRODUCT,
        (element(f"(Sin {A})"), element(f"(Cos {A})", -1)),
        f"(Tan {A})",
    ),
    Firing(
        "denominator holds the numerator",
        "(rewrite (Div x (Add x y)) (Ratio x y))",
        PRODUCT,
        (element(A), element(total(A, B, minus=(C,)), -1)),
        f"(Ratio {A} {total(B, minus=(C,))})",
    ),
    Firing(
        "denominator holds the numerator, a product",
        "(rewrite (Div x (Add x y)) (Ratio x y))",
        PRODUCT,
        (element(A), element(B), element(total(product(A, B), C), -1)),
        f"(Ratio {product(A, B)} {C})",
    ),
    Firing(
        "reciprocal",
        "(rewrite (Reciprocal (Add one (Exp (Neg x)))) (Sigmoid x) :when ((= (val one) 1.0)))",
        PRODUCT,
        (element(total(ONE, f"(Exp {total(minus=(A,))})"), -1),),
        f"(Sigmoid {A})",
    ),
    Firing(
        "inner reciprocal",
        "(rewrite (Log (Reciprocal x)) (Neg (Log x)))",
        SUM,
        (element(f"(Log {product(over=(A, B))})"),),
        f"(Neg (Log {product(A, B)}))",
    ),
    Firing(
        "logarithm of positive factors",
        "(rewrite (Log (Mul x y)) (Add (Log x) (Log y)) :when ((positive x) (positive y)))",
        SUM,
        (element(f"(Log {product(A, B, over=(C,))})"),),
        total(f"(Log {A})", f"(Log {B})", minus=(f"(Log {C})",)),
        {"facts": f"(positive {A}) (positive {B}) (positive {C})"},
    ),
    Firing(
        "transpose of a sum",
        "(rewrite (DimShuffle (Add x y) p) (Add (DimShuffle x p) (DimShuffle y p)))",
        PRODUCT,
        (element(f"(DimShuffle {total(A, B, minus=(C,))} {TRANSPOSE})"),),
        total(
            *(f"(DimShuffle {term} {TRANSPOSE})" for term in (A, B)),
            minus=(f"(DimShuffle {C} {TRANSPOSE})",),
        ),
    ),
    Firing(
        "factor out of a reduction",
        "(rewrite (ReduceSum (Mul a x) m) (Mul a (ReduceSum x m))"
        " :when ((= m (& m (bp a))) (= (bp x) (bp (Mul a x)))))",
        SUM,
        (element(f"(ReduceSum {product(A, B, C)} 1)"),),
        product(A, f"(ReduceSum {product(B, C)} 1)"),
        {"words": {0: 0b101}},
    ),
    Firing(
        "the rest as operand",
        "(rewrite (Log (Mul (Exp x) y)) (Add x (Log y)) :when ((positive y)))",
        SUM,
        (element(f"(Log {product(f'(Exp {A})', B, C)})"),),
        total(A, f"(Log {product(B, C)})"),
        {"facts": f"(positive {product(B, C)})", "expansions": 3},
    ),
]


@pytest.mark.parametrize("firing", FIRINGS, ids=[firing.name for firing in FIRINGS])
def test_fires_at_every_size_and_sign(laboratory: Laboratory, firing: Firing) -> None:
    cases = []
    for size in range(2, 7):
        for sign in (1, -1) if firing.both_signs else (1,):
            # Inputs of their own for each case, and of both signs, around the elements in question.
            first = 10 + 4 * (size % 2)
            others = [(1 if index % 2 else -1, leaf(first + index)) for index in range(size - 2)]
            placed = [(sign * own, term) for own, term in firing.elements]
            results = (firing.result,) if isinstance(firing.result, str) else firing.result
            term = nary(firing.family, [*others[1:], *placed, *others[:1]])
            wanted = nary(firing.family, [*others, *((sign, result) for result in results)])
            cases.append(Case(f"(Tanh {term})", f"(Tanh {wanted})"))
    laboratory.check(firing.rule, cases, **firing.setting)


def test_two_of_six_terms_wherever_they_stand(laboratory: Laboratory) -> None:
    rule = "(rewrite (Add (Exp x) (Exp y)) (Foo x y) :when ((Lt x y)))"
    cases = []
    for first in range(6):
        for second in range(first + 1, 6):
            terms = [leaf(20 + index) for index in range(6)]
            terms[first], terms[second] = f"(Exp {A})", f"(Exp {B})"
            others = [term for term in terms if not term.startswith("(Exp")]
            chain = terms[0]
            for term in terms[1:]:
                chain = f"(Add {chain} {term})"
            cases.append(Case(f"(H2 {chain})", f"(H2 {total(f'(Foo {A} {B})', *others)})"))
    laboratory.check(rule, cases, facts=f"(Lt {A} {B})")


def test_cancels_in_a_product_of_ten() -> None:
    engine = Laboratory().engine
    rules = compiled('(rewrite (Div (Mul x y) y) x :name "cancel")')
    for chunk in rules.chunks:
        engine.load(chunk.text)
    for number in range(12):
        engine.load(f"(set (dt (In {number})) 10) (set (bp (In {number})) 4)")
    term = product(*(leaf(index) for index in range(10)), over=(leaf(4),))
    engine.load(f"(let $e {term}) (set (dt $e) 10) (set (bp $e) 4)")
    # Only the rule itself runs: the core cancels, too.
    engine.execute("(run-schedule (saturate (run esat-index)) (saturate (run esat-known)) (run rules-user))")
    engine.execute(f"(check (= $e {product(*(leaf(index) for index in range(10) if index != 4))}))")


NOT_FIRING = [
    (
        "(rewrite (Add (Exp x) (Exp y)) (Foo x y))",
        total(f"(Exp {A})", minus=(f"(Exp {B})",)),
        f"(Foo {A} {B})",
    ),
    ("(rewrite (Add (Exp x) (Exp x)) (Foo x x))", total(f"(Exp {A})", C), total(f"(Foo {A} {A})", C)),
    (
        "(rewrite (Add (Sqr (Sin x)) (Sqr (Cos x))) (OneLike x))",
        total(product(f"(Sin {A})", f"(Sin {A})"), product(f"(Cos {B})", f"(Cos {B})")),
        f"(OneLike {A})",
    ),
    (
        "(rewrite (Add (Sqr (Sin x)) (Sqr (Cos x))) (OneLike x))",
        total(product(C, f"(Sin {A})", f"(Sin {A})"), product(f"(Cos {A})", f"(Cos {A})")),
        f"(OneLike {A})",
    ),
    (
        "(rewrite (Log (Add one (Exp x))) (Softplus x) :when ((= (val one) 1.0)))",
        f"(Log {total(ONE, B, f'(Exp {A})')})",
        f"(Softplus {A})",
    ),
    (
        "(rewrite (Log (Add one (Exp x))) (Softplus x) :when ((= (val one) 1.0)))",
        f"(Log {total(ONE, minus=(f'(Exp {A})',))})",
        f"(Softplus {A})",
    ),
    (
        "(rewrite (Log (Add one (Exp x))) (Softplus x) :when ((= (val one) 1.0)))",
        f"(Log {total(B, f'(Exp {A})')})",
        f"(Softplus {A})",
    ),
    ("(rewrite (Sub x (Floor x)) (Frac x))", total(A, f"(Floor {A})"), f"(Frac {A})"),
    ("(rewrite (Sub x (Floor x)) (Frac x))", total(A, minus=(f"(Floor {B})",)), f"(Frac {A})"),
    ("(rewrite (Div x (Add x y)) (Ratio x y))", product(A, over=(total(B, minus=(A,)),)), f"(Ratio {A} {B})"),
    ("(rewrite (Mul x (Mul x x)) (H1 x))", product(A, A, B), f"(H1 {A})"),
    (
        "(rewrite (Tanh (Neg x)) (Neg (Tanh x)))",
        f"(Tanh {total(A, B)})",
        f"(Neg (Tanh {total(minus=(A, B))}))",
    ),
    (
        "(rewrite (Log (Mul x y)) (Add (Log x) (Log y)) :when ((positive x) (positive y)))",
        f"(Log {product(A, B)})",
        total(f"(Log {A})", f"(Log {B})"),
    ),
]


@pytest.mark.parametrize(("rule", "term", "wanted"), NOT_FIRING)
def test_does_not_fire(laboratory: Laboratory, rule: str, term: str, wanted: str) -> None:
    laboratory.check(rule, [Case(term, wanted, equal=False)], facts=f"(positive {A})", expansions=2)


def test_surface_chains_match_like_nary_terms(laboratory: Laboratory) -> None:
    rule = "(rewrite (Add (Exp x) (Sin y)) (Foo x y))"
    term = f"(Sub (Add (Sub {C} {leaf(9)}) (Exp {A})) (Neg (Sin {B})))"
    laboratory.check(rule, [Case(term, total(f"(Foo {A} {B})", C, minus=(leaf(9),)))])


def test_subsumed_root(laboratory: Laboratory) -> None:
    # The sum is subsumed by the first match: the second rule does not see it any more.
    rules = "(rewrite (Add (Exp x) (Sin y)) (Foo x y) :subsume) (rewrite (Foo x y) (Add (H1 x) (H2 y)))"
    laboratory.check(rules, [Case(total(f"(Exp {A})", f"(Sin {B})"), total(f"(H1 {A})", f"(H2 {B})"))])
