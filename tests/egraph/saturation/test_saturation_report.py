"""Statistics of rules, under their own names."""

import pytest

from esat.egraph.engine import Engine
from esat.egraph.saturation.saturation_report import RuleLog, RuleStatistics, SaturationReport, rule_name


def test_variants_of_a_rule_count_as_one():
    assert rule_name("softplus#2") == rule_name("softplus") == "softplus"
    log = RuleLog()
    engine = Engine()
    engine.load("(relation r (i64)) (relation s (i64)) (ruleset rules)")
    for number in range(3):
        engine.execute(f'(rule ((r x)) ((s (+ x {number}))) :ruleset rules :name "shift#{number}")')
    engine.execute("(r 1) (r 2)")
    for _ in range(2):
        log.add(engine.execute("(run-schedule (run rules))")[0].report.num_matches_per_rule)
    (statistics,) = log.statistics()
    assert (statistics.name, statistics.matches) == ("shift", 6)


def test_short_steps_have_times_too():
    engine = Engine()
    engine.load("(relation r (i64)) (relation s (i64)) (ruleset rules)")
    engine.load('(rule ((r x)) ((s x)) :ruleset rules :name "often")')
    engine.load('(rule ((r x) (= x 1)) ((s (+ x 9))) :ruleset rules :name "once")')
    engine.load('(rule ((r x) (= x 7)) ((s (+ x 8))) :ruleset rules :name "never")')
    engine.execute("(r 1) (r 2) (r 3)")
    log = RuleLog()
    matches = engine.execute("(run-schedule (run rules))")[0].report.num_matches_per_rule
    log.add({name: count for name, count in matches.items() if count}, 4e-4)
    seconds = {rule.name: rule.seconds for rule in log.statistics()}
    assert seconds == pytest.approx({"often": 3e-4, "once": 1e-4})


def test_text():
    report = SaturationReport("node limit", 3, 0.5, 70, (RuleStatistics("grow", 12, 0.25),), ("grow",))
    assert not report.complete
    assert "node limit after 3 rounds, 500.0 ms, 70 e-nodes; grown by grow" in str(report)
    assert "12 matches" in str(report)
