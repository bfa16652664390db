"""``why_not_equal``: equal by a chain of rules, different at operands, or not found."""

import numpy as np
import pytest

import esat
from esat.errors import CallError, OptimizerError

X, Y = esat.vector("x"), esat.vector("y")
A, B, K = esat.matrix("a"), esat.matrix("b"), esat.ivector("i")


def test_equal_expressions_come_with_their_rules() -> None:
    answer = esat.why_not_equal(esat.log(1.0 + X), esat.log1p(X))
    assert answer.verdict == "equal"
    (chain,) = answer.chains
    assert [(step.form, step.rule) for step in chain.steps] == [("log(1 + x)", ""), ("log1p(x)", "log1p")]
    assert str(answer) == "equal\nlog(1 + x), as written\n  = log1p(x), by log1p"
    transposed = esat.why_not_equal((A @ B).T, B.T @ A.T)
    assert transposed.chains[0].rules == ("transpose-matmul",)
    angle = esat.why_not_equal(esat.sin(X + Y), esat.sin(X) * esat.cos(Y) + esat.cos(X) * esat.sin(Y))
    assert angle.verdict == "equal"
    assert angle.chains[0].steps[1].rule.startswith("algebra: ")


def test_what_is_written_alike() -> None:
    for one, other in ((X, X), (X * Y, Y * X), (1.0, 1.0), (X + 0.0, X + 0.0)):
        answer = esat.why_not_equal(one, other)
        assert (answer.verdict, str(answer)) == ("equal", "equal, as written")


def test_local_optimizers_take_part() -> None:
    answer = esat.why_not_equal(esat.linalg.inv(A) @ X, esat.linalg.solve(A, X))
    assert answer.verdict == "equal"
    assert "the local optimizer local_inverse_to_solve" in answer.chains[0].rules


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (esat.sqrt(X * X), X),
        (A @ B, B @ A),
        (esat.exp(X) * esat.exp(Y), esat.exp(X) + esat.exp(Y)),
        (X.astype("float32") + 1, X.astype("float32") + 1.01),
        (K // 2, K),
    ],
)
def test_different_expressions_come_with_operands(left: esat.Variable, right: esat.Variable) -> None:
    leaves = {one for one in esat.graph.inputs_of([left, right]) if one.name}
    answer = esat.why_not_equal(left, right)
    assert answer.verdict == "different"
    given = {leaf: answer.operands[leaf.name] for leaf in leaves}
    one, other = esat.evaluate([left, right], given)
    np.testing.assert_array_equal(one, answer.left)
    np.testing.assert_array_equal(other, answer.right)
    assert not np.allclose(one, other)
    assert str(answer).startswith("different: ")


def test_inputs_of_one_name_are_told_apart() -> None:
    answer = esat.why_not_equal(esat.vector("x") + X, 2 * X)
    assert answer.verdict == "different"
    assert set(answer.operands) == {"x", "x (2)"}


def test_where_one_is_not_defined() -> None:
    answer = esat.why_not_equal(esat.log(X * Y), esat.log(X) + esat.log(Y))
    assert answer.verdict == "different"
    assert (np.isnan(answer.left) != np.isnan(answer.right)).any()
    p, q = esat.assume(X, "positive"), esat.assume(Y, "positive")
    assert esat.why_not_equal(esat.log(p * q), esat.log(p) + esat.log(q)).verdict == "equal"


def test_assumptions_hold_of_the_operands() -> None:
    answer = esat.why_not_equal(esat.assume(A, "symmetric") * 2, A.T * 2)
    assert answer.verdict == "equal"
    other = esat.why_not_equal(esat.assume(A, "symmetric") * 2, A.T * 3)
    np.testing.assert_array_equal(other.operands["a"], other.operands["a"].T)


def test_types_tell_values_apart() -> None:
    answer = esat.why_not_equal(X.sum(), X)
    assert str(answer) == "different: one is a scalar(float64), the other a vector(float64)"
    assert answer.left is None
    assert esat.why_not_equal(X, X.astype("float32")).verdict == "different"
    assert esat.why_not_equal(1.0, 2.0).verdict == "different"
    sized = esat.vector("s", shape=(2,))
    assert esat.why_not_equal(esat.concatenate([sized, sized]), esat.zeros(3)).verdict == "different"


def test_neither_shown_nor_refuted() -> None:
    left, right = esat.gammaln(X * X + 1.0), esat.gammaln(X * X + 2.0) - esat.log(X * X + 1.0)
    answer = esat.why_not_equal(left, right)
    assert answer.verdict == "not found"
    assert "no rules of the mode show it" in str(answer)
    # A rule of the user's shows it.
    rule = (
        '(rewrite (Gammaln (Add x o)) (Add (Gammaln x) (Log x)) :when ((= (val o) 1.0)) :name "gamma-step")'
    )
    shown = esat.why_not_equal(esat.gammaln(X + 1.0), esat.gammaln(X) + esat.log(X), rules=[rule])
    assert shown.verdict == "equal"
    assert shown.chains[0].rules == ("gamma-step",)


def test_the_mode_decides_what_is_shown() -> None:
    left, right = esat.log(1.0 + X), esat.log1p(X)
    answer = esat.why_not_equal(left, right, "strict")
    assert answer.verdict != "equal"
    with pytest.raises(OptimizerError, match="saturate"):
        esat.why_not_equal(left, right, "greedy")
    with pytest.raises(OptimizerError, match="default engine"):
        esat.why_not_equal(left, right, esat.Mode(engine="egglog"))


def test_graphs_are_compared_output_by_output() -> None:
    u, v = esat.vector("u"), esat.vector("v")
    first = esat.Graph([X, Y], [X + Y, esat.log(1.0 + X)])
    same = esat.Graph([u, v], [v + u, esat.log1p(u)])
    answer = esat.why_not_equal(first, same)
    assert (answer.verdict, len(answer.chains)) == ("equal", 2)
    other = esat.why_not_equal(first, esat.Graph([u, v], [v + u, esat.log1p(v)]))
    assert (other.verdict, other.output) == ("different", 1)
    assert str(other).startswith("output 1: different: ")
    assert set(other.operands) == {"x", "y"}


def test_what_does_not_go_together_is_refused() -> None:
    graph = esat.Graph([X, Y], [X + Y])
    with pytest.raises(CallError, match="two graphs, or two expressions"):
        esat.why_not_equal(graph, X + Y)
    with pytest.raises(CallError, match="inputs of the graphs"):
        esat.why_not_equal(graph, esat.Graph([X], [X * 2]))
    with pytest.raises(CallError, match="1 and 2 outputs"):
        esat.why_not_equal(graph, esat.Graph([X, Y], [X, Y]))


def test_shared_variables_have_their_values() -> None:
    w = esat.shared(np.array([1.0, 2.0]), name="w")
    answer = esat.why_not_equal(X * w, X * 2.0)
    assert answer.verdict == "different"
    assert set(answer.operands) == {"x"}
