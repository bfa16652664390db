"""Explanations: what lost, and by how much."""

import pytest

import esat
from esat.errors import OptimizerError, RuleError


def test_the_other_association_of_a_chain_is_named_with_its_cost() -> None:
    x, y, z = esat.matrix("x"), esat.matrix("y"), esat.vector("z")
    graph = esat.Graph([x, y, z], [x @ y @ z])
    program = esat.compile(graph, shapes={x: (100, 200), y: (200, 300), z: (300,)})
    explanation = program.explain()
    assert explanation.seconds == program.report.cost_after < explanation.seconds_written
    (part,) = [part for part in explanation.parts if part.shape == (100, 1)]
    assert part.form.startswith("(x @ (y @")
    assert part.dtype == "float64"
    assert part.where is not None
    assert part.where[0] == __file__
    lost = next(other for other in part.alternatives if other.form.startswith("((x @ y) @"))
    assert not lost.replaced
    assert lost.seconds_more == pytest.approx(explanation.seconds_written - explanation.seconds, rel=0.01)
    text = str(explanation)
    assert "not ((x @ y) @" in text
    assert f"{explanation.seconds * 1e6:.2f} us a call" in text


def test_what_a_stabler_form_replaced_is_marked() -> None:
    x = esat.matrix("x")
    explanation = esat.compile(esat.Graph([x], [esat.log(1.0 + x)])).explain()
    forms = {other.form: other for part in explanation.parts for other in part.alternatives}
    assert any(form.startswith("log(") and other.replaced for form, other in forms.items())
    assert any(part.form == "log1p(x)" for part in explanation.parts)


def test_the_dearest_parts_come_first_and_alternatives_are_limited() -> None:
    x = esat.matrix("x")
    graph = esat.Graph([x], [esat.exp(x) * 2.0 + esat.exp(x) * x, x @ x @ x @ x])
    program = esat.compile(graph)
    seconds = [part.seconds for part in program.explain().parts]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(seconds) == pytest.approx(program.explain().seconds)
    for part in program.explain(limit=1).parts:
        assert sum(not other.replaced for other in part.alternatives) <= 1


def test_greedy_programs_have_no_alternatives() -> None:
    x = esat.matrix("x")
    with pytest.raises(OptimizerError, match="greedy"):
        esat.compile(esat.Graph([x], [x + 1.0]), "greedy").explain()


def test_values_go_by_the_names_that_the_users_lines_give_them() -> None:
    x, w = esat.matrix("x"), esat.vector("w")
    scores = x @ w
    chances = esat.sigmoid(scores)
    explanation = esat.compile(esat.Graph([x, w], [chances, esat.exp(scores)])).explain()
    forms = {part.name: part.form for part in explanation.parts if part.name}
    assert forms["chances"] == "sigmoid(scores)"
    assert "scores" in forms
    assert "chances = sigmoid(scores)" in str(explanation)


def test_what_takes_little_is_summed_up() -> None:
    x, w = esat.matrix("x"), esat.vector("w")
    program = esat.compile(esat.Graph([x, w], [esat.exp(x @ w)]), shapes={x: (4000, 4000), w: (4000,)})
    text = str(program.explain())
    assert "exp(" not in text
    assert "further parts" in text
    assert "exp(" in str(program.explain(share=0))
    assert len(program.explain().parts) == len(program.explain(share=0).parts)


def logarithm(mode: str | esat.Mode = "fast_run", **options) -> esat.Executable:
    x = esat.matrix("x")
    return esat.compile(esat.Graph([x], [esat.log(1.0 + x)]), mode, **options)


def test_forms_tell_the_rule_that_made_them() -> None:
    for _ in range(2):  # the second e-graph is one that was kept
        explanation = logarithm().explain()
        (part,) = [part for part in explanation.parts if part.form == "log1p(x)"]
        assert part.rule == "log1p"
        assert "by the rule log1p" in str(explanation)
        assert not {other.rule for other in part.alternatives if other.form.startswith("log(")} - {""}


def test_it_is_told_what_became_of_a_rule() -> None:
    explanation = logarithm().explain()
    assert explanation.why_not("log1p").endswith("it made log1p(x), which is computed")
    assert "never matched" in explanation.why_not("log-exp")
    with pytest.raises(RuleError, match="log1p"):
        explanation.why_not("lag1p")
    without = logarithm(esat.Mode(esat.Mode("fast_run"), query=esat.Query(["fast_run"], exclude=["log1p"])))
    assert "not among the rules" in without.explain().why_not("log1p")


def test_a_form_that_a_users_rule_made_and_that_lost_is_told() -> None:
    rule = (
        "(rewrite (Cosh x) (Sqrt (Add (K 1.0 (dt x)) (Sqr (Sinh x))))"
        ' :when ((float-dtype (dt x))) :name "cosh-of-sinh")'
    )
    x = esat.vector("x", shape=(1000,))
    function = esat.compile(esat.Graph([x], [esat.cosh(x)]), rules=[rule])
    told = function.explain(limit=20).why_not("cosh-of-sinh")
    assert "matched once" in told
    assert "instead of cosh(x): +" in told


def test_egglog_does_not_tell_which_rule_made_a_form() -> None:
    parts = logarithm(esat.Mode(engine="egglog")).explain().parts
    assert {part.rule for part in parts} == {""}
