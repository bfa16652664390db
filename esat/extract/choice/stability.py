"""Forms of linear algebra that are less stable than another of their class, by a rule and not by samples.

A determinant leaves the range as its matrix grows, and a product over axes as these grow, which samples at
tiny sizes do not see either.

A product with an inverse has errors as small as those of a solved system in the worst case, but its residual
is larger by the condition of the matrix (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
section 14.1). Samples that compare results with the truth do not see that.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from esat.egraph.analyses.known import LONG_PRODUCTS
from esat.extract.arrays import BoolArray, EGraphArrays
from esat.ops.linalg.structured import PRODUCTS

_SOLUTIONS = frozenset({"Solve", "SolveSemidefinite", "SolveTriangular", "CholeskySolve", "PackedSolve"})
_INVERSES = frozenset({"Inv", "InvTriangular"})
_PRODUCTS_OF_NUMBERS = frozenset({
    "NaryProd", "Mul", "Div", "Sqr", "Sqrt", "Pow", "Reciprocal", "Abs", "Neg", "NarySum", "Sub", "DimShuffle"
})  # fmt: skip
_VIEWS = frozenset({"DimShuffle", "Neg", "NarySum"})
"""What, of one operand, is that or its negative in another place."""


def products_with_inverses(arrays: EGraphArrays) -> BoolArray:
    """Which e-nodes multiply by an inverse what a system in their class is solved for, bool ``(nodes,)``.

    Views and negatives of inverses and of solutions are such. An inverse that is known in another form, as
    of an orthogonal matrix, is none.
    """
    found = np.zeros(arrays.node_count, np.bool_)
    names = arrays.operator_names
    if "Inv" not in names or not _SOLUTIONS.intersection(names):
        return found
    solved = _with_views(arrays, _classes_of(arrays, _SOLUTIONS))
    inverses = _inverses(arrays)
    for node in np.flatnonzero(_are(arrays, PRODUCTS)).tolist():
        if int(arrays.class_of[node]) in solved:
            found[node] = not inverses.isdisjoint(arrays.operands_of(node).tolist())
    return found


def of_long_products(arrays: EGraphArrays) -> BoolArray:
    """Which e-nodes have an operand that is made of long products by products, bool ``(nodes,)``."""
    found = np.zeros(arrays.node_count, np.bool_)
    reached = _classes_of(arrays, LONG_PRODUCTS)
    if not reached:
        return found
    products = [
        (int(arrays.class_of[node]), arrays.operands_of(node).tolist())
        for node in np.flatnonzero(_are(arrays, _PRODUCTS_OF_NUMBERS)).tolist()
    ]
    while added := {own for own, operands in products if not reached.isdisjoint(operands)} - reached:
        reached |= added
    for node in range(arrays.node_count):
        found[node] = not reached.isdisjoint(arrays.operands_of(node).tolist())
    return found


def _are(arrays: EGraphArrays, constructors: Collection[str]) -> BoolArray:
    """Which e-nodes have one of some constructors, bool ``(nodes,)``."""
    numbers = [number for number, name in enumerate(arrays.operator_names) if name in constructors]
    are: BoolArray = np.isin(arrays.operator, numbers)
    return are


def _classes_of(arrays: EGraphArrays, constructors: Collection[str]) -> set[int]:
    return set(arrays.class_of[_are(arrays, constructors)].tolist())


def _with_views(arrays: EGraphArrays, classes: set[int]) -> set[int]:
    """Some classes, and those of views and negatives of their values."""
    found = set(classes)
    views = [
        (int(arrays.class_of[node]), operands[0])
        for node in range(arrays.node_count)
        if len(operands := arrays.operands_of(node).tolist()) == 1 and arrays.operator_of(node) in _VIEWS
    ]
    while added := {own for own, viewed in views if viewed in found} - found:
        found |= added
    return found


def _inverses(arrays: EGraphArrays) -> set[int]:
    """Classes whose values can only be had by inverting a matrix."""
    inverted = _with_views(arrays, _classes_of(arrays, _INVERSES))
    return {
        klass
        for klass in inverted
        if all(_inverts(arrays, node, inverted) for node in arrays.nodes_of(klass))
    }


def _inverts(arrays: EGraphArrays, node: int, inverted: set[int]) -> bool:
    """Whether an e-node is an inverse, or only another view of one, or of its own class."""
    if arrays.operator_of(node) in _INVERSES:
        return True
    operands = arrays.operands_of(node).tolist()
    return len(operands) == 1 and operands[0] in inverted
