"""Homomorphisms take all elements at once: one new term, not one per subset or partition."""

from __future__ import annotations

import pytest

from .conftest import Case, Laboratory, compiled, leaf, multiset

INPUTS = [leaf(index) for index in range(8)]
ALL_POSITIVE = " ".join(f"(positive {term})" for term in INPUTS)


def group(constructor: str, terms: list[str], negatives: tuple[str, ...] = ()) -> str:
    return f"({constructor} {multiset(terms)} {multiset(negatives)})"


def sizes_after(laboratory: Laboratory, rule: str, term: str, wanted: str) -> dict[str, int]:
    """Rows per table after three rounds on a term of eight elements."""
    engine, sizes = laboratory.engine, {}

    class Recorder(Laboratory):
        def __init__(self) -> None:
            self.engine = engine

        def _round(self, rules, *, expand):  # type: ignore[no-untyped-def]
            super()._round(rules, expand=expand)
            sizes.update(engine.sizes())

    Recorder().check(rule, [Case(term, wanted)], facts=ALL_POSITIVE)
    return sizes


@pytest.mark.parametrize(
    ("rule", "outer", "inner", "function"),
    [
        ("(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)))", "NaryProd", "NarySum", "Exp"),
        ("(rewrite (Add (Log y) (Log x)) (Log (Mul x y)))", "NarySum", "NaryProd", "Log"),
        (
            "(rewrite (Mul (Sqrt x) (Sqrt y)) (Sqrt (Mul x y)) :when ((positive x) (positive y)))",
            "NaryProd",
            "NaryProd",
            "Sqrt",
        ),
        (
            "(rewrite (Mul (Sqrt x) (Sqrt y)) (Sqrt (Mul x y)) :when ((positive x) (positive y) (!= x y)))",
            "NaryProd",
            "NaryProd",
            "Sqrt",
        ),
    ],
)
def test_collecting_makes_one_term(
    laboratory: Laboratory, rule: str, outer: str, inner: str, function: str
) -> None:
    term = group(outer, [f"({function} {term})" for term in INPUTS])
    sizes = sizes_after(laboratory, rule, term, f"({function} {group(inner, INPUTS)})")
    assert sizes[function] == len(INPUTS) + 1
    assert sizes["NarySum"] + sizes["NaryProd"] <= 4


def test_operands_that_must_differ_do(laboratory: Laboratory) -> None:
    rule = "(rewrite (Mul (Sqrt x) (Sqrt y)) (Sqrt (Mul x y)) :when ((positive x) (positive y) (!= x y)))"
    term = group("NaryProd", [f"(Sqrt {INPUTS[0]})"] * 2)
    sizes = sizes_after(laboratory, rule, term, term)
    assert sizes["Sqrt"] == 1
    more = group("NaryProd", [f"(Sqrt {term})" for term in (INPUTS[0], INPUTS[0], INPUTS[1])])
    wanted = group("NaryProd", [f"(Sqrt {INPUTS[0]})", f"(Sqrt {group('NaryProd', INPUTS[:2])})"])
    Laboratory().check(rule, [Case(more, wanted)], facts=ALL_POSITIVE)


def test_divisors_become_factors_all_at_once(laboratory: Laboratory) -> None:
    term = group("NaryProd", INPUTS[:1], tuple(f"(Exp {term})" for term in INPUTS[1:]))
    inverses = [f"(Exp (NarySum {multiset([])} {multiset([term])}))" for term in INPUTS[1:]]
    wanted = group("NaryProd", [INPUTS[0], *inverses])
    sizes = sizes_after(laboratory, "(rewrite (Reciprocal (Exp x)) (Exp (Neg x)))", term, wanted)
    assert sizes["Exp"] == 2 * len(INPUTS[1:])
    assert sizes["NaryProd"] <= 3


def test_divisors_that_a_guard_refuses_stay(laboratory: Laboratory) -> None:
    rule = "(rewrite (Reciprocal (Pair x y)) (Pair x (Neg y)) :when ((positive x)))"
    a, b, c, d = INPUTS[:4]
    term = group("NaryProd", [d], (f"(Pair {a} {c})", f"(Pair {b} {c})"))
    inverse = f"(Pair {a} (NarySum {multiset([])} {multiset([c])}))"
    case = Case(term, group("NaryProd", [d, inverse], (f"(Pair {b} {c})",)))
    laboratory.check(rule, [case], facts=f"(positive {a})")
    laboratory.check(rule, [Case(case.term, case.wanted, equal=False)], facts=f"(positive {b})")


def test_a_guard_of_the_shape_that_both_have_is_one_of_both() -> None:
    rule = """(rewrite (Add (Pair x y) (Pair x z)) (Pair x (Add y z))
                       :when ((= (bp y) (bp z)) (> (bp y) 0)))"""
    assert "argument/" in compiled(rule).text
    assert "argument/" not in compiled(rule.replace("(= (bp y) (bp z))", "")).text


