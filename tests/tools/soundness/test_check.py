"""The gate lets true rules pass, and catches rules that are wrong in every way we know of."""

import numpy as np
import pytest

from esat.errors import RuleError
from esat.tools.soundness import SampledPoint, check

TRUE = {
    "odd function": "(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :when ((<= (dt x) 11)) :soundness exact)",
    "ill-conditioned near zero": "(rewrite (Log (Add o x)) (Log1p x) :when ((= (val o) 1.0) (<= (dt x) 11)))",
    "cancelling": "(rewrite (Sub (Exp x) o) (Expm1 x) :when ((= (val o) 1.0)))",
    "overflows on one side": "(rewrite (Log (Exp x)) x :when ((<= (dt x) 11)))",
    "guarded logarithm": "(rewrite (Exp (Log x)) x :when ((positive x)))",
    "guarded powers": "(rewrite (Pow (Pow x y) z) (Pow x (Mul y z)) :when ((positive x)))",
    "masks": "(rewrite (ReduceSum (Mul a x) m) (Mul a (ReduceSum x m))"
    " :when ((= m (& m (bp a))) (= (bp x) (bp (Mul a x)))))",
    "masks that type guards imply": "(rewrite (ReduceSum (Mul a x) m) (Mul a (ReduceSum x m)))",
    "a rule with a union": "(rule ((= e (ReduceSum (DimShuffle x p) m)) (= k (ds-unmask m p)))"
    " ((union e (DimShuffle (ReduceSum x k) p))))",
    "unions of what is bound in the head": "(rule ((= e (Sub x y))) ((let n (Neg y)) (union e (Add x n))))",
    "cancelling division": "(rewrite (Div (Mul x y) y) x)",
    "integers wrap around": "(rewrite (Sub (Add x y) y) x)",
    "a fact in the head": "(rule ((= e (Cosh x)) (= 11 (dt x))) ((positive e)))",
    "unsafe": "(rewrite (Exp (Log x)) x :soundness unsafe)",
    "sorted twice": "(rewrite (Sort (Sort x a) a) (Sort x a) :soundness exact)",
    "parts of functions": "(rewrite (Subtensor (Exp x) i) (Exp (Subtensor x i)))",
    "parts that are chosen by numbers": "(rewrite (AdvancedSubtensor (Neg x) n (tuple (array)))"
    " (Neg (AdvancedSubtensor x n (tuple (array)))) :soundness exact)",
    "running sums of negatives": "(rewrite (CumSum (Neg x) a) (Neg (CumSum x a)))",
    "joined roots": "(rewrite (Join (Exp x) (Exp y) a) (Exp (Join x y a)))",
    "a fact of an operand that is sorted": "(rewrite (Sort (Abs x) a) (Sort x a) :when ((nonnegative x)))",
    "matrix products": "(rewrite (MatMul (MatMul x y r) z r) (MatMul x (MatMul y z r) r)"
    " :when ((> (bp (MatMul x y r)) 0)))",
}

