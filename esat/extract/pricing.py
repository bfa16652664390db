"""Prices of all e-nodes of an e-graph at once.

Most e-nodes are priced alike: a price depends on the operator, its attributes, and the values of the operands
and of the result, of which there are few. So e-nodes are sorted into kinds, as arrays, and the cost model is
asked once for each kind. N-ary sums and products are of one kind if they have as many operands of each value,
whatever their order; of products, exponents count as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.egraph.terms import TermGraph
from esat.extract.arrays import Attribute, BoolArray, EGraphArrays, FloatArray, IntArray, distinct, starts_of
from esat.extract.cost import CostModel
from esat.extract.value import IMPOSSIBLE, Value

_NARY = ("NarySum", "NaryProd")


def node_costs(arrays: EGraphArrays, values: Sequence[Value | None], model: CostModel) -> FloatArray:
    """Predicted seconds of every e-node, float64 ``(nodes,)``; infinite where it cannot be computed.

    Parameters
    ----------
    values
        Shape and dtype of each class; None where they are unknown.
    """
    kinds, examples = _kinds(arrays, values)
    prices = [_price(arrays, values, model, node) for node in examples.tolist()]
    return np.array(prices, np.float64)[kinds]


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


def _kinds(arrays: EGraphArrays, values: Sequence[Value | None]) -> tuple[IntArray, IntArray]:
    """The kind of each e-node, int64 ``(nodes,)``, and an e-node of each kind."""
    numbers: dict[Value | None, int] = {}
    value = np.array([numbers.setdefault(entry, len(numbers)) for entry in values], np.int64)
    head = arrays.operator * len(arrays.attribute_values) + arrays.attribute
    kinds = _renumbered(head * len(numbers) + value[arrays.class_of])
    owner = np.repeat(np.arange(arrays.node_count, dtype=np.int64), arrays.arity)
    nary = np.isin(arrays.operator, [i for i, name in enumerate(arrays.operator_names) if name in _NARY])
    ordered = ~nary[owner]
    kinds = _refined(kinds, owner[ordered], value[arrays.operands[ordered]])
    if nary.any():
        kinds = _refined(kinds, *_counted_operands(arrays, nary, owner, value))
    _names, kinds = distinct(kinds)
    examples = np.zeros(int(kinds.max(initial=-1)) + 1, np.int64)
    examples[kinds[::-1]] = np.arange(len(kinds))[::-1]
    return kinds, examples


def _refined(kinds: IntArray, owner: IntArray, items: IntArray) -> IntArray:
    """Kinds by the former ones and by the items that each e-node owns, in their order.

    Parameters
    ----------
    owner
        int64 ``(items,)``, ascending.
    items
        int64 ``(items,)``, not negative.
    """
    start = starts_of(owner, len(kinds))
    length = np.diff(start)
    kinds = kinds.copy()
    span = int(items.max(initial=0)) + 1
    for place in range(int(length.max(initial=0))):
        rows = np.flatnonzero(length > place)
        # Above all former kinds: an e-node whose items have come to an end is of none of the new ones.
        kinds[rows] = _renumbered(kinds[rows] * span + items[start[rows] + place]) + kinds.max() + 1
    return kinds


def _counted_operands(
    arrays: EGraphArrays, nary: BoolArray, owner: IntArray, value: IntArray
) -> tuple[IntArray, IntArray]:
    """How many operands of each sign, value and exponent n-ary e-nodes have: owners, and one number."""
    edges = np.flatnonzero(nary[owner])
    owner, operands = owner[edges], arrays.operands[edges]
    nodes, number = np.flatnonzero(nary), np.zeros(arrays.node_count, np.int64)
    number[nodes] = [int(arrays.attribute_values[index][0]) for index in arrays.attribute[nodes].tolist()]
    signed = 2 * owner + (edges - arrays.operand_start[owner] >= number[owner])
    is_product = np.array([name == "NaryProd" for name in arrays.operator_names], np.bool_)[arrays.operator]
    # Of a sum, equal operands are like any others: they count for themselves.
    apart = np.where(is_product[owner], 0, np.arange(len(edges)))
    order = np.lexsort((apart, operands, signed))
    signed, operands, apart = signed[order], operands[order], apart[order]
    first, exponents = _runs(signed, operands, apart)
    signed, exponents = signed[first], np.where(is_product[signed[first] // 2], exponents, 1)
    seen = value[operands[first]]
    order = np.lexsort((exponents, seen, signed))
    signed, seen, exponents = signed[order], seen[order], exponents[order]
    first, counts = _runs(signed, seen, exponents)
    signed = signed[first]
    items = signed % 2
    for column in (seen[first], exponents[first], counts):
        items = _renumbered(items * (int(column.max(initial=0)) + 1) + column)
    return signed // 2, items


def _runs(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """Where runs of equal rows begin, and how long they are."""
    changes = np.zeros(len(columns[0]), np.bool_)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(changes)
    return first, np.diff(np.append(first, len(changes)))


def _renumbered(values: IntArray) -> IntArray:
    """Numbers from 0 that are equal where the values are."""
    return distinct(values)[1]
