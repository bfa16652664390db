"""The negative of an operand within a pattern is found whatever the terms of both classes are."""

from __future__ import annotations

import pytest

from .conftest import Case, Laboratory, compiled, leaf

A, B, C = map(leaf, range(3))
RULE = "(rewrite (Foo (Exp (Neg x)) (Sin x)) (H1 x))"
IN_A_SUM = "(rewrite (Add (Exp (Neg x)) (Sin x)) (H1 x))"


@pytest.mark.parametrize(
    ("negative", "operand"),
    [
        (f"(Neg {A})", A),
        (f"(Sub {B} {A})", f"(Sub {A} {B})"),
        (f"(Neg (Add {A} {B}))", f"(Add {B} {A})"),
        (f"(Sub (Neg {A}) {B})", f"(Add {A} {B})"),
        (f"(Neg (Mul {A} {B}))", f"(Mul {B} {A})"),
    ],
)
def test_a_term_and_a_sum_are_found_beside_their_negatives(
    laboratory: Laboratory, negative: str, operand: str
) -> None:
    laboratory.check(RULE, [Case(f"(Foo (Exp {negative}) (Sin {operand}))", f"(H1 {operand})")])
    term = f"(Add (Sin {operand}) (Add {C} (Exp {negative})))"
    laboratory.check(IN_A_SUM, [Case(term, f"(Add {C} (H1 {operand}))")])


@pytest.mark.parametrize("other", [A, B, f"(Neg {B})", f"(Sub {A} {B})"])
def test_what_is_not_the_negative_is_not_taken_for_it(laboratory: Laboratory, other: str) -> None:
    laboratory.check(RULE, [Case(f"(Foo (Exp {other}) (Sin {A}))", f"(H1 {A})", equal=False)])


def test_one_rule_is_enough() -> None:
    assert compiled(RULE).text.count("(rule ") == 1
    assert "NarySum" not in compiled(RULE).text


@pytest.mark.parametrize(("function", "is_odd"), [("Tanh", True), ("Cos", False)])
def test_rules_about_signs_do_not_double_what_is_made_of_differences(
    laboratory: Laboratory, function: str, is_odd: bool
) -> None:
    """Neither a - b nor b - a is simpler: each would bring the other, and all that reads it."""
    sign = "(Neg {})" if is_odd else "{}"
    rule = f"(rewrite ({function} (Neg x)) {sign.format(f'({function} x)')})"
    one, other = f"({function} (Sub {A} {B}))", f"({function} (Sub {B} {A}))"
    wanted = sign.format(other)
    laboratory.check(rule, [Case(one, wanted, equal=False)])
    laboratory.check(rule, [Case(f"(Pair {one} {other})", f"(Pair {wanted} {other})")])
