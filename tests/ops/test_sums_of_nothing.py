"""Sums of no terms are 0, whatever the terms would have been divided by."""

import numpy as np
import pytest

import esat

X, A, V = esat.matrix("x"), esat.scalar("a"), esat.vector("v")
MODES = ("fast_run", "fast_compile", "greedy", "Stabilization", "strict")
SUMS = {
    "by a scalar": esat.sum(X / A),
    "along an axis": esat.sum(X / A, axis=0),
    "by a row": esat.sum(X / V, axis=0),
    "by how many they are": esat.sum(X / X.shape[0]),
    "products": (X.T / A) @ X,
    "products of the right operand": X.T @ (X / A),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SUMS)
def test_nothing_divided_by_zero_is_no_term(name, mode):
    function = esat.compile(esat.Graph([X, A, V], [SUMS[name]], on_unused_input="ignore"), mode)
    result = function(np.empty((0, 3)), 0.0, np.zeros(3))
    np.testing.assert_array_equal(result, np.zeros(np.shape(result)))