WRONG = {
    "exp-log without a guard": "(rewrite (Exp (Log x)) x)",
    "exp-log of what may be zero": "(rewrite (Exp (Log x)) x :when ((nonnegative x)))",
    "sqrt of a square without abs": "(rewrite (Sqrt (Sqr x)) x)",
    "square of a root without a guard": "(rewrite (Sqr (Sqrt x)) x)",
    "pow-pow without a guard": "(rewrite (Pow (Pow x y) z) (Pow x (Mul y z)))",
    "pow-mul-pow of what may be negative": "(rewrite (Mul (Pow x y) (Pow x z)) (Pow x (Add y z)))",
    "log of a product without a guard": "(rewrite (Log (Mul x y)) (Add (Log x) (Log y))"
    " :when ((<= (dt x) 11)))",
    "a sum of products": "(rewrite (ReduceSum (Mul a x) m) (Mul (ReduceSum a m) (ReduceSum x m)))",
    "sum of a constant": "(rewrite (ReduceSum (Add x a) m) (Add (ReduceSum x m) a)"
    " :when ((= m (& m (bp a)))))",
    "wrong sign": "(rewrite (Sub x (Neg y)) (Sub x y))",
    "wrong parity": "(rewrite (Cos (Neg x)) (Neg (Cos x)))",
    "wrong factor": "(rewrite (Sin (Mul t x)) (Mul (Sin x) (Cos x)) :when ((= (val t) 2.0)))",
    "exact claimed for reassociation": "(rewrite (Add (Add x y) z) (Add x (Add y z)) :soundness exact)",
    "exact claimed for distribution": "(rewrite (Add (Mul a x) (Mul a y)) (Mul a (Add x y))"
    " :soundness exact)",
    "exact that loses the sign of zero": "(rewrite (Add x z) x :when ((= (val z) 0.0)) :soundness exact)",
    "exact that loses NaN": "(rewrite (Sub x x) (Fill x (K 0.0 d)) :when ((= d (dt x))) :soundness exact)",
    "exact of a partial identity": "(rewrite (Log (Exp x)) x :soundness exact)",
    "wrap-around of integers": "(rewrite (Abs (Mul x y)) (Mul (Abs x) (Abs y)))",
    "order of wrapped integers": "(rewrite (ReduceMax (Add x a) m) (Add (ReduceMax x m) a)"
    " :when ((= m (& m (bp a))) (= (bp x) (bp (Add x a)))))",
    "minimum of unsigned integers": "(rewrite (Maximum (Neg x) (Neg y)) (Neg (Minimum x y)))",
    "unsafe, and wrong for valid input": "(rewrite (Exp (Log x)) (Abs (Add x x)) :soundness unsafe)",
    "branch cut": "(rewrite (Log (Exp x)) x)",
    "reductions exchanged": "(rewrite (ReduceMax (ReduceSum x m) k) (ReduceSum (ReduceMax x k) m))",
    "transposes in the wrong order": "(rule ((= e (DimShuffle (MatMul x y r) p)) (= r 2) (= 0 (ds-nth p 1))"
    " (= 1 (ds-nth p 0)) (= 2 (ds-rank p))) ((union e (MatMul (DimShuffle x p) (DimShuffle y p) r))))",
    "permutations the wrong way round": "(rewrite (DimShuffle (DimShuffle x p) q)"
    " (DimShuffle x (ds-comp q p)))",
    "sorted along another axis": "(rewrite (Sort (Sort x a) b) (Sort x a))",
    "sorted backwards": "(rewrite (Sort (Neg x) a) (Neg (Sort x a)))",
    "parts of other functions": "(rewrite (Subtensor (Exp x) i) (Sin (Subtensor x i)))",
    "running products for sums": "(rewrite (CumSum x a) (CumProd x a))",
    "an axis that is not there": "(rewrite (Sort x a) (Sort x (+ a 1)))",
    "a joined order": "(rewrite (Join x y a) (Join y x a))",
    "the wrong half": "(rewrite (Output (Split x a 2) 0) (Output (Split x a 2) 1))",
    "a lossy cast": "(rewrite (Cast (Cast x d) c) (Cast x c))",
    "a fact that is false": "(rule ((= e (Sinh x)) (= 11 (dt x))) ((positive e)))",
    "a fact concluded from success": "(rule ((= e (Log x)) (= 11 (dt x))) ((positive x)))",
    "a value that is false": "(rule ((= e (Sqr x)) (= 1.0 (val x))) ((set (val e) 2.0)))",
    "a broadcast word that is false": "(rule ((= e (Add x y)) (= b (bp x))) ((set (bp e) b)))",
    "a sign where there is none": "(rewrite (Abs x) x :when ((!= (dt x) 9)))",
    "nearly right": "(rewrite (Exp2 x) (Exp (Mul (K 0.6931471 d) x)) :when ((= d (dt x)) (= d 11)))",
    "an error for empty axes": "(rewrite (ReduceSum (Sub x x) m) (Sub (ReduceMax x m) (ReduceMax x m))"
    " :when ((= (dt x) 4)) :soundness exact)",
}

UNTESTED = {
    "no sample satisfies the guard": "(rewrite (Neg (Neg x)) x :when ((= (dt x) 99)))",
    "a relation of the file": "(relation even (T)) (rewrite (Neg (Neg x)) x :when ((even x)))",
    "states of generators": "(rewrite (Output (RandomNormal s a b n k) 1)"
    " (Output (RandomLaplace s a b n k) 1))",
    "a head that says nothing of values": "(relation seen (T)) (rule ((= e (Neg x))) ((seen e)))",
}


