"""The chains of rules from values as written to the forms that are computed."""

import functools
import operator
import pickle

import numpy as np
import pytest

import esat
from benchmarks.identities import known
from benchmarks.identity_cases import IDENTITIES, Identity
from esat.engine.matching_engine import MatchingEngine
from esat.engine.state import memory as at
from esat.errors import InputError, OptimizerError


def asked(graph: esat.Graph, value: object = 0, mode: str | esat.Mode = "fast_run", **options: object):
    return esat.compile(graph, mode, **options).explain().why(value)


def forms(chain) -> list[tuple[str, str]]:
    return [(step.form, step.rule) for step in chain.steps]


def test_one_rule_is_one_step() -> None:
    x = esat.vector("x")
    for _ in range(2):  # the second e-graph is one that was kept
        graph = esat.Graph([x], [esat.log(1.0 + x)])
        chain = asked(graph)
        assert forms(chain) == [("log(1 + x)", ""), ("log1p(x)", "log1p")]
        assert chain.rules == ("log1p",)
        assert str(chain) == "log(1 + x), as written\n  = log1p(x), by log1p"


def test_what_a_rule_needed_of_an_operand_stands_before_it() -> None:
    x = esat.vector("x")
    chain = asked(esat.Graph([x], [esat.log(esat.exp(x) * esat.exp(2 * x))]))
    assert forms(chain) == [
        ("log(exp(x) * exp(2 * x))", ""),
        ("(x + (2 * x))", "log-exp"),
        ("(x * 3)", "sums and products (collect)"),
    ]
    (part,) = chain.steps[1].parts
    assert forms(part) == [("(exp(x) * exp(2 * x))", ""), ("exp(x + (2 * x))", "exp-mul-exp")]
    assert chain.rules == ("exp-mul-exp", "log-exp", "sums and products (collect)")


def test_what_a_rule_replaces_in_many_places_of_a_product_is_its_step() -> None:
    variables = [esat.vector(f"v{number}") for number in range(6)]
    quotients = [esat.sin(one) / esat.cos(one) for one in variables]
    chain = asked(esat.Graph(variables, [functools.reduce(operator.mul, quotients)]))
    assert chain.rules == ("sin-over-cos",)
    assert chain.steps[-1].form.count("tan(") == 6


def test_conditions_are_told_with_the_rules_that_proved_them() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    chain = asked(esat.Graph([x, y], [esat.log(esat.exp(x) * esat.exp(y) * (1 + esat.exp(x)))]))
    assert chain.steps[1].rule == "log-mul"
    assert [str(fact) for fact in chain.steps[1].facts] == [
        "(1 + exp(x)) is positive, by fact-sign-Add-0-0",
        "exp(x + y) is positive, by fact-positive-Exp",
    ]
    (softplus,) = [one for one in chain.operands if "softplus" in one.steps[-1].form]
    assert softplus.steps[-1].form == "softplus(x)"
    facts = {str(fact) for step in softplus.steps for fact in step.facts}
    assert "exp(x) may overflow, by Exp-overflows" in facts
    assert "exp(x) is nonnegative, by fact-nonnegative-Exp" in facts


def test_facts_have_reasons_of_their_own() -> None:
    a, b = esat.matrix("a"), esat.vector("b")
    definite = esat.assume(a, "positive_definite")
    chain = asked(esat.Graph([a, b], [esat.linalg.solve(definite + esat.eye(3), b)]))
    (solve,) = chain.operands
    (step,) = solve.steps[1:]
    assert step.rule == "solve-semidefinite"
    (fact,) = step.facts
    assert (fact.fact, fact.rule) == ("(a + constant 0) is positive-semidefinite", "sum-of-semidefinite")
    (need,) = fact.needs
    assert (need.fact, need.rule) == (
        "a is positive-semidefinite",
        "positive-definite-is-positive-semidefinite",
    )
    (given,) = need.needs
    assert (given.fact, given.rule) == ("a is positive-definite", "")


def test_softmax_and_its_logarithm() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    exponential = esat.exp(x)
    loss = -(y * esat.log(exponential / exponential.sum())).sum()
    chain = asked(esat.Graph([x, y], [loss]))
    (logarithm,) = chain.operands
    assert forms(logarithm)[1:] == [("log_softmax(x, axis=0)", "log-softmax")]
    (part,) = logarithm.steps[1].parts
    assert forms(part)[1:] == [("softmax(x, axis=0)", "softmax")]