def test_distributing_makes_one_term(laboratory: Laboratory) -> None:
    rule = "(rewrite (Log (Mul x y)) (Add (Log x) (Log y)) :when ((positive x) (positive y)))"
    wanted = group("NarySum", [f"(Log {term})" for term in INPUTS])
    sizes = sizes_after(laboratory, rule, f"(Log {group('NaryProd', INPUTS)})", wanted)
    assert sizes["Log"] == len(INPUTS) + 1


def test_quotients_distribute(laboratory: Laboratory) -> None:
    rule = "(rewrite (Log (Div x y)) (Sub (Log x) (Log y)) :when ((positive x) (positive y)))"
    term = f"(Log {group('NaryProd', INPUTS[:3], tuple(INPUTS[3:5]))})"
    logarithms = [f"(Log {term})" for term in INPUTS[:5]]
    wanted = group("NarySum", logarithms[:3], tuple(logarithms[3:]))
    laboratory.check(rule, [Case(term, wanted)], facts=ALL_POSITIVE)
    laboratory.check(rule, [Case(term, wanted, equal=False)], facts=f"(positive {INPUTS[0]})")


def test_shared_operands_may_be_guarded(laboratory: Laboratory) -> None:
    rule = "(rewrite (Mul (Pair x y) (Pair x z)) (Pair x (Add y z)) :when ((positive x)))"
    assert "argument/" in compiled(rule).text
    a, b, c = INPUTS[:3]
    case = Case(
        group("NaryProd", [f"(Pair {a} {b})", f"(Pair {a} {c})"]), f"(Pair {a} {group('NarySum', [b, c])})"
    )
    laboratory.check(rule, [case], facts=f"(positive {a})")
    laboratory.check(rule, [Case(case.term, case.wanted, equal=False)], facts=f"(positive {b})")


def test_both_directions_together_end(laboratory: Laboratory) -> None:
    rule = "(birewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)))"
    term = group("NaryProd", [f"(Exp {term})" for term in INPUTS])
    sizes = sizes_after(laboratory, rule, term, f"(Exp {group('NarySum', INPUTS)})")
    assert sizes["Exp"] == len(INPUTS) + 1


def test_elements_with_other_operands_stay(laboratory: Laboratory) -> None:
    rule = "(rewrite (Add (MatMul a b r) (MatMul a c r)) (MatMul a (Add b c) r) :when ((= (bp b) (bp c))))"
    a, b, c, d = INPUTS[:4]
    term = group("NarySum", [f"(MatMul {a} {b} 2)", f"(MatMul {a} {c} 2)", f"(MatMul {d} {c} 2)"])
    joined = group("NarySum", [f"(MatMul {a} {group('NarySum', [b, c])} 2)", f"(MatMul {d} {c} 2)"])
    laboratory.check(rule, [Case(term, joined)])
    laboratory.check(rule, [Case(term, joined, equal=False)], words={1: 0b101})


def test_facts_of_all_elements_hold_of_the_whole(laboratory: Laboratory) -> None:
    rules = (
        "(rule ((= e (Mul x y)) (positive x) (positive y)) ((positive e)))"
        "(rewrite (Abs x) x :when ((positive x)))"
    )
    term = group("NaryProd", INPUTS[:5])
    laboratory.check(rules, [Case(f"(Abs {term})", term)], facts=ALL_POSITIVE)
    laboratory.check(rules, [Case(f"(Abs {term})", term, equal=False)], facts=f"(positive {INPUTS[0]})")
    over = group("NaryProd", INPUTS[:4], (INPUTS[4],))
    laboratory.check(rules, [Case(f"(Abs {over})", over, equal=False)], facts=ALL_POSITIVE)


@pytest.mark.parametrize(
    "rule",
    [
        "(rewrite (Mul (Exp x) (Sqrt y)) (Exp (Add x y)))",
        "(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x (H1 y))))",
        "(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)) :when ((positive x)))",
        "(rewrite (Mul (Exp x) (Exp y)) (Exp (Add x y)) :when ((Lt x y)))",
        "(rewrite (Add (MatMul a b r) (MatMul c b r)) (MatMul (Add a c) b 2))",
    ],
)
def test_unlike_rules_are_not_taken_for_homomorphisms(rule: str) -> None:
    assert "argument/" not in compiled(rule).text


def test_guards_on_both_operands_stay_bulk() -> None:
    guards = ":when ((= (bp b) (bp c)))"
    rule = f"(rewrite (Add (MatMul a b r) (MatMul a c r)) (MatMul a (Add b c) r) {guards})"
    assert "argument/" in compiled(rule).text
