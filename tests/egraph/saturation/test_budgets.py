"""What ends saturation: nothing more to find, or budgets that grow with the graph; the clock never does."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from egraph.term_graphs import CONSTRUCTORS, GraphBuilder, load, rules_engine

import esat
from esat.base.storage import DiskStore
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import LEAST_MATCHES, LEAST_NODES, Budgets, RuleStep, Schedule
from esat.extract.kept_graphs import KeptGraphs
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query

GROWING = '(rule ((= e (Exp x))) ((union (Exp e) (Tanh e))) :ruleset grow :name "endless")'
FORMS = ("(Abs l)", "(Tanh l)", "(Minimum l l)", "(Maximum l l)", "(ReduceSum l 0)")
STEPS = " ".join(
    f'(rule ((= e {before}) (= l (Log x))) ((union e {after})) :ruleset steps :name "step-{number}")'
    for number, (before, after) in enumerate(pairwise(FORMS))
)


def saturated_terms(budgets, **options):
    """One exponential of an endless rule, and what four steps lead to a ReduceSum."""
    build = GraphBuilder()
    x = build.input()
    engine = rules_engine()
    engine.execute(f"(ruleset grow) (ruleset steps) {GROWING} {STEPS}")
    load(engine, build.graph(build.op("Exp", x), build.op("Abs", build.op("Log", x))))
    schedule = Schedule((RuleStep(("grow",)), RuleStep(("steps",))), **options)
    return engine, saturate(engine, schedule, budgets, CONSTRUCTORS)


def test_budgets_grow_with_the_graph():
    small, large = (Budgets().limits(loaded) for loaded in (10, 10_000))
    assert LEAST_NODES < small.nodes < large.nodes
    assert LEAST_MATCHES < small.matches < large.matches
    assert small.rounds == small.seconds == math.inf
    assert Budgets(nodes=7, matches=9, rounds=2).limits(10_000).nodes == 7


@pytest.mark.parametrize(
    ("budgets", "reason"),
    [
        (Budgets(nodes=12), "node limit"),
        (Budgets(matches=8), "match limit"),
        (Budgets(rounds=2), "round limit"),
    ],
)
def test_rules_of_stabilization_run_to_their_end_whatever_ended_the_others(budgets, reason):
    engine, report = saturated_terms(budgets)
    assert report.stop_reason == reason
    assert not engine.sizes()["ReduceSum"]
    assert report.culprits == (("endless",) if reason == "node limit" else report.culprits)
    engine, report = saturated_terms(budgets, stabilizing=("steps",))
    assert report.stop_reason == reason
    assert engine.sizes()["ReduceSum"] == 1


def test_rules_of_stabilization_without_end_have_a_budget_too():
    build = GraphBuilder()
    engine = rules_engine()
    engine.execute("(ruleset grow) (rule ((= e (Exp x))) ((Exp (Tanh e)) (Exp (Abs e))) :ruleset grow)")
    load(engine, build.graph(build.op("Exp", build.input())))
    schedule = Schedule(stabilizing=("grow",))
    report = saturate(engine, schedule, Budgets(rounds=0), CONSTRUCTORS)
    assert report.stop_reason == "round limit"
    assert report.nodes > LEAST_NODES


ENDLESS = {
    "one more each time": ("((union (Exp e) (Tanh e)))", Budgets(nodes=200), "node limit"),
    "twice as many each time": ("((Exp (Tanh e)) (Exp (Abs e)))", Budgets(), "node limit"),
    "no new terms": ("((set (steps) (+ 1 n)))", Budgets(matches=500), "match limit"),
    "until the time is over": ("((set (steps) (+ 1 n)))", Budgets(seconds=0.5, matches=10**9), "time limit"),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_budgets_end_what_a_step_saturates(case):
    actions, budgets, reason = ENDLESS[case]
    build = GraphBuilder()
    engine = rules_engine()
    engine.execute(
        f"""(function steps () i64 :merge (max old new)) (set (steps) 0) (ruleset grow)
        (rule ((= e (Exp x)) (= n (steps))) {actions} :ruleset grow :name "endless")"""
    )
    load(engine, build.graph(build.op("Exp", build.input())))
    schedule = Schedule(normal=("grow",), watched=frozenset(["endless"]))
    with pytest.warns(esat.EsatWarning, match=f"{reason}.* something to add: endless"):
        report = saturate(engine, schedule, budgets, CONSTRUCTORS)
    assert report.stop_reason == reason
    assert report.culprits[:1] == ("endless",)
    assert report.nodes < 4 * LEAST_NODES


def test_the_matches_of_all_rules_are_a_budget():
    _, report = saturated_terms(Budgets(matches=60))
    assert report.stop_reason == "match limit"
    assert 60 < sum(rule.matches for rule in report.rules) < 120
    assert "endless" in report.culprits


def endless_program(name):
    endless = RULES.read(f'(rewrite (Exp x) (Exp (Add x (Exp x))) :name "{name}")')
    return program_for(RULES.query(Query(include=("fast_run",)), extra=[endless]))


def test_what_a_budget_ended_is_kept_with_its_warning(tmp_path):
    graphs = KeptGraphs(DiskStore(tmp_path / "cache", "egraph"))
    program = endless_program("budget-endless")
    x = esat.vector("x")
    found = []
    for _ in range(2):
        stages = []
        with pytest.warns(esat.EsatWarning, match="budget-endless"):
            found.append(
                saturated(
                    encode(esat.Graph([x], [esat.exp(x)]).function_graph()),
                    program,
                    Budgets(nodes=200),
                    lambda name, stages=stages: stages.append(name) or warnings.catch_warnings(record=False),
                    kept=graphs,
                )
            )
    assert "saturate" not in stages
    assert found[0][1] == found[1][1]
    assert found[0][1].stop_reason == "node limit"
    np.testing.assert_array_equal(found[0][0].arrays.operands, found[1][0].arrays.operands)


def test_predefined_modes_leave_the_end_to_the_graph():
    for name in ("fast_run", "o3", "unsafe", "strict", "debug"):
        mode = esat.Mode(name)
        assert mode.round_limit is mode.time_limit is mode.node_limit is mode.match_limit is None


def test_limits_of_a_mode_end_saturation():
    x = esat.vector("x")
    p = 1 / (1 + esat.exp(-x))
    graph = esat.Graph([x], [esat.log(p) - esat.log(1 - p)])
    reasons = [
        esat.compile(graph, esat.Mode("fast_run", **limit)).report.stop_reason
        for limit in ({}, {"node_limit": 15}, {"match_limit": 30}, {"round_limit": 1}, {"time_limit": 60.0})
    ]
    assert reasons == ["saturated", "node limit", "match limit", "round limit", "saturated"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["fast_run", "o3", "unsafe"])
def test_what_takes_many_rounds_is_found(mode, dtype):
    """Stable forms many steps away: of the logarithms of a sigmoid that is written out."""
    z, y = esat.vector("z", dtype=dtype), esat.vector("y", dtype=dtype)
    p = 1 / (1 + esat.exp(-z))
    entropy = -y * esat.log(p) - (1 - y) * esat.log(1 - p)
    zs = np.array([-800.0, -90.0, -1.0, 0.0, 1.0, 90.0, 800.0], dtype)
    ys = np.array([0.0, 1.0, 0.5, 1.0, 0.0, 0.0, 1.0], dtype)
    softplus = np.logaddexp(0.0, -zs.astype("float64"))
    sigmoid = np.exp(-softplus)
    losses = ys * softplus + (1 - ys) * np.logaddexp(0.0, zs.astype("float64"))
    cases = [
        ([z], [-esat.log(p)], [softplus]),
        ([z], [esat.log(p), p], [-softplus, sigmoid]),
        ([z], [esat.log(p) - esat.log(1 - p)], [zs]),
        ([z, y], [entropy], [losses]),
        ([z, y], [entropy.mean(), esat.grad(entropy.mean(), z)], [losses.mean(), (sigmoid - ys) / zs.size]),
    ]
    for inputs, outputs, expected in cases:
        function = esat.compile(esat.Graph(inputs, outputs), mode)
        assert function.report.stop_reason == "saturated"
        found = function(*(zs, ys)[: len(inputs)])
        for value, right in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-7)
