"""What becomes of rules: never matched, not proven, excluded, and forms that lost by time or by digits."""

import pytest

import esat
from esat.errors import RuleError
from esat.graph import Constant, inputs_of

X, Y, A, B = esat.vector("x"), esat.vector("y"), esat.matrix("a"), esat.vector("b")


def fate(output: esat.Variable, rule: str, mode: str | esat.Mode = "fast_run", **options: object) -> str:
    inputs = [one for one in inputs_of([output]) if not isinstance(one, Constant)]
    return esat.compile(esat.Graph(inputs, [output]), mode, **options).explain().why_not(rule)


def test_a_rule_whose_left_side_is_nowhere() -> None:
    assert fate(esat.log(1.0 + X), "log-exp") == (
        "log-exp never matched: no term of the program has its left side"
    )


def test_conditions_that_are_not_proven_are_told_with_what_they_are_asked_of() -> None:
    told = fate(esat.sqrt(X) * esat.sqrt(esat.sin(Y)), "sqrt-mul-sqrt").splitlines()
    assert told == [
        "sqrt-mul-sqrt never matched: its left side is in the program, but a condition of it is not proven:",
        "  (nonnegative x), for x",
        "  (nonnegative y), for y = sin(y)",
    ]


def test_what_is_proven_is_not_told() -> None:
    told = fate(esat.sqrt(X) * esat.sqrt(esat.exp(Y)), "sqrt-mul-sqrt")
    assert "for x" in told
    assert "Exp" not in told


def test_structure_of_a_matrix_that_is_not_known() -> None:
    solved = esat.linalg.solve(A, B)
    assert "(positive-definite a), for a" in fate(solved, "solve-positive-definite")
    assert "(orthogonal a), for a" in fate(solved, "solve-orthogonal")
    definite = esat.linalg.solve(esat.assume(A, "positive_definite"), B)
    assert "which is computed" in fate(definite, "solve-positive-definite") or "instead of" in fate(
        definite, "solve-positive-definite"
    )
    assert "(orthogonal a), for a" in fate(definite, "solve-orthogonal")


def test_conditions_on_all_factors() -> None:
    told = fate(esat.log(X * Y), "log-mul")
    assert "never matched: its left side is in the program" in told
    assert told.splitlines()[1:] == ["  (positive x), for x", "  (positive y), for y"]


def test_conditions_on_some_of_many_factors() -> None:
    told = fate(esat.sqrt(X) * esat.sqrt(esat.exp(Y)) * esat.sin(X), "sqrt-mul-sqrt")
    assert told.splitlines()[1:] == ["  (nonnegative x), for x"]
    assert fate(esat.sqrt(X) * esat.sin(X), "sqrt-mul-sqrt").endswith(
        "no term of the program has its left side"
    )


def test_conditions_have_the_words_of_the_rule() -> None:
    z = esat.tensor("z", dtype="complex128", shape=(None,))
    program = esat.compile(esat.Graph([z], [esat.log(esat.exp(z))]))
    told = program.explain().why_not("log-exp")
    assert told.endswith("is not proven:\n  (real-valued x), for x = z")


def test_rules_that_the_mode_leaves_out() -> None:
    strict = fate(esat.log(1.0 + X), "log1p", "strict")
    assert "excluded by the mode" in strict
    assert "of the class real" in strict
    query = esat.Query(["fast_run"], exclude=["log1p"])
    named = fate(esat.log(1.0 + X), "log1p", esat.Mode(esat.Mode("fast_run"), query=query))
    assert named.startswith("log1p is excluded by the mode: it is not among the rules that its query chooses")


def test_forms_that_are_computed_or_take_longer() -> None:
    assert fate(esat.log(1.0 + X), "log1p").splitlines() == [
        "log1p matched once",
        "  it made log1p(x), which is computed",
    ]
    rule = (
        "(rewrite (Cosh x) (Sqrt (Add (K 1.0 (dt x)) (Sqr (Sinh x))))"
        ' :when ((float-dtype (dt x))) :name "longer")'
    )
    cosh = esat.cosh(esat.vector("w", shape=(1000,)))
    (w,) = inputs_of([cosh])
    told = esat.compile(esat.Graph([w], [cosh]), rules=[rule]).explain(limit=0).why_not("longer")
    assert "instead of cosh(w): +" in told


def test_forms_that_lose_digits() -> None:
    rule = '(rewrite (Expm1 x) (Sub (Exp x) (K 1.0 (dt x))) :when ((float-dtype (dt x))) :name "expm1-worse")'
    told = fate(esat.expm1(X), "expm1-worse", rules=[rule])
    assert "instead of expm1(x): " in told
    assert "(loses " in told
    assert " bits at x = " in told


def test_forms_of_what_nothing_needs() -> None:
    told = fate(esat.log(esat.sqrt(esat.exp(X))), "sqrt-exp")
    assert told.startswith("sqrt-exp matched")
    assert "it made exp(x * 0.5), which nothing that is computed needs" in told


def test_names_that_no_rule_has() -> None:
    with pytest.raises(RuleError, match="log1p"):
        fate(esat.log(1.0 + X), "lag1p")
