"""Forms of linear algebra that are less stable than another of their class, by a rule and not by samples.

A product with an inverse has errors as small as those of a solved system in the worst case, but its residual
is larger by the condition of the matrix (Higham, "Accuracy and Stability of Numerical Algorithms", 2002,
section 14.1). Samples that compare results with the truth do not see that.
"""

from __future__ import annotations

import numpy as np

from esat.extract.arrays import BoolArray, EGraphArrays

_SOLUTIONS = ("Solve", "SolveTriangular", "CholeskySolve")


def products_with_inverses(arrays: EGraphArrays) -> BoolArray:
    """Which e-nodes multiply by an inverse what a system in their class is solved for, bool ``(nodes,)``.

    An inverse that is known in another form, as of an orthogonal matrix, is none.
    """
    found = np.zeros(arrays.node_count, np.bool_)
    names = arrays.operator_names
    if "Inv" not in names or not any(name in names for name in _SOLUTIONS):
        return found
    inverses = _inverses(arrays)
    for node in np.flatnonzero(
        np.isin(arrays.operator, [names.index(name) for name in _SOLUTIONS if name in names])
    ).tolist():
        for other in arrays.nodes_of(int(arrays.class_of[node])):
            if arrays.operator_of(other) == "MatMul" and inverses.intersection(
                arrays.operands_of(other).tolist()
            ):
                found[other] = True
    return found


def _inverses(arrays: EGraphArrays) -> set[int]:
    """Classes whose values can only be had by inverting a matrix."""
    inverse = arrays.operator_names.index("Inv")
    inverted = set(arrays.class_of[arrays.operator == inverse].tolist())
    return {
        klass
        for klass in inverted
        if all(_inverts(arrays, node, inverted) for node in arrays.nodes_of(klass))
    }


def _inverts(arrays: EGraphArrays, node: int, inverted: set[int]) -> bool:
    """Whether an e-node is an inverse, or only another view of one, or of its own class."""
    if arrays.operator_of(node) == "Inv":
        return True
    operands = arrays.operands_of(node).tolist()
    return len(operands) == 1 and operands[0] in inverted
