"""Whether saturation proves two expressions equal."""

from functools import cache

import esat
from esat.egraph.language.encode import encode
from esat.egraph.preparation.rule_program import RuleProgram, program_for
from esat.egraph.saturation.schedule import Budgets
from esat.optimize.equality.search import saturated
from esat.rules import RULES
from esat.rules.language.query import Query


@cache
def rules() -> RuleProgram:
    """Those of the ordinary mode."""
    return program_for(RULES.query(Query(include=("fast_run",))))


def proved(inputs: list[esat.Variable], left: esat.Variable, right: esat.Variable) -> bool:
    """Whether two expressions of some of the inputs are of one class in the end."""
    graph = esat.Graph(inputs, [left, right], on_unused_input="ignore").function_graph()
    found, _ = saturated(encode(graph), rules(), Budgets())
    first, second = found.arrays.term_class[list(found.terms.roots)].tolist()
    return bool(first == second)
