"""Budgets, fuel, interruption and determinism of saturation."""

import time

import pytest
from egraph.term_graphs import CONSTRUCTORS, GraphBuilder, load, random_polynomial, rules_engine, saturated

from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.saturation_report import SaturationTrace
from esat.egraph.saturation.schedule import Budgets, RuleStep, Schedule
from esat.errors import EsatWarning, SaturationError

GROWING = '(rule ((= e (Exp x))) ((union (Exp e) (Tanh e))) :ruleset grow :name "endless")'
PAIRS = """(rule ((= a (Exp x)) (= b (Exp y))) ((Exp (Maximum a b))) :ruleset grow :name "all-pairs")
(rule ((= e (Log (Exp x))) (= d (dt x)) (= b (bp x))) ((union e x)) :ruleset grow :name "log-exp")"""


def engine_with(rules, count=3):
    """An engine with rules in the rule set ``grow`` and the terms Exp(x), Log(Exp(x)) of some inputs."""
    build = GraphBuilder()
    exponentials = [build.op("Exp", build.input()) for _ in range(count)]
    logarithms = [build.op("Log", exponential) for exponential in exponentials]
    engine = rules_engine()
    engine.execute(f"(ruleset grow) {rules}")
    load(engine, build.graph(*exponentials, *logarithms))
    return engine


def test_an_endless_rule_ends_by_the_node_limit_and_is_named():
    engine = engine_with(GROWING)
    schedule = Schedule((RuleStep(("grow",)),))
    report = saturate(engine, schedule, Budgets(nodes=40, rounds=1000), CONSTRUCTORS)
    assert report.stop_reason == "node limit"
    assert 40 < report.nodes < 80
    assert report.culprits == ("endless",)
    sizes = engine.sizes()
    assert sizes["Exp"] > 10
    typed = {hash(row.inputs[0]) for row in engine.freeze().functions["dt"].rows}
    assert all(hash(row.output) in typed for row in engine.freeze().functions["Tanh"].rows)


def test_watched_rules_warn():
    engine = engine_with(GROWING)
    schedule = Schedule((RuleStep(("grow",), fuel=1000),), watched=frozenset({"endless"}))
    with pytest.warns(EsatWarning, match=r"node limit.*endless"):
        saturate(engine, schedule, Budgets(nodes=40, rounds=1000), CONSTRUCTORS)


def test_an_endless_rule_ends_by_the_round_limit():
    report = saturate(engine_with(GROWING), Schedule((RuleStep(("grow",)),)), Budgets(rounds=3), CONSTRUCTORS)
    assert (report.stop_reason, report.rounds) == ("round limit", 3)


@pytest.mark.filterwarnings("ignore::esat.errors.EsatWarning")
def test_the_time_budget_is_overshot_at_most_twofold():
    engine = engine_with(PAIRS, count=40)
    seconds = 0.5
    begun = time.process_time()
    schedule = Schedule((RuleStep(("grow",), fuel=20_000),))
    report = saturate(engine, schedule, Budgets(nodes=10**9, seconds=seconds, rounds=10**6), CONSTRUCTORS)
    assert report.stop_reason in ("time limit", "match limit")
    # Of this process: where others take the processor, the wall clock ends it no later.
    assert time.process_time() - begun < 2 * seconds


def test_an_explosive_rule_cannot_starve_the_rest():
    engine = engine_with(PAIRS, count=40)
    schedule = Schedule((RuleStep(("grow",), fuel=100),))
    report = saturate(engine, schedule, Budgets(nodes=1000, rounds=10), CONSTRUCTORS)
    assert report.stop_reason == "match limit"
    assert report.exhausted == ("grow",)
    matches = {rule.name: rule.matches for rule in report.rules}
    assert matches["log-exp"] >= 40
    assert "all-pairs" not in matches
    assert report.nodes < 200


def test_a_rule_set_that_explodes_is_limited_from_then_on():
    engine = engine_with(PAIRS, count=45)
    schedule = Schedule((RuleStep(("grow",)),))
    report = saturate(engine, schedule, Budgets(nodes=20_000, rounds=10, fuel=500), CONSTRUCTORS)
    assert report.stop_reason == "match limit"
    assert 1600 < report.nodes < 10_000


def test_a_step_may_be_limited_to_the_first_rounds():
    engine = engine_with(GROWING)
    report = saturate(engine, Schedule((RuleStep(("grow",), rounds=2),)), Budgets(), CONSTRUCTORS)
    assert report.stop_reason == "saturated"
    assert engine.sizes()["Tanh"] == 6


