"""egglog loads only the rules that can matter, which changes nothing."""

import random

import pytest

import esat
from esat.egraph.language.encode import encode
from esat.egraph.language.loader import flatten, load
from esat.egraph.preparation.modules import Relevance, modules_of
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import Budgets
from esat.graph import FunctionGraph
from esat.optimize.equality.optimizer import optimize
from esat.rules import RULES
from esat.rules.language.query import Query

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
    rules = [module.name for module in chosen if module.ruleset]
    return rules, {module.declares for module in chosen} & TABLES


def test_only_what_can_match_is_relevant():
    assert names({"A"}) == (["a-makes-b"], {"A", "B"})
    assert names({"C"}) == ([], {"C"})
    assert names({"A", "D"}) == (["a-makes-b", "b-and-c", "d-makes-c"], set("ABCD"))


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


def test_what_was_compiled_before_changes_nothing():
    program = program_for(RULES.query(Query(include=("fast_run",))))
    seeds = range(4)
    first = [outcome(program, random_graph(seed)) for seed in seeds]
    assert [outcome(program, random_graph(seed)) for seed in reversed(seeds)] == first[::-1]


@pytest.mark.parametrize("engine", ["esat", "egglog"])
def test_leaving_rules_out_changes_no_result(engine):
    program = program_for(RULES.query(Query(include=("fast_run",))), engine=engine)
    for seed in range(2):
        terms = encode(random_graph(seed))
        sizes = []
        for known in (terms, None):
            engine = prepared_engine(program, known)
            load(engine, terms, flatten(terms))
            rules = prepared(program)
            schedule = rules.schedule if known is None else rules.schedule_for(known)
            report = saturate(engine, schedule, Budgets(), program.constructors)
            sizes.append((report.nodes, report.rounds, report.stop_reason))
        assert sizes[0] == sizes[1]


def fired(inputs, outputs, rules=()):
    program = program_for(RULES.query(Query(include=("fast_run",)), extra=rules))
    terms = encode(esat.Graph(inputs, outputs).function_graph())
    engine = prepared_engine(program, terms)
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
