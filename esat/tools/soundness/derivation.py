"""Facts that the e-graph derives of a term, from the records of its ops and what is given of its leaves."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import permutations

from esat.egraph.analyses.uniform import value_of
from esat.graph import Variable
from esat.graph.algorithms.traversal import toposort
from esat.ops.elementwise.records.facts import ANY
from esat.ops.elementwise.records.record import Elementwise
from esat.tools.soundness.statement import FACTS

_WEAKER = {"positive": "nonnegative", "negative": "nonpositive"}


def derived_facts(term: Variable, given: Mapping[Variable, Collection[str]]) -> frozenset[str]:
    """All facts that follow for the elements of a term of real floating dtype.

    A union of the term with another passes these facts on to the other, so they must be true of it, too.

    Parameters
    ----------
    term
        The term.
    given
        Facts of Variables that a rule's guards ask for.
    """
    known: dict[Variable, set[str]] = {variable: _closed(facts) for variable, facts in given.items()}
    for node in toposort([term]):
        for variable in (*node.inputs, *node.outputs):
            known.setdefault(variable, set())
        for operand in node.inputs:
            known[operand] |= _of_value(operand)
        output = node.outputs[0]
        if isinstance(node.op, Elementwise) and node.inputs[-1].tensor_type.kind == "f":
            known[output] |= _of_op(node.op, [known[operand] for operand in node.inputs])
    return frozenset(known.get(term, set()))


def _closed(facts: Collection[str]) -> set[str]:
    return {*facts, *(_WEAKER[fact] for fact in facts if fact in _WEAKER)}


def _of_value(variable: Variable) -> set[str]:
    value = value_of(variable)
    if value is None or variable.tensor_type.kind not in "iuf":
        return set()
    signs = {
        "positive": value > 0,
        "negative": value < 0,
        "nonnegative": value >= 0,
        "nonpositive": value <= 0,
        "finite": math.isfinite(value),
    }
    return {fact for fact, holds in signs.items() if holds}


def _of_op(op: Elementwise, operands: list[set[str]]) -> set[str]:
    found = {fact for fact in FACTS if getattr(op.facts, fact, False)}
    for given, result in op.sign_rules:
        orders = set(permutations(given)) if op.facts.commutative else {given}
        for order in orders:
            if all(sign in (ANY, *facts) for sign, facts in zip(order, operands, strict=True)):
                found.add(result)
    return _closed(found)