@pytest.mark.parametrize("check_types", [False, True])
def test_changing_a_type_is_an_error_that_names_the_rule(check_types):
    engine = engine_with(
        '(rule ((= e (Log x))) ((union e (Lt x x))) :ruleset grow :name "wrong")'
        '(ruleset other) (rule ((= e (Exp x))) ((union e (Tanh x))) :ruleset other :name "harmless")'
    )
    steps = (RuleStep(("other",)), RuleStep(("grow",)))
    with pytest.raises(SaturationError, match=r"different dtype.*wrong") as caught:
        saturate(engine, Schedule(steps, check_types=check_types), Budgets(), CONSTRUCTORS)
    assert ("harmless" in str(caught.value)) != check_types
    with pytest.raises(SaturationError):
        engine.sizes()


def test_equal_constants_that_differ_are_an_error():
    rule = "(rule ((= e (Log x))) ((union e (K 1.0 11)) (union e (K 2.0 11))) :ruleset grow)"
    build = GraphBuilder()
    root = build.op("Log", build.input(shape=()))
    engine = rules_engine()
    engine.execute(f"(ruleset grow) {rule}")
    load(engine, build.graph(root))
    with pytest.raises(SaturationError, match="two different constants became equal"):
        saturate(engine, Schedule((RuleStep(("grow",)),)), Budgets(), CONSTRUCTORS)


def test_an_interrupt_passes_through():
    class Interrupting(list):
        def append(self, entry):
            if len(self) == 5:
                raise KeyboardInterrupt
            super().append(entry)

    with pytest.raises(KeyboardInterrupt):
        saturate(
            engine_with(GROWING),
            Schedule((RuleStep(("grow",)),)),
            Budgets(),
            CONSTRUCTORS,
            SaturationTrace(steps=Interrupting()),
        )


def test_the_trace_has_every_step():
    trace = SaturationTrace()
    report = saturate(
        engine_with(GROWING), Schedule((RuleStep(("grow",)),)), Budgets(rounds=2), CONSTRUCTORS, trace
    )
    assert sum(step.seconds for step in trace.steps) <= report.seconds
    assert [step.round for step in trace.steps if step.rulesets == ("grow",)] == [0, 1]
    assert trace.steps[-1].nodes == report.nodes
    assert any(step.updated for step in trace.steps)


def test_equal_graphs_give_equal_egraphs():
    outcomes = []
    for _ in range(2):
        _, graph = random_polynomial(3, "float64", size=60)
        engine, report = saturated(graph, budgets=Budgets(seconds=60))
        rows = sorted((name, size) for name, size in engine.sizes().items())
        matches = [(rule.name, rule.matches) for rule in report.rules]
        outcomes.append((report.stop_reason, report.nodes, rows, matches))
    assert outcomes[0] == outcomes[1]


def test_long_sums_of_like_terms_do_not_visit_every_subset():
    build = GraphBuilder()
    terms = []
    for _ in range(20):
        x = build.input()
        terms += [build.op("Mul", build.constant(2), x), build.op("Mul", build.constant(3), x), x]
    _, report = saturated(build.graph(build.chain("Add", terms)))
    assert report.stop_reason == "saturated"
    assert report.nodes < 500
    # The subsets of like terms are millions; a clock would tell of the machine's load as well.
    assert sum(rule.matches for rule in report.rules) < 10_000


def test_nested_shared_sums_do_not_blow_up():
    build = GraphBuilder()
    a, b = build.input(), build.input()
    for _ in range(12):
        a, b = build.op("Add", a, b), build.op("Sub", a, b)
    _, report = saturated(build.graph(a, b))
    assert report.nodes < 1000


def test_rule_sets_of_a_small_graph_run_together():
    def run(count, **options):
        engine = engine_with(
            '(rule ((= e (Log (Exp x)))) ((union e x)) :ruleset grow :name "log-exp")', count
        )
        engine.execute(
            '(ruleset other) (rule ((= e (Tanh (Log x)))) ((union e (Exp x))) :ruleset other :name "odd")'
        )
        trace = SaturationTrace()
        schedule = Schedule((RuleStep(("grow", "other")),), **options)
        report = saturate(engine, schedule, Budgets(), CONSTRUCTORS, trace)
        return report, [step.rulesets for step in trace.steps if set(step.rulesets) & {"grow", "other"}]

    together, steps = run(3)
    assert steps == [("grow", "other")] * together.rounds
    alone, steps = run(3, check_types=True)
    assert steps == [("grow",), ("other",), ("grow",)]
    assert [(rule.name, rule.matches) for rule in together.rules] == [
        (rule.name, rule.matches) for rule in alone.rules
    ]
    large, steps = run(300)
    assert ("grow", "other") not in steps
    assert ("grow",) in steps
    assert large.complete
