"""An op that the algebra does not know tells a row from a column of the same elements, and lengths apart."""

import numpy as np
import pytest

import esat
from esat.graph.algorithms.evaluate import evaluate

x = esat.TensorType("float64", shape=(3,))("x")
v, w = esat.vector("v"), esat.vector("w")
m, n = esat.matrix("m"), esat.matrix("n")
RNG = np.random.default_rng(3)
VALUES = {x: [1.0, 2, 4], v: [1.0, 2, 3], w: RNG.random(5), m: RNG.random((2, 3)), n: RNG.random((4, 5))}


def stretched(vector):
    return esat.broadcast_to(vector[:, None], (3, 3))


def counted(array, axis=0):
    """Its size along an axis, by an op that the algebra does not know."""
    return esat.cumsum(esat.ones_like(array), axis).max()


CASES = {
    "a stretched column, transposed": [stretched(x).T],
    "beside the column": [stretched(x), stretched(x).T, stretched(x) @ x, stretched(x).T @ x],
    "eigenvalues of one triangle": [esat.linalg.eigvalsh(stretched(x).T), esat.linalg.eigvalsh(stretched(x))],
    "a grid": [esat.matrix_transpose(part) for part in esat.meshgrid(x, x)],
    "a row and a column, sorted": [esat.sort(x[None] + 0 * x[:, None], 0), esat.sort(x[:, None] + 0 * x, 0)],
    "ones of two vectors": [counted(v), counted(w)],
    "ones of two vectors, beside sums": [counted(v), counted(w), v.sum() + w.sum()],
    "ones of two matrices": [counted(m), counted(n), counted(m, 1), counted(n, 1)],
    "zeros of two vectors": [esat.argsort(esat.zeros_like(v)).max(), esat.argsort(esat.zeros_like(w)).max()],
    "a matrix and its transpose": [counted(m), counted(m.T), (m.T @ m).sum()],
    "last of counts": [esat.cumsum(esat.zeros_like(v) + 1)[-1], esat.cumsum(esat.zeros_like(w) + 1)[-1]],
    "places of numbers": [esat.nonzero(esat.ones_like(m))[0].max(), esat.nonzero(esat.ones_like(n))[0].max()],
}


@pytest.mark.parametrize("name", CASES)
def test_what_has_other_shapes_stays_apart(name):
    outputs = CASES[name]
    needed = set(esat.graph.ancestors(outputs))
    inputs = [variable for variable in VALUES if variable in needed]
    arrays = [np.asarray(VALUES[variable]) for variable in inputs]
    wanted = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
    results = esat.compile(esat.Graph(inputs, outputs))(*arrays)
    for result, value in zip(results if len(outputs) > 1 else [results], wanted, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-12, atol=1e-12)