def test_cross_entropy_of_a_sigmoid() -> None:
    x, w, y = esat.matrix("x"), esat.vector("w"), esat.vector("y")
    p = esat.sigmoid(x @ w)
    loss = -(y * esat.log(p) + (1 - y) * esat.log(1 - p)).mean()
    chain = asked(esat.Graph([x, w, y], [loss]))
    assert {"log-sigmoid", "log-one-minus-sigmoid", "sum-of-neg"} <= set(chain.rules)
    assert "softplus" in chain.steps[-1].form
    assert "log(" not in chain.steps[-1].form


def test_local_optimizers_are_named() -> None:
    a, b = esat.matrix("a"), esat.vector("b")
    chain = asked(esat.Graph([a, b], [esat.linalg.inv(a) @ b]))
    (product,) = chain.operands
    assert forms(product) == [
        ("(inv(a) @ b[:, None])", ""),
        ("solve(a, b[:, None])", "the local optimizer local_inverse_to_solve"),
    ]


def test_algebra_says_what_it_found() -> None:
    x, y = esat.vector("x"), esat.vector("y")
    chain = asked(esat.Graph([x, y], [(x**2 - y**2) / (x - y)]))
    assert chain.steps[-1].form == "(x + y)"
    assert chain.steps[-1].rule.startswith("algebra: ((x**2 - y**2) / (x - y)) = (y + x)")


def test_a_step_may_be_that_operands_are_equal() -> None:
    x = esat.vector("x")
    y = esat.vector("y")
    chain = asked(esat.Graph([x, y], [esat.log(esat.exp(x) * esat.exp(y) * (1 + esat.exp(x)))]))
    (softplus,) = [one for one in chain.operands if "softplus" in one.steps[-1].form]
    (step,) = [step for step in softplus.steps[1:] if not step.rule]
    assert step.form == "logaddexp(x, log(1))"
    assert [part.rules for part in step.parts] == [("log-exp",)]
    assert "= logaddexp(x, log(1)), with equal operands" in str(chain)


def test_operands_begin_as_they_were_written() -> None:
    x = esat.vector("x")
    chain = asked(esat.Graph([x], [esat.arctan2(esat.log(esat.exp(x)), x * 2)]))
    (logarithm,) = chain.operands
    assert forms(logarithm) == [("log(exp(x))", ""), ("x", "log-exp")]


def test_values_are_asked_for_by_name_number_and_variable() -> None:
    x = esat.vector("x")
    total = esat.log(1.0 + x) * 2.0
    shift = esat.log(1.0 + x)
    graph = esat.Graph([x], [total, esat.exp(x)])
    explanation = esat.compile(graph).explain()
    by_number = explanation.why(0)
    assert by_number.name == "total"
    assert by_number == explanation.why("total") == explanation.why(total) == explanation.why(-2)
    assert explanation.why(shift).rules == ("log1p",)
    assert forms(explanation.why("x")) == [("x", "")]
    assert str(explanation.why(1)) == "exp(x), as written"


@pytest.mark.parametrize(
    "value", ["nothing", 1, -2, 1.5, None, True, "", esat.vector("z"), esat.exp(esat.vector("z"))]
)
def test_what_is_no_value_of_the_program_is_refused(value: object) -> None:
    x = esat.vector("x")
    explanation = esat.compile(esat.Graph([x], [esat.log(1.0 + x)])).explain()
    with pytest.raises(InputError, match="why: "):
        explanation.why(value)


def test_what_is_not_computed_is_told() -> None:
    x = esat.vector("x")
    e = esat.exp(x)
    explanation = esat.compile(esat.Graph([x], [esat.log(e)])).explain()
    with pytest.raises(OptimizerError, match="no need to compute exp"):
        explanation.why(e)


def test_egglog_does_not_tell() -> None:
    x = esat.vector("x")
    graph = esat.Graph([x], [esat.log(1.0 + x)])
    with pytest.raises(OptimizerError, match="default engine"):
        asked(graph, mode=esat.Mode(engine="egglog"))


