"""Saturating graphs with all rules, for tests that look at the e-graph."""

from functools import cache

from esat.egraph.language.encode import encode
from esat.egraph.language.loader import flatten, load
from esat.egraph.preparation.prepare import prepared, prepared_engine
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.saturate import saturate
from esat.egraph.saturation.schedule import Budgets
from esat.extract.readout import TableLayout, read_out
from esat.graph import FunctionGraph
from esat.rules import PACKAGE_RULES, RuleDatabase
from esat.rules.language.query import Query

DATABASE = RuleDatabase(PACKAGE_RULES)


@cache
def all_rules(strict: bool = False, soundness: str = "unsafe") -> RuleProgram:
    """The program of every rule of the package, whatever its tags."""
    tags = {tag for rule in DATABASE.list() for tag in (*rule.tags, rule.ruleset)}
    soundness = "exact" if strict else soundness
    return program_for(DATABASE.query(Query(tags), soundness=soundness), strict)


def saturated(inputs, outputs, program=None, budgets=None):
    """The terms, the saturation report and the e-graph of a graph."""
    program = program or all_rules()
    terms = encode(FunctionGraph(list(inputs), list(outputs), clone=False))
    engine = prepared_engine(program, terms)
    load(engine, terms, flatten(terms, program.strict))
    report = saturate(
        engine,
        prepared(program).schedule_for(terms),
        budgets or Budgets(nodes=3000, rounds=4),
        program.constructors,
    )
    arrays = read_out(engine.freeze(), engine.values, TableLayout(not_operators=prepared(program).helpers))
    return terms, report, arrays
