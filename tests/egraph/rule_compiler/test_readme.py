"""The examples in the guidelines for rules can be read and compiled, and do what the guidelines say."""

from __future__ import annotations

import re
from importlib import resources

from esat.egraph.analyses.facts import FACT_OPERATORS
from esat.egraph.language.constructors import op_signature
from esat.egraph.preparation.rule_compiler import CompiledRules, compile_rules
from esat.rules import Operator, elementwise, read_rules

from .conftest import Case, Laboratory, compiled, leaf

README = resources.files("esat.rules").joinpath("README.md").read_text(encoding="utf-8")
EXAMPLES = [block.strip() for block in re.findall(r"```lisp\n(.*?)```", README, re.DOTALL)]
RULESETS = read_rules("(ruleset trigonometric)").rulesets


def compiled_example(text: str) -> CompiledRules:
    invented = {
        "Foo": elementwise(2),
        "Inverse": elementwise(1),
        "nonsingular": Operator(("T",), "Unit"),
    }
    operators = {**op_signature().operators, **FACT_OPERATORS, **invented}
    return compile_rules(read_rules(text, rulesets=RULESETS, file="README.md").rules, operators)


def test_every_example_compiles() -> None:
    assert len(EXAMPLES) >= 8
    for example in EXAMPLES:
        rules = compiled_example(example)
        assert rules.origins
        for rule, _ in rules.dropped:
            line = example.splitlines()[rule.line - 1]
            assert "dropped" in line or "Neg (Neg x)" in line


def test_negative_constants_stand_on_the_other_side(laboratory: Laboratory) -> None:
    term = f"(Add (Exp {leaf(0)}) (K -1.0 10))"
    good = "(rewrite (Sub (Exp x) one) (Expm1 x) :when ((= (val one) 1.0)))"
    laboratory.check(good, [Case(term, f"(Expm1 {leaf(0)})")])


def test_one_over_x_matches_both_spellings(laboratory: Laboratory) -> None:
    for left in ("(Reciprocal (Exp x))", "(Div one (Exp x))"):
        guard = ":when ((= (val one) 1.0))" if "one" in left else ""
        rule = f"(rewrite (Tanh {left}) (H1 x) {guard})"
        for term in (f"(Reciprocal (Exp {leaf(0)}))", f"(Div $one (Exp {leaf(0)}))"):
            laboratory.check(rule, [Case(f"(Tanh {term})", f"(H1 {leaf(0)})")])


def test_copying_rules_expand_and_homomorphisms_do_not() -> None:
    assert compiled("(rewrite (Mul x (Add y z)) (Add (Mul x y) (Mul x z)))").expanding
    assert not compiled("(rewrite (Mul (Sqrt x) (Sqrt y)) (Sqrt (Mul x y)))").expanding
