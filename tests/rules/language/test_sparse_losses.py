"""Losses of factorizations of sparse matrices: right, and without the dense product of the factors."""

import numpy as np
import pytest
import scipy.sparse

import esat
from esat import sparse
from esat.graph.sparse_type import is_sparse_matrix

ROWS, COLUMNS, RANK = 31, 23, 3
RNG = np.random.default_rng(5)


def matrix(format="csr", density=0.2):
    return scipy.sparse.random_array(
        (ROWS, COLUMNS),
        density=density,
        format=format,
        rng=RNG,
        data_sampler=lambda size: RNG.uniform(0.5, 2, size),
    )


X, W = sparse.csr_matrix("X"), sparse.csr_matrix("W")
U, V, LAMBDA = esat.matrix("U"), esat.matrix("V"), esat.scalar("lambda")
GIVEN = {
    X: matrix(),
    W: matrix(),
    U: RNG.uniform(0.5, 1.5, (ROWS, RANK)),
    V: RNG.uniform(0.5, 1.5, (COLUMNS, RANK)),
    LAMBDA: np.array(0.3),
}
# What the program is chosen for, not what it is tested on.
EXPECTED = {X: (20_000, 2_000, 400_000), W: (20_000, 2_000, 400_000), U: (20_000, 10), V: (2_000, 10)}


def dense(value):
    return sparse.dense_from_sparse(value)


SQUARES = esat.sum((dense(X) - U @ V.T) ** 2)
WEIGHTED = esat.sum(dense(W) * (dense(X) - U @ V.T) ** 2)
POISSON = esat.sum(U @ V.T) - esat.sum(dense(X) * esat.log(U @ V.T))
LOSSES = {
    "loss": SQUARES,
    "loss, the other way round": esat.sum(sparse.sub(U @ V.T, X) ** 2),
    "gradient, written out": (U @ V.T - dense(X)) @ V + LAMBDA * U,
    "gradient by U": esat.grad(SQUARES, U),
    "gradient by V": esat.grad(SQUARES, V),
    "weighted": WEIGHTED,
    "weighted, gradient by U": esat.grad(WEIGHTED, U),
    "poisson": POISSON,
    "poisson, gradient by U": esat.grad(POISSON, U),
    "poisson, gradient by V": esat.grad(POISSON, V),
    "weights of the stored values": sparse.sum(sparse.mul(X, esat.exp(-(U @ V.T)))),
    "sum of a product": esat.sum(dense(X) * (U @ V.T)),
    "columns": esat.sum(dense(X) * 2.0, axis=0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_dense_product_is_never_formed(name):
    output = LOSSES[name]
    inputs = [variable for variable in GIVEN if variable in set(esat.graph.inputs_of([output]))]
    values = [GIVEN[variable] for variable in inputs]
    expected = {variable: EXPECTED[variable] for variable in inputs if variable in EXPECTED}
    function = esat.compile(esat.Graph(inputs, [output]), shapes=expected)
    (wanted,) = esat.evaluate([output], dict(zip(inputs, values, strict=True)))
    np.testing.assert_allclose(function(*values), wanted, rtol=1e-9)
    optimized = function.optimized
    made = [variable for node in optimized.toposort() for variable in node.outputs]
    for variable, value in zip(
        made, esat.evaluate(made, dict(zip(optimized.inputs, values, strict=True))), strict=True
    ):
        assert is_sparse_matrix(value) or sorted(value.shape) != [COLUMNS, ROWS], variable.owner


def test_expected_shapes_of_sparse_matrices():
    function = esat.compile(esat.Graph([X], [sparse.sum(X, 0)]), shapes={X: (5, 4)})
    assert function(matrix()).shape == (COLUMNS,)
    with pytest.raises(esat.errors.ShapeError, match="has 4 sizes for 2 axes"):
        esat.compile(esat.Graph([X], [sparse.sum(X, 0)]), shapes={X: (5, 4, 3, 2)})


def test_a_squared_distance_reads_the_sparse_matrix_once():
    function = esat.compile(esat.Graph([X, U, V], [SQUARES]), shapes={x: EXPECTED[x] for x in (X, U, V)})
    readers = [node.op.name for node in function.graph.toposort() if any(v.name == "X" for v in node.inputs)]
    assert readers == ["squares_and_quadratic"]
    products = [node for node in function.graph.toposort() if node.op.name == "matmul"]
    assert [node.inputs[1].name for node in products] == ["V"]  # its columns' products, of the rank's size


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "fast_compile"])
def test_usmm(mode):
    z = esat.matrix("z")
    inputs = [LAMBDA, X, V, z]
    values = [np.array(0.5), GIVEN[X], GIVEN[V], RNG.uniform(size=(ROWS, RANK))]
    for output in (
        z + LAMBDA * sparse.dot(X, V),
        z - LAMBDA * sparse.dot(X, V),
        sparse.usmm(LAMBDA, X, V, z),
    ):
        function = esat.compile(esat.Graph(inputs, [output]), mode)
        (wanted,) = esat.evaluate([output], dict(zip(inputs, values, strict=True)))
        np.testing.assert_allclose(function(*values), wanted, rtol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_usmm_without_a_scale(sign):
    z = esat.matrix("z")
    product = sparse.dot(X, V)
    function = esat.compile(esat.Graph([X, V, z], [z + product if sign > 0 else z - product]))
    assert [node.op.name for node in function.graph.toposort()] == ["usmm"]
    added = RNG.uniform(size=(ROWS, RANK))
    wanted = added + sign * (GIVEN[X] @ GIVEN[V])
    np.testing.assert_allclose(function(GIVEN[X], GIVEN[V], added), wanted, rtol=1e-12)
