"""Where something could cancel or be factored: a loop that :mod:`esat.base.native` compiles."""

from __future__ import annotations

from esat.base.native import Integers
from esat.egraph.algebra.finite_fields.coded import FILL, POWER, PRODUCT, SUM, Nodes


def promising(
    nodes: Nodes,
    order: Integers,
    chosen: Integers,
    is_constant: Integers,
    kind: Integers,
    stamp: Integers,
    result: Integers,
) -> None:
    """Mark the classes in whose chosen trees something could cancel or be factored.

    These are sums of products with a common factor, of several quotients, or of a product with a sum in it;
    and products with several sums in them; and what is computed from such.

    Parameters
    ----------
    nodes, order, chosen, is_constant
        The chosen trees.
    kind
        Room by class: 1 for sums, 2 for products with a sum in them, 3 for other quotients, else 0.
    stamp
        Room by class, filled with -1.
    result
        Receives 1 for the classes marked, else 0.
    """
    for place in range(len(order)):
        klass = order[place]
        node = chosen[klass]
        code = nodes.code[node]
        kind[klass] = 0
        result[klass] = 0
        if code < FILL or is_constant[klass] == 1:
            continue
        first = nodes.start[node]
        last = nodes.start[node + 1]
        sums = 0
        quotients = 0
        expandable = 0
        for edge in range(first, last):
            below = nodes.operands[edge]
            if result[below] == 1:
                result[klass] = 1
            sums += 1 if kind[below] == 1 else 0
            expandable += 1 if kind[below] == 2 else 0
            quotients += 1 if kind[below] == 3 else 0
        if code == FILL:
            kind[klass] = kind[nodes.operands[first + 1]]
        elif code == SUM:
            kind[klass] = 1 if last - first > 1 else 0
            if expandable > 0 or quotients > 1 or has_common(nodes, node, chosen, is_constant, stamp):
                result[klass] = 1
        elif code >= PRODUCT:
            divides = last - first > nodes.number[node] if code == PRODUCT else nodes.number[node] < 0
            if sums + expandable > 0:
                kind[klass] = 2
            elif divides:
                kind[klass] = 3
            if sums + expandable > 1 or (divides and quotients > 0):
                result[klass] = 1


def has_common(nodes: Nodes, node: int, chosen: Integers, is_constant: Integers, stamp: Integers) -> bool:
    """Whether two summands have a factor in common."""
    for edge in range(nodes.start[node], nodes.start[node + 1]):
        below = nodes.operands[edge]
        inner = chosen[below]
        code = nodes.code[inner]
        if is_constant[below] == 1:
            continue
        if code >= PRODUCT:
            last = nodes.start[inner] + 1 if code == POWER else nodes.start[inner + 1]
            for factor in range(nodes.start[inner], last):
                if stamp[nodes.operands[factor]] == node and is_constant[nodes.operands[factor]] == 0:
                    return True
        elif stamp[below] == node:
            return True
        if code >= PRODUCT:
            for factor in range(nodes.start[inner], last):
                stamp[nodes.operands[factor]] = node
        else:
            stamp[below] = node
    return False
