"""Prices of all e-nodes of an e-graph at once.

Most e-nodes are priced alike: a price depends on the operator, its attributes, and the values of the operands
and of the result, of which there are few. So e-nodes are sorted into kinds, as arrays, and the cost model is
asked once for each kind. Of n-ary sums and products hardly two are alike; see ``nary_pricing``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np

from esat.egraph.language.terms import TermGraph
from esat.extract.arrays import Attribute, EGraphArrays, FloatArray, IntArray
from esat.extract.kinds import examples_of, numbered, refined, renumbered, spread
from esat.extract.prices.class_values import Hints, term_values
from esat.extract.prices.cost import PRICED_WITHOUT_ATTRIBUTES, CostModel
from esat.extract.prices.nary_pricing import NARY, nary_costs
from esat.extract.prices.value import IMPOSSIBLE, Value


def node_costs(arrays: EGraphArrays, values: Sequence[Value | None], model: CostModel) -> FloatArray:
    """Predicted seconds of every e-node, float64 ``(nodes,)``; infinite where it cannot be computed.

    Parameters
    ----------
    values
        Shape and dtype of each class; None where they are unknown.
    """
    nary = np.array([name in NARY for name in arrays.operator_names], np.bool_)[arrays.operator]
    costs = np.empty(arrays.node_count)
    sums = np.flatnonzero(nary)
    value, different = numbered(values)
    costs[sums] = nary_costs(arrays, sums, value, different, model)
    others = np.flatnonzero(~nary)
    kinds = _kinds(arrays, value, others)
    prices = [_price(arrays, values, model, node) for node in others[examples_of(kinds)].tolist()]
    costs[others] = np.array(prices, np.float64)[kinds]
    return costs


def term_costs(terms: TermGraph, values: Sequence[Value], model: CostModel) -> FloatArray:
    """Predicted seconds of every term, float64 ``(terms,)``."""
    return node_costs(_as_e_nodes(terms), values, model)


def _as_e_nodes(terms: TermGraph) -> EGraphArrays:
    """The terms as an e-graph, each in a class of its own."""
    count = len(terms.terms)
    operators: dict[str, int] = {}
    attributes: dict[tuple[Attribute, ...], int] = {}
    operator = [operators.setdefault(term.constructor, len(operators)) for term in terms.terms]
    attribute = [attributes.setdefault(term.attributes, len(attributes)) for term in terms.terms]
    numbers = np.arange(count + 1, dtype=np.int64)
    start = np.zeros(count + 1, np.int64)
    np.cumsum([len(term.operands) for term in terms.terms], out=start[1:])
    return EGraphArrays(
        operator_names=tuple(operators),
        operator=np.array(operator, np.int64),
        class_of=numbers[:-1],
        operand_start=start,
        operands=np.array([operand for term in terms.terms for operand in term.operands], np.int64),
        attribute=np.array(attribute, np.int64),
        attribute_values=tuple(attributes),
        subsumed=np.zeros(count, np.bool_),
        class_start=numbers,
        term_class=numbers[:-1],
        facts={},
    )


def _price(arrays: EGraphArrays, values: Sequence[Value | None], model: CostModel, node: int) -> float:
    identities = arrays.operands_of(node).tolist()
    operands = [value for value in map(values.__getitem__, identities) if value is not None]
    result = values[int(arrays.class_of[node])]
    if result is None or len(operands) < len(identities):
        return IMPOSSIBLE
    return model.price(arrays.operator_of(node), arrays.attributes_of(node), operands, result, identities)


def _kinds(arrays: EGraphArrays, value: IntArray, nodes: IntArray) -> IntArray:
    """The kind of each of the e-nodes, int64 ``(nodes,)``, by the numbers of the values of their classes."""
    attributed = np.array([name not in PRICED_WITHOUT_ATTRIBUTES for name in arrays.operator_names], np.bool_)
    operator = arrays.operator[nodes]
    attribute = np.where(attributed[operator], arrays.attribute[nodes], 0)
    head = operator * max(len(arrays.attribute_values), 1) + attribute
    owner, edges = spread(arrays.operand_start[nodes], arrays.arity[nodes])
    kinds = renumbered(head * (int(value.max(initial=0)) + 1) + value[arrays.class_of[nodes]])
    return renumbered(refined(kinds, owner, value[arrays.operands[edges]]))


def predicted_seconds(terms: TermGraph, model: CostModel, hints: Hints | None = None) -> float:
    """Predicted seconds of the terms the roots need, each once."""
    needed = [False] * len(terms.terms)
    for root in terms.roots:
        needed[root] = True
    for number in reversed(range(len(needed))):
        if needed[number]:
            for operand in terms.terms[number].operands:
                needed[operand] = True
    costs = term_costs(terms, term_values(terms, hints), model)
    return fsum(costs[needed].tolist())
