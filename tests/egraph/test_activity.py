"""Rules run where all their tables have rows, and e-nodes are counted where their bound does not decide."""

import math

from esat.egraph.activity import Activity
from esat.egraph.counting import NodeCount
from esat.egraph.engine import Engine
from esat.egraph.modules import modules_of, rules_of
from esat.egraph.schedule import Schedule

TEXT = """
(sort T)
(sort TS (MultiSet T))
(sort Fn (UnstableFn (T) T))
(constructor A (i64) T) (constructor B (T) T) (constructor C (T) T) (constructor D (TS) T)
(ruleset grow) (ruleset map)
(rule ((= e (A x))) ((B e)) :ruleset grow :name "a-makes-b")
(rule ((= e (B x))) ((union (C e) (C (C e)))) :ruleset grow :name "b-makes-c")
(rule ((= e (D x)) (= e (C y))) ((union e y)) :ruleset grow :name "c-and-d")
(rule ((= e (D x)) (= y (unstable-multiset-map (unstable-fn "B") x))) ((D y)) :ruleset map :name "mapped")
"""
MODULES = modules_of([TEXT], [])
RULES = rules_of(MODULES)
SCHEDULE = Schedule(rules=RULES)


def rule_names(members):
    names = {rule.member: rule.name for own in RULES.values() for rule in own}
    return {ruleset: [names[member] for member in own] for ruleset, own in members.items()}


def activity(**rows):
    return Activity(SCHEDULE, {name: rows.get(name, 0) for name in "ABCD"})


def test_a_rule_waits_for_all_its_tables():
    graph = activity(A=1)
    first = graph.members(("grow",), repeated=False)
    assert rule_names(first) == {"grow": ["a-makes-b"]}
    graph.note([])
    assert graph.members(("grow",), repeated=False) is first
    graph.note(["a-makes-b"])
    assert rule_names(graph.members(("grow",), repeated=False)) == {"grow": ["a-makes-b", "b-makes-c"]}
    graph.note(["b-makes-c", "mapped"])
    assert rule_names(graph.members(("grow", "map"), repeated=False)) == {
        "grow": ["a-makes-b", "b-makes-c", "c-and-d"],
        "map": ["mapped"],
    }


def test_rules_that_are_repeated_feed_each_other():
    assert rule_names(activity(A=1).members(("grow", "map"), repeated=True)) == {
        "grow": ["a-makes-b", "b-makes-c"],
        "map": [],
    }


def test_rules_feed_each_other_whatever_their_order():
    text = TEXT.replace("(ruleset grow) (ruleset map)", "(ruleset grow) (ruleset map) (constructor Z (T) T)")
    text += '(rule ((= e (Z x))) ((A 1)) :ruleset grow :name "z-makes-a")'
    modules = modules_of([text], [])
    graph = Activity(Schedule(rules=rules_of(modules)), {"A": 0, "B": 0, "C": 0, "D": 0, "Z": 1})
    names = {module.member: module.name for module in modules}
    members = graph.members(("grow",), repeated=True)["grow"]
    assert [names[member] for member in members] == ["a-makes-b", "b-makes-c", "z-makes-a"]


def loaded(terms):
    engine = Engine()
    engine.load("\n".join(module.text for module in MODULES))
    engine.execute(terms)
    return engine


def run(engine, ruleset):
    members = tuple(rule.member for rule in RULES[ruleset])
    matches = engine.execute(f"(run {engine.unite(ruleset, members)} 1)")[0].report.num_matches_per_rule
    return {name: count for name, count in matches.items() if count}


def test_the_bound_holds_between_counts():
    engine = loaded("(A 1) (A 2) (A 3)")
    nodes = NodeCount(engine, ("A", "B", "C", "D"), SCHEDULE.named)
    assert nodes.above(2)
    assert (nodes.most, nodes.last) == (3, 3)
    for _ in range(3):
        nodes.note(run(engine, "grow"))
        assert nodes.last == 3
        assert nodes.most >= sum(nodes._engine.sizes()[name] for name in "ABCD")
    assert not nodes.above(1000)
    assert nodes.last == 3
    assert nodes.above(3)
    assert nodes.most == nodes.last == nodes.exact() > 3


def test_a_map_over_terms_has_no_bound():
    engine = loaded("(D (multiset-of (A 1) (A 2) (A 3)))")
    nodes = NodeCount(engine, ("A", "B", "C", "D"), SCHEDULE.named)
    assert nodes.exact() == 4
    nodes.note(run(engine, "map"))
    assert nodes.most == math.inf
    assert not nodes.above(8)
    assert nodes.most == nodes.sizes()["A"] + nodes.sizes()["B"] + nodes.sizes()["D"] == 8
