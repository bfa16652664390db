"""Rules that say what the algebra knows."""

from esat.__main__ import main
from esat.rules.rule import read_rules
from esat.soundness.superfluous import superfluous

RULES = """
(ruleset mine :tags (fast_run) :soundness real)
(rewrite (Sub (Sqr x) (Sqr y)) (Mul (Add x y) (Sub x y)) :ruleset mine :name "difference-of-squares")
(rewrite (Add (Mul x (Sub one t)) (Mul x t)) x :when ((= (val one) 1.0)) :ruleset mine :name "mixture")
(rewrite (Exp (Neg (Neg x))) (Exp x) :ruleset mine :name "makes-another-op")
(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :ruleset mine :name "says-something-of-tanh")
(rewrite (Pow x z) (Mul x (Mul x x)) :when ((= (val z) 3.0)) :ruleset mine :name "makes-a-power")
(rewrite (Sub (Sqr (Cosh x)) (Sqr (Sinh x))) (K 1.0 d) :when ((= d (dt x)) (= -1 (bp x)))
         :ruleset mine :name "hyperbola")
"""


def test_rules_that_algebra_implies_are_named(tmp_path, capsys) -> None:
    rules = read_rules(RULES).rules
    assert [rule.name for rule in superfluous(rules)] == [
        "difference-of-squares",
        "mixture",
        "hyperbola",
    ]
    file = tmp_path / "mine.egg"
    file.write_text("\n".join(RULES.strip().splitlines()[:2] + RULES.strip().splitlines()[4:5]))
    assert main(["rules", "check", str(file)]) == 0
    told = capsys.readouterr().out
    assert "rule 'difference-of-squares' is superfluous: algebra implies it" in told
    assert told.count("superfluous") == 1