@pytest.mark.parametrize("name", TRUE)
def test_true_rules_pass(name):
    report = check(TRUE[name])
    assert report.sound, str(report)
    assert all(verdict.points >= 20 for verdict in report.verdicts)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_caught(name):
    report = check(WRONG[name])
    assert not report.sound
    (verdict,) = report.verdicts
    assert verdict.failures, verdict.untested


@pytest.mark.parametrize("name", UNTESTED)
def test_rules_that_cannot_be_sampled_are_reported(name):
    report = check(UNTESTED[name])
    assert not report.sound
    assert all(verdict.untested and not verdict.failures for verdict in report.verdicts)
    assert "not tested" in str(report)


@pytest.mark.parametrize("seed", range(5))
def test_another_seed_gives_the_same_judgement(seed):
    names = ["exp-log of what may be zero", "a sum of products", "exact that loses the sign of zero"]
    for name in names:
        assert not check(WRONG[name], seed=seed).sound
    for name in ("ill-conditioned near zero", "masks", "cancelling division"):
        assert check(TRUE[name], seed=seed).sound


@pytest.mark.parametrize("guard", ["(positive x) (nonnegative y)", "(= 11 (dt x))"])
def test_numbers_instead_of_nan_are_told(guard):
    """Class real lets a rule say more than its left side does, which a user should hear of."""
    report = check(f"(rewrite (Add (Log x) (Log y)) (Log (Mul x y)) :when ({guard}))")
    (verdict,) = report.verdicts
    assert verdict.sound
    assert (verdict.invented is None) == ("positive" in guard)
    assert ("gives numbers where the left side is NaN" in str(report)) == ("positive" not in guard)
    assert ("left nan" in str(report)) == ("positive" not in guard)


def test_the_report_says_what_is_wrong_and_where():
    report = check('\n  (rewrite (Sqrt (Sqr x)) x :name "root" :when ((= (dt x) 11)))')
    (verdict,) = report.unsound
    text = str(report)
    assert verdict.rule.line == 2
    assert "<rules>:2:3: rule 'root' (real): wrong" in text
    assert "x = " in text
    assert "left" in text
    assert text.endswith("0 of 1 rules are sound, by " + str(verdict.points) + " points")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(rewrite (Expp x) x)", "unknown op Expp"),
        ("(rewrite (Exp x y) x)", "Exp takes 1 operands"),
        ("(rewrite (Exp x) y)", "the variable y is not bound"),
        ("(rewrite (Exp x", "never closed"),
    ],
)
def test_malformed_rules_are_errors(text, message):
    with pytest.raises(RuleError, match=message):
        check(text)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(RuleError, match="cannot read"):
        check(tmp_path / "missing.egg")


@pytest.mark.parametrize("soundness", ["exact", "real"])
def test_points_at_which_a_rule_held_are_reported(soundness):
    text = f"(rewrite (Tanh (Neg x)) (Neg (Tanh x)) :soundness {soundness} :name {{}})"
    reports = [check(text.format(f'"odd-{soundness}"')) for _ in range(2)]
    one, again = ([str(sample) for sample in report.verdicts[0].samples] for report in reports)
    assert one == again
    (verdict,) = reports[0].verdicts
    assert {sample.dtypes[0] for sample in verdict.samples} == set(verdict.dtypes)
    assert {sample.numbers for sample in verdict.samples} == {
        "ordinary",
        "special" if soundness == "exact" else "finite",
    }
    for sample in verdict.samples:
        assert sample.operands.startswith("x = ")
        np.testing.assert_allclose(sample.left, sample.right, rtol=1e-3)
        assert sample.difference < 1e-3
    assert any(sample.left not in (0, 1) for sample in verdict.samples)


def test_how_far_points_are_apart():
    def apart(left, right):
        return SampledPoint("finite", ("float64",), "", np.float64(left), np.float64(right)).difference

    assert apart(2.0, 2.5) == 0.25
    assert apart(0.0, 0.5) == 0.5
    assert apart(np.nan, np.nan) == apart(np.inf, np.inf) == 0.0
    assert np.isnan(apart(np.nan, 1.0))
