"""Rules that say what is known without them."""

from pathlib import Path

import pytest

from esat.__main__ import main
from esat.rules import RULES as PACKAGE
from esat.rules.language.rule import read_rules
from esat.tools.soundness.superfluous import superfluous

RULES = """
(ruleset mine :tags (fast_run) :soundness real)
(rewrite (Sub (Add x y) y) x :ruleset mine :name "cancels")
(rewrite (Mul x (Div y z)) (Div (Mul x y) z) :ruleset mine :name "associates")
(rewrite (Neg (Neg x)) x :ruleset mine :name "needed-in-strict-mode" :soundness exact)
(rewrite (Sub (Sqr x) (Sqr y)) (Mul (Add x y) (Sub x y)) :ruleset mine :name "needed-in-greedy-mode")
(rewrite (Add (Mul x (Sub one t)) (Mul x t)) x :when ((= (val one) 1.0)) :ruleset mine :name "mixture")
(rewrite (Exp (Neg (Neg x))) (Exp x) :ruleset mine :name "makes-another-op")
(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :ruleset mine :name "says-something-of-tanh")
(rewrite (Pow x z) (Mul x (Mul x x)) :when ((= (val z) 3.0)) :ruleset mine :name "makes-a-power")
(rewrite (Sub (Sqr (Cosh x)) (Sqr (Sinh x))) (K 1.0 d) :when ((= d (dt x)) (= -1 (bp x)))
         :ruleset mine :name "hyperbola")
"""


def test_rules_that_say_nothing_new_are_named(tmp_path, capsys) -> None:
    rules = read_rules(RULES).rules
    assert [rule.name for rule in superfluous(rules)] == ["cancels", "associates"]
    file = tmp_path / "mine.egg"
    lines = RULES.strip().splitlines()
    file.write_text("\n".join([*lines[:2], lines[3]]))
    assert main(["rules", "check", str(file)]) == 0
    told = capsys.readouterr().out
    assert "rule 'cancels' is superfluous: it is known without rules" in told
    assert told.count("superfluous") == 1


@pytest.mark.parametrize("topic", ["algebra.egg", "cancellation.egg", "exponential.egg", "reductions.egg"])
def test_no_rule_of_the_package_is_superfluous(topic) -> None:
    (file,) = (file for file in PACKAGE.files() if Path(file.file).name == topic)
    assert not superfluous(file.rules)
