"""Matrices whose structure is known: what is equal for all of them is proved, and nothing else."""

import numpy as np
import pytest
from egraph.algebra.proving import proved

import esat
from esat.egraph.algebra.finite_fields.fields import FIELDS
from esat.egraph.algebra.finite_fields.structured_matrices import orthogonal

plain = dict(zip("abqrd", (esat.matrix(name) for name in "abqrd"), strict=True))
A, B = (esat.assume(plain[name], "symmetric") for name in "ab")
Q, R = (esat.assume(plain[name], "orthogonal") for name in "qr")
D = esat.assume(esat.assume(plain["d"], "diagonal"), "square")
M, N = esat.matrix("M"), esat.matrix("N")
x, y = esat.vector("x"), esat.vector("y")
INPUTS = [*plain.values(), M, N, x, y]
I = esat.eye(x.shape[0])  # noqa: E741
K = M - M.T
trace = esat.trace

EQUAL = {
    "symmetric": (A.T @ x, A @ x),
    "both ways": (x @ (A @ y), y @ (A @ x)),
    "traces": (trace(A @ M), trace(A @ M.T)),
    "no trace": (trace(A @ K), 0 * x.sum()),
    "a commutator": ((A @ B - B @ A).T, B @ A - A @ B),
    "a congruent one": ((M.T @ A @ M).T, M.T @ A @ M),
    "turned back": (Q.T @ (Q @ x), x),
    "turned forth": (Q @ (Q.T @ M), M),
    "turned and turned back": (Q @ (Q.T @ M) @ R @ R.T, M),
    "angles": ((Q @ x) @ (Q @ y), x @ y),
    "angles, turned twice": (((Q @ R) @ x) @ ((Q @ R) @ y), x @ y),
    "norms": (((Q @ M) ** 2).sum(), (M**2).sum()),
    "traces of turned ones": (trace(Q @ M @ Q.T), trace(M)),
    "diagonal ones": (D @ esat.diag(x), esat.diag(x) @ D),
    "the identity": (I @ x, x),
    "elements of the identity": ((M * I).sum() + 0 * (I @ x).sum(), trace(M) + 0 * (M @ x).sum()),
    "a diagonal of a product": ((esat.diag(x) * M).sum() + 0 * (M @ x).sum(), esat.diagonal(M) @ x),
}
DIFFERENT = {
    "not symmetric": (M.T @ x, M @ x),
    "an order": (A @ B, B @ A),
    "a product of symmetric ones": ((A @ B).T, A @ B),
    "an order in a trace": (trace(A @ B @ M), trace(A @ M @ B)),
    "turned": (Q @ x, x),
    "turned twice": (Q @ Q @ x, x),
    "turned the other way": (Q.T @ x, Q @ x),
    "an order of turns": ((Q @ R) @ x, (R @ Q) @ x),
    "traces of turns": (trace(Q), trace(R)),
    "a diagonal one and another": (D @ M, M @ D),
    "squares of a diagonal": (trace(D @ D), trace(D) ** 2),
    "a product of two lengths": (trace(I) * trace(esat.eye(y.shape[0])), 6 + 0 * (I @ x).sum()),
    "products of elements": ((I * I).sum() * 2, trace(I) ** 2),
    "of three rows only": (K @ K @ K, 0.5 * trace(K @ K) * K),
    "elements of turns": ((Q * Q) @ x, x),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_proved(name) -> None:
    assert proved(INPUTS, *EQUAL[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_nearly_equal_is_not(name) -> None:
    assert not proved(INPUTS, *DIFFERENT[name])


def test_triangular_ones_have_no_powers_that_vanish() -> None:
    lower = [esat.assume(esat.matrix(name), "lower_triangular") for name in "uv"]
    commutator = lower[0] @ lower[1] - lower[1] @ lower[0]
    cube = commutator @ commutator @ commutator
    function = esat.compile(esat.Graph([one.owner.inputs[0] for one in lower], cube))
    values = [np.tril(np.random.default_rng(seed).normal(size=(6, 6))) for seed in (1, 2)]
    found = values[0] @ values[1] - values[1] @ values[0]
    np.testing.assert_allclose(function(*values), found @ found @ found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_orthogonal_matrices_of_a_field(size) -> None:
    prime = FIELDS[0].prime
    draw = np.random.default_rng(size)
    weights = draw.integers(1, prime, size).tolist()
    matrix = orthogonal(draw.integers(0, prime, (size, size)).tolist(), weights, prime).tolist()
    for row in range(size):
        for column in range(size):
            total = sum(matrix[k][row] * weights[k] * matrix[k][column] for k in range(size)) % prime
            assert total == (pow(weights[row], -1, prime) if row == column else 0)


def test_a_determinant_of_an_assumed_structure_alone():
    """Nothing else moves axes there: tables of known elements are there all the same."""
    a = esat.tensor("a", dtype="float64", shape=(4, 4))
    matrix = np.diag(np.arange(1.0, 5.0))
    for fact in ("diagonal", "lower_triangular", "upper_triangular", "symmetric"):
        program = esat.compile(esat.Graph([a], [esat.linalg.det(esat.assume(a, fact))]))
        np.testing.assert_allclose(program(matrix), 24.0)
