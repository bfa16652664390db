"""Which rules the algebra makes superfluous: both sides have one value, and the right one is arithmetic.

The algebra compares whatever is in an e-graph, and offers sums, products and quotients by itself. It makes no
other terms: a rule whose right side has an op of another kind says something of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from esat.egraph.algebra.fingerprints import fingerprints
from esat.egraph.algebra.lengths import Symbols
from esat.egraph.algebra.reading import read
from esat.egraph.constructors import op_signature
from esat.egraph.loader import NARY_FORM, flatten, load
from esat.egraph.prepare import prepared_engine
from esat.egraph.rule_program import program_for
from esat.egraph.terms import TermGraph
from esat.rules import RULES
from esat.rules.query import Query
from esat.rules.reader import Sexp, head_of
from esat.rules.rule import Rule
from esat.rules.rule_signature import Signature
from esat.soundness.construction import Construction
from esat.soundness.firing import left_sides, situations
from esat.soundness.situation import SituationSampler
from esat.soundness.statement import operators_for, statement_of

_ARITHMETIC = frozenset({*NARY_FORM, "K"})
_MADE_BY_RULES = frozenset({"Pow", "Fill"})
"""Ops whose other forms rules make: how a power is multiplied out, and what lends a shape."""


def superfluous(rules: Sequence[Rule], operators: Signature | None = None, seed: int = 0) -> list[Rule]:
    """The rules that the algebra implies.

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
    """Whether both sides of a rule have one value in the finite fields, in all situations that are tried."""
    statement = statement_of(rule, operators)
    if statement.unjudged or statement.claims or not statement.equalities:
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
    """Whether the first half of a graph's roots have the values of the second half, one by one."""
    program = program_for(RULES.query(Query([])))
    operators = {*program.constructors, *(term.constructor for term in terms.terms)}
    engine = prepared_engine(program, terms)
    load(engine, terms, flatten(terms))
    found = fingerprints(read(engine, operators), Symbols.of(terms))
    classes = [int(found.reading.term_class[root]) for root in terms.roots]
    half = len(classes) // 2
    values = [(found.value_of(klass), int(found.shape[klass])) for klass in classes]
    return values[:half] == values[half:]
