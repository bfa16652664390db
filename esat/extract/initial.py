"""The selection that the loaded graph itself is: the first start of the search.

Whatever the rules add, the e-nodes of the loaded terms are still there, so the result of extraction is
never predicted to be slower than the graph as it was written.
"""

from __future__ import annotations

import numpy as np

from esat.egraph.loader import LoadPlan, NaryTerm
from esat.egraph.terms import Term, TermGraph
from esat.extract.arrays import Attribute, EGraphArrays, IntArray


def initial_choice(arrays: EGraphArrays, source: TermGraph, plan: LoadPlan) -> IntArray:
    """The e-node of the first term of each class, int64 ``(classes,)``.

    Classes of terms that no root needs, and those whose e-node is not in the e-graph any more, have -1.
    Operands have been chosen before their users, so there are no cycles.
    """
    chosen = np.full(arrays.class_count, -1, np.int64)
    class_of_term = arrays.term_class.tolist()
    needed = _needed(source, plan)
    for number, form in enumerate(plan.forms):
        klass = class_of_term[number]
        if form is None or klass < 0 or chosen[klass] >= 0 or number not in needed:
            continue
        operands, constructor, attributes = _in_classes(form, class_of_term)
        if all(chosen[operand] >= 0 for operand in operands):
            chosen[klass] = _node(arrays, klass, constructor, operands, attributes)
    return chosen


def _needed(source: TermGraph, plan: LoadPlan) -> set[int]:
    needed: set[int] = set()
    pending = list(source.roots)
    while pending:
        number = pending.pop()
        form = plan.forms[number]
        if number not in needed and form is not None:
            needed.add(number)
            pending += form.operands if isinstance(form, Term) else (*form.above, *form.below)
    return needed


def _in_classes(
    form: Term | NaryTerm, class_of_term: list[int]
) -> tuple[list[int], str, tuple[Attribute, ...]]:
    """Operand classes, constructor and attributes of a term's e-node; multisets are sorted."""
    if isinstance(form, Term):
        return [class_of_term[operand] for operand in form.operands], form.constructor, form.attributes
    above = sorted(class_of_term[operand] for operand in form.above)
    below = sorted(class_of_term[operand] for operand in form.below)
    return above + below, form.constructor, (len(above),)


def _node(
    arrays: EGraphArrays, klass: int, constructor: str, operands: list[int], attributes: tuple[Attribute, ...]
) -> int:
    for node in arrays.nodes_of(klass):
        if (
            arrays.operator_of(node) == constructor
            and arrays.operands_of(node).tolist() == operands
            and arrays.attributes_of(node) == attributes
        ):
            return node
    return -1