def test_users_rules_are_named() -> None:
    x = esat.vector("x")
    rule = '(rewrite (Sinh x) (Mul (Exp x) (Exp x)) :name "not-so" :soundness real)'
    graph = esat.Graph([x], [esat.log(esat.sinh(x))])
    chain = esat.compile(graph, esat.Mode(accuracy="ignore"), rules=[rule]).explain().why(0)
    assert "not-so" in chain.rules


def test_jitted_functions_tell() -> None:
    @esat.jit
    def f(x):
        return np.log(1.0 + x)

    f(np.ones(3))
    assert f.explain().why(0).rules == ("log1p",)


def test_programs_are_the_same_whether_anyone_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search that a program comes from logs nothing; asking runs another one."""
    engines: list[MatchingEngine] = []
    begin = MatchingEngine.begin.__func__

    def noted(cls, program):
        engines.append(begin(cls, program))
        return engines[-1]

    monkeypatch.setattr(MatchingEngine, "begin", classmethod(noted))
    monkeypatch.setattr("esat.optimize.saturation.kept_graphs", lambda: None)
    x, y = esat.vector("x"), esat.vector("y")
    graph = esat.Graph([x, y], [esat.log(esat.exp(x) * esat.exp(y)) + esat.sqrt(esat.exp(y))])
    program = esat.compile(graph)
    (first,) = engines
    program.explain().why(0)
    _, second = engines
    plain, logged = first.arrays.memory, second.arrays.memory
    assert (plain.state[at.LOG], len(plain.log)) == (0, 1)
    assert logged.state[at.LOG] > 1
    for counter in (at.FOUND, at.SEARCHED, at.UNIONS, at.ITERATIONS, at.PLANS, at.TERMS, at.ID_COUNT):
        assert plain.state[counter] == logged.state[counter]
    assert first.sizes() == second.sizes()


@pytest.mark.parametrize("case", IDENTITIES[::9], ids=lambda case: f"{case.family}: {case.name}")
def test_all_that_is_computed_has_a_chain(case: Identity) -> None:
    makers = {"v": esat.vector, "z": esat.zvector}
    kinds = zip("abcsy", case.inputs, strict=True)
    variables = [makers.get(kind, esat.matrix)(name) for name, kind in kinds]
    graph = esat.Graph(variables, case.build(esat, *known(case, variables)), on_unused_input="ignore")
    explanation = esat.compile(graph).explain()
    written, computed = explanation.why(0), explanation.parts
    assert written.steps[0].form
    assert len(written.steps) > 1 or written.operands
    assert all(step.rule or step.parts for chain in chains_of(written) for step in chain.steps[1:])
    assert computed or len(written.steps) > 1


def chains_of(chain):
    yield chain
    for other in (*chain.operands, *(part for step in chain.steps for part in step.parts)):
        yield from chains_of(other)


def test_shapes_that_another_value_lends_are_no_reason_by_themselves() -> None:
    a, b = esat.vector("a"), esat.vector("b")
    chain = asked(esat.Graph([a, b], [esat.exp(a + b) * esat.exp(-a) - esat.exp(b)]))
    assert [step.form for step in chain.steps[-2:]] == ["fill(exp(a + b) * exp(-a), 0)", "fill(b, 0)"]
    assert chain.steps[-1].rule == "algebra: another value lends its shape"
    assert "exp-mul-exp, read from right to left" in chain.rules


def test_an_explanation_asks_the_rules_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = esat.vector("x")
    program = esat.compile(esat.Graph([x], [esat.log(1.0 + x), esat.exp(x)]))
    begun = []
    begin = MatchingEngine.begin.__func__
    monkeypatch.setattr(
        MatchingEngine, "begin", classmethod(lambda cls, known: begun.append(1) or begin(cls, known))
    )
    explanation = program.explain()
    assert not begun
    assert explanation.why(0).rules == ("log1p",)
    assert explanation.why(1).rules == ()
    assert len(begun) == 1
    program.explain().why(0)
    assert len(begun) == 2


def test_copies_tell_what_is_printed() -> None:
    x = esat.vector("x")
    explanation = esat.compile(esat.Graph([x], [esat.log(1.0 + x)])).explain()
    copied = pickle.loads(pickle.dumps(explanation))
    assert str(copied) == str(explanation)
    assert copied.why_not("log1p") == explanation.why_not("log1p")
    assert copied.why_not("log-exp").startswith("log-exp never matched: no term of the program")
    with pytest.raises(OptimizerError, match="compile it here"):
        copied.why(0)
