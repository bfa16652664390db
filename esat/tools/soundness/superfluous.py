"""Which rules the layer of sums and products makes superfluous: it equates their sides without any rule.

All modes have that layer but those that admit exact rules alone, for which exact rules are never superfluous.
What only the algebra shows, greedy modes need a rule for: they have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from esat.egraph.language.constructors import op_signature
from esat.egraph.language.loader import NARY_FORM
from esat.egraph.language.terms import TermGraph
from esat.egraph.preparation.rule_database import RULES
from esat.egraph.preparation.rule_program import program_for
from esat.egraph.saturation.schedule import Budgets
from esat.optimize.equality.search import saturated
from esat.rules.language.query import Query
from esat.rules.language.reader import Sexp, head_of
from esat.rules.language.rule import Rule
from esat.rules.language.rule_signature import Signature
from esat.tools.soundness.construction import Construction
from esat.tools.soundness.firing import left_sides, situations
from esat.tools.soundness.situation import SituationSampler
from esat.tools.soundness.statement import operators_for, statement_of

_ARITHMETIC = frozenset({*NARY_FORM, "K"})
_MADE_BY_RULES = frozenset({"Pow", "Fill"})
"""Ops whose other forms rules make: how a power is multiplied out, and what lends a shape."""


def superfluous(rules: Sequence[Rule], operators: Signature | None = None, seed: int = 0) -> list[Rule]:
    """The rules that say nothing which is not known without any rule.

    Parameters
    ----------
    rules
        What to look at.
    operators
        What they may name; by default ops and facts.
    seed
        Of the random choices.
    """
    known = operators_for(op_signature()) if operators is None else operators
    return [rule for rule in rules if is_superfluous(rule, known, seed)]


def is_superfluous(rule: Rule, operators: Signature, seed: int = 0) -> bool:
    """Whether both sides of a rule are one class without it, in all situations that are tried."""
    statement = statement_of(rule, operators)
    if rule.soundness == "exact" or statement.unjudged or statement.claims or not statement.equalities:
        return False
    if not all(_is_arithmetic(right) for _, right in statement.equalities):
        return False
    lefts = [*(term for _, term in statement.patterns), *(left for left, _ in statement.equalities)]
    if any(_heads(left) & _MADE_BY_RULES for left in lefts):
        return False
    signature, random = op_signature(), Random(f"{seed} {rule.name}")
    construction = Construction(signature, operators)
    sampler = SituationSampler(statement, signature, construction, random)
    tried = [
        _are_equal(left_sides(statement, situation, construction, operators))
        for situation in situations(statement, sampler, random)
    ]
    return bool(tried) and all(tried)


def _is_arithmetic(term: Sexp) -> bool:
    """Whether a term is made by arithmetic of the variables that the patterns bind."""
    if isinstance(term, str):
        return True
    return head_of(term) in _ARITHMETIC and all(map(_is_arithmetic, term[1:]))


def _heads(term: Sexp) -> set[str]:
    """The ops of a term."""
    return set() if isinstance(term, str) else {head_of(term)}.union(*map(_heads, term[1:]))


def _are_equal(terms: TermGraph) -> bool:
    """Whether the first half of a graph's roots are found to be equal to the second half, one by one."""
    graph, _ = saturated(terms, program_for(RULES.query(Query([])), rulesets=frozenset()), Budgets())
    half = len(graph.roots) // 2
    return graph.roots[:half] == graph.roots[half:]
