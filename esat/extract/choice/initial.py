"""The selection that the loaded graph itself is: the first start of the search.

Whatever the rules add, the e-nodes of the loaded terms are still there, so the result of extraction is
never predicted to be slower than the graph as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from esat.egraph.language.loader import LoadPlan
from esat.egraph.language.terms import Term, TermGraph
from esat.extract.arrays import Attribute, EGraphArrays, IntArray


def initial_choice(arrays: EGraphArrays, source: TermGraph, plan: LoadPlan) -> IntArray:
    """The e-node of the first term of each class, int64 ``(classes,)``.

    Classes of terms that no root needs, and those whose e-node is not in the e-graph any more, have -1.
    Operands have been chosen before their users, so there are no cycles.
    """
    chosen = [-1] * arrays.class_count
    class_of_term = arrays.term_class.tolist()
    operators = {name: index for index, name in enumerate(arrays.operator_names)}
    for number in _needed(source, plan):
        form = plan.forms[number]
        klass = class_of_term[number]
        if form is None or klass < 0 or chosen[klass] >= 0:
            continue
        if isinstance(form, Term):
            operands, attributes = [class_of_term[operand] for operand in form.operands], form.attributes
        else:
            above = sorted([class_of_term[operand] for operand in form.above])
            operands = above + sorted([class_of_term[operand] for operand in form.below])
            attributes = (len(above),)
        if -1 not in [chosen[operand] for operand in operands]:
            chosen[klass] = _node(arrays, klass, operators.get(form.constructor, -1), operands, attributes)
    return np.array(chosen, np.int64)


def _needed(source: TermGraph, plan: LoadPlan) -> Iterator[int]:
    """Terms that the roots need, in the form they were loaded in, operands first."""
    needed = [False] * len(plan.forms)
    for root in source.roots:
        needed[root] = True
    for number in range(len(needed) - 1, -1, -1):
        form = plan.forms[number]
        if needed[number] and form is not None:
            for operand in form.operands if isinstance(form, Term) else (*form.above, *form.below):
                needed[operand] = True
    return (number for number, used in enumerate(needed) if used)


def _node(
    arrays: EGraphArrays, klass: int, operator: int, operands: list[int], attributes: tuple[Attribute, ...]
) -> int:
    """The e-node of a class with these operator, operands and attributes; -1 if there is none."""
    operator_of, attribute_of, operand_start, all_operands, class_start = arrays.lists
    for node in range(class_start[klass], class_start[klass + 1]):
        if (
            operator_of[node] == operator
            and all_operands[operand_start[node] : operand_start[node + 1]] == operands
            and arrays.attribute_values[attribute_of[node]] == attributes
        ):
            return node
    return -1
