"""Engines learn only the rules that can matter, and what they learned before changes nothing."""

import random

import esat
from esat.egraph.encode import encode
from esat.egraph.loader import flatten, load
from esat.egraph.modules import Relevance, members_of, modules_of
from esat.egraph.pool import POOL
from esat.egraph.prepare import prepared, prepared_engine
from esat.egraph.rule_program import program_for
from esat.egraph.saturate import saturate
from esat.egraph.schedule import Budgets
from esat.graph import FunctionGraph
from esat.optimize.optimizer import optimize
from esat.rules import RULES
from esat.rules.query import Query

TEXT = """
(sort T)
(constructor A (i64) T) (constructor B (T) T) (constructor C (T) T) (constructor D (T) T)
(ruleset r)
(rule ((= e (A x))) ((B e)) :ruleset r :name "a-makes-b")
(rule ((= e (B x)) (= y (C x))) ((union e y)) :ruleset r :name "b-and-c")
(rule ((= e (D x))) ((C e)) :ruleset r :name "d-makes-c")
"""
TABLES = frozenset("ABCD")


def names(given):
    modules = modules_of([TEXT], [])
    chosen = [modules[number] for number in Relevance(modules, TABLES).of(given)]
    rules = [module.text.split('"')[1] for module in chosen if module.ruleset]
    return rules, {module.declares for module in chosen} & TABLES


def test_only_what_can_match_is_relevant():
    assert names({"A"}) == (["a-makes-b"], {"A", "B"})
    assert names({"C"}) == ([], {"C"})
    assert names({"A", "D"}) == (["a-makes-b", "b-and-c", "d-makes-c"], set("ABCD"))


def test_a_rule_set_unites_its_members_in_order():
    members = members_of(modules_of([TEXT], []))
    assert list(members) == ["r"]
    assert [member.rpartition(".")[0] for member in members["r"]] == ["r", "r", "r"]
    assert sorted(members["r"], key=lambda member: int(member.rpartition(".")[2])) == list(members["r"])


def random_graph(seed):
    chooser = random.Random(seed)
    inputs = [esat.matrix("x"), esat.matrix("y"), esat.matrix("z")]
    pool = list(inputs)
    function = (esat.exp, esat.tanh, esat.sqrt, esat.abs, esat.sin, esat.log1p)[seed % 6]
    for _ in range(25):
        x, y = chooser.choice(pool), chooser.choice(pool)
        pool.append(chooser.choice((x + y, x * y, x - y, x / y, function(x))))
    return FunctionGraph(inputs, [pool[-1] + pool[-2]], clone=False)


def outcome(program, graph):
    """The size of the e-graph, the matches of all rules, and the optimized program."""
    result, report = optimize(graph, program, Budgets())
    names = {variable: str(number) for number, variable in enumerate(graph.inputs)}
    lines = []
    for node in result.toposort():
        names.update({output: f"{node.op.name}{len(lines)}" for output in node.outputs})
        lines.append((node.op.name, [names.get(variable, str(variable)) for variable in node.inputs]))
    matches = [(rule.name, rule.matches) for rule in report.saturation.rules]
    return report.e_nodes, report.saturation.rounds, matches, lines


def test_the_history_of_an_engine_changes_nothing():
    program = program_for(RULES.query(Query(include=("fast_run",))))
    seeds = range(6)
    fresh = []
    for seed in seeds:
        POOL.clear()
        fresh.append(outcome(program, random_graph(seed)))
    POOL.clear()
    assert [outcome(program, random_graph(seed)) for seed in seeds] == fresh
    assert [outcome(program, random_graph(seed)) for seed in reversed(seeds)] == fresh[::-1]
    POOL.clear()


def saturation(program, graph, everything):
    """What an engine finds that has no rule yet, or all that could matter; and the names of its rules."""
    POOL.clear()
    terms, rules = encode(graph), prepared(program)
    with prepared_engine(program, terms) as engine:
        if everything:
            rules.extend(engine, rules.relevant({term.constructor for term in terms.terms}))
        load(engine, terms, flatten(terms, program.strict))
        report = saturate(engine, rules.schedule_for(terms), Budgets(), program.constructors)
        matches = [(rule.name, rule.matches) for rule in report.rules]
        own = {module.name for module in rules.modules if module.ruleset and module.key in engine.modules}
        rows = {name: size for name, size in engine.sizes().items() if size}
    POOL.clear()
    return (report.nodes, report.rounds, matches, rows), own


def test_rules_are_loaded_when_they_have_something_to_match_and_find_the_same():
    program = program_for(RULES.query(Query(include=("fast_run",))))
    for seed in (0, 3):
        found, own = saturation(program, random_graph(seed), False)
        expected, every = saturation(program, random_graph(seed), True)
        assert found == expected
        assert own < every
        assert len(own) < 0.9 * len(every)


def test_leaving_rules_out_changes_no_result():
    program = program_for(RULES.query(Query(include=("fast_run",))))
    for seed in range(3):
        terms = encode(random_graph(seed))
        sizes = []
        for known in (terms, None):
            with prepared_engine(program, known) as engine:
                load(engine, terms, flatten(terms))
                rules = prepared(program)
                schedule = rules.schedule if known is None else rules.schedule_for(known)
                report = saturate(engine, schedule, Budgets(), program.constructors)
                sizes.append((report.nodes, report.rounds, report.stop_reason))
        assert sizes[0] == sizes[1]


def fired(inputs, outputs, rules=()):
    program = program_for(RULES.query(Query(include=("fast_run",)), extra=rules))
    terms = encode(esat.Graph(inputs, outputs).function_graph())
    with prepared_engine(program, terms) as engine:
        load(engine, terms, flatten(terms, program.strict))
        report = saturate(engine, prepared(program).schedule_for(terms), Budgets(), program.constructors)
    return {rule.name for rule in report.rules}


def chain_of(*shapes):
    a, b, c = (esat.tensor(name, shape=shape) for name, shape in zip("abc", shapes, strict=True))
    return [a, b, c], [esat.matmul(esat.matmul(a, b), c)]


def test_rules_for_large_products_are_left_out_where_all_are_small():
    assert "matmul-associates-right" not in fired(*chain_of((4, 4), (4, 16), (16, 2)))
    assert "matmul-associates-right" in fired(*chain_of((4, 4), (4, 17), (17, 2)))
    assert "matmul-associates-right" in fired(*chain_of((4, 4), (4, None), (None, 2)))
    assert "matmul-associates-right" in fired(*chain_of((100, 2, 2), (100, 2, 2), (100, 2, 1)))


def test_rules_of_users_are_never_left_out_for_sizes():
    own = RULES.read(
        """(ruleset own-associations :tags (fast_run large) :soundness real)
        (rewrite (MatMul (MatMul x y 2) z 2) (MatMul x (MatMul y z 2) 2)
                 :ruleset own-associations :name "own")"""
    )
    assert "own" in fired(*chain_of((4, 4), (4, 4), (4, 2)), [own])
