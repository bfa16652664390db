"""Matrices that are no more than an operator in the small arrays, and what may be done with them.

An index of a small axis stands for several equal ones. A matrix whose rows and columns are equal in such
groups is a small matrix. One that is not, because there is something else on its diagonal, as in an identity
or an orthogonal matrix, is known by what it does with vectors that are equal in groups: sums, products with
other matrices, sums over axes and products with numbers, vectors and one ordinary matrix, element by element,
follow from that. Its diagonal, its elements' squares and other functions of them do not.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from esat.egraph.algebra.finite_fields.coded import (
    CONJUGATE,
    CONTRACT,
    COPY,
    GATHER,
    LENGTH,
    ON_DIAGONAL,
    OPAQUE,
    PRODUCT,
    REDUCE,
    SHUFFLE,
    SIZE,
    SUM,
    Nodes,
)
from esat.egraph.algebra.finite_fields.reading import Integers

_LINEAR = (SUM, SHUFFLE, COPY, GATHER)


def without_meaning(
    nodes: Nodes, chosen: Integers, order: Integers, axes: Integers, singular: Collection[int]
) -> list[int]:
    """E-nodes that do something else with such matrices.

    Parameters
    ----------
    nodes
        The e-nodes.
    chosen, order
        The e-node of each class, and the classes, operands first.
    axes
        int64 ``(classes,)``: how many axes are not of length 1.
    singular
        E-nodes that are such matrices, beside those of a diagonal.
    """
    sources = set(np.flatnonzero(nodes.code == ON_DIAGONAL).tolist()) | set(singular)
    if not sources:
        return []
    start, operands = nodes.start.tolist(), nodes.operands.tolist()
    codes, numbers = nodes.code.tolist(), nodes.number.tolist()
    is_singular = np.zeros(len(chosen), np.bool_)

    def result(node: int) -> bool | None:
        """Whether the result is such a matrix; None where it is not known."""
        below = operands[start[node] : start[node + 1]]
        held = [place for place, klass in enumerate(below) if is_singular[klass]]
        code, number = codes[node], numbers[node]
        if node in sources or code == OPAQUE or not held:
            return node in sources
        if code == CONTRACT:
            return len(held) == 2
        if code == REDUCE:
            return bool(axes[nodes.class_of[node]] >= 2)
        if code in _LINEAR or (code == CONJUGATE and number != SIZE):
            return True
        if code == PRODUCT and len(held) == 1 and held[0] < number:
            return True
        return False if code == LENGTH else None

    for klass in order.tolist():
        is_singular[klass] = result(int(chosen[klass])) is True
    return [node for node in range(len(codes)) if result(node) is None]
