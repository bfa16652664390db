"""Structure of matrices that is known from the ops that compute them, against values."""

import numpy as np
import pytest

import esat
from esat.classic.rules.matrix_facts import facts_of_matrix
from esat.graph.algorithms.evaluate import evaluate

a, b, s = esat.matrix("a"), esat.matrix("b"), esat.scalar("s")
v = esat.vector("v")
definite = esat.diag(esat.exp(v))
whole = esat.cast(a, "int64")
lower = esat.linalg.cholesky(a @ a.T + definite)

CASES = {
    "a product with the transpose": (a @ a.T, "positive_semidefinite"),
    "of a transpose": (a.T @ a, "positive_semidefinite"),
    "integers": (whole @ whole.T, "symmetric"),
    "a sum with a definite matrix": (a @ a.T + definite, "positive_definite"),
    "a multiple": (esat.exp(s) * definite, "positive_definite"),
    "a quotient": (definite / 2.0, "positive_definite"),
    "a negative": (-(a @ a.T), "symmetric"),
    "a difference": (a @ a.T - definite, "symmetric"),
    "an inverse": (esat.linalg.inv(a @ a.T + definite), "positive_definite"),
    "a congruent one": (b @ definite @ b.T, "positive_semidefinite"),
    "a congruent one from the right": (b @ (definite @ b.T), "positive_semidefinite"),
    "a factor": (lower, "lower_triangular"),
    "a factor's transpose": (lower.T, "upper_triangular"),
    "factors": (lower @ lower, "lower_triangular"),
    "an inverse of a factor": (esat.linalg.inv(lower), "lower_triangular"),
    "a diagonal": (esat.diag(v) * 3.0, "diagonal"),
    "diagonals": (esat.diag(v) @ definite, "diagonal"),
    "columns": (esat.linalg.qr(a)[0], "orthonormal_columns"),
    "a right factor": (esat.linalg.qr(a)[1], "upper_triangular"),
    "all columns": (esat.linalg.qr(a, mode="complete")[0], "orthogonal"),
    "a permutation": (esat.linalg.lu(a)[0], "permutation"),
    "a left factor": (esat.linalg.lu(a)[1], "lower_triangular"),
    "eigenvectors": (esat.linalg.eigh(a @ a.T)[1], "orthogonal"),
    "singular vectors": (esat.linalg.svd(a)[2], "orthogonal"),
    "a triangle": (esat.tril(a), "lower_triangular"),
    "a sum with the transpose": (a + a.T, "symmetric"),
    "a difference with the transpose": (a - a.T, "skew_symmetric"),
    "a weighted product": (a.T @ (esat.exp(v)[:, None] * a), "positive_semidefinite"),
    "a filled one": (esat.full_like(definite, 2.0), "square"),
    "a chosen one": (esat.where(a > 0, definite, a), "square"),
    "an identity": (esat.eye(v.shape[0]), "permutation"),
}
NOTHING = {
    "a product of two": (a @ b, {"symmetric", "square"}),
    "a row that is stretched": (definite + v, {"diagonal", "symmetric"}),
    "a difference of definite ones": (definite - definite @ definite, {"positive_definite"}),
    "a multiple by any number": (s * definite, {"positive_semidefinite"}),
    "a quotient of a number": (s / definite, {"diagonal"}),
    "an elementwise function": (esat.exp(definite), {"diagonal"}),
}


def holds(fact, value):
    if fact in ("positive_definite", "positive_semidefinite"):
        least = np.linalg.eigvalsh(value).min()
        return holds("symmetric", value) and least > (0.0 if fact == "positive_definite" else -1e-9)
    return {
        "diagonal": lambda: not (value - np.diag(np.diag(value))).any(),
        "tridiagonal": lambda: not (np.tril(value, -2).any() or np.triu(value, 2).any()),
        "lower_triangular": lambda: not np.triu(value, 1).any(),
        "upper_triangular": lambda: not np.tril(value, -1).any(),
        "skew_symmetric": lambda: np.allclose(value, -value.T),
        "symmetric": lambda: np.allclose(value, value.T),
        "permutation": lambda: np.array_equal(value @ value.T, np.eye(len(value))),
        "orthogonal": lambda: np.allclose(value.T @ value, np.eye(len(value))) and holds("square", value),
        "orthonormal_columns": lambda: np.allclose(value.T @ value, np.eye(value.shape[1])),
        "square": lambda: value.shape[0] == value.shape[1],
    }[fact]()


def value_of(output):
    numbers = np.random.default_rng(0)
    given = {
        a: numbers.normal(size=(4, 4)),
        b: numbers.normal(size=(4, 4)),
        v: numbers.normal(size=4),
        s: 1.5,
    }
    inputs = [one for one in esat.graph.inputs_of([output]) if one in given]
    return evaluate([output], {one: np.asarray(given[one]) for one in inputs})[0]


@pytest.mark.parametrize("name", CASES)
def test_structure_is_known_and_holds(name):
    output, fact = CASES[name]
    found = facts_of_matrix(output)
    assert fact in found
    value = value_of(output)
    assert all(holds(one, value) for one in found)


@pytest.mark.parametrize("name", NOTHING)
def test_what_need_not_hold_is_not_known(name):
    output, facts = NOTHING[name]
    assert not facts_of_matrix(output) & facts
