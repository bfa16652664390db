"""SciPy's functions in traced functions: SciPy's parameters, defaults and results."""

import numpy as np
import pytest
import scipy.linalg
from scipy.linalg import cho_factor, cho_solve, cholesky, logm, pinv, qr, sqrtm, toeplitz

import esat
from esat.errors import CallError, DtypeError, LinearAlgebraError

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.5], [0.5, -0.5, 2.0]])
B = np.array([[1.0, 2.0, 0.5], [0.0, 1.5, -1.0], [0.25, 0.0, 2.0], [1.0, 1.0, 1.0]])
SKEW = np.triu(np.ones((3, 3)), 1) - np.tril(np.ones((3, 3)), -1)
V = np.array([1.0, -2.0, 0.5])

LINALG = {
    "cholesky": (cholesky, A),
    "cholesky, lower": (lambda a: cholesky(a, lower=True), A),
    "cholesky, by place": (lambda a: cholesky(a, True), A),
    "by attribute": (lambda a: scipy.linalg.cholesky(a, check_finite=False), A),
    "of complex": (lambda a: cholesky(a + 0.25j * SKEW), A),
    "cho_solve": (lambda a: cho_solve(cho_factor(a), V), A),
    "cho_solve, lower": (lambda a: cho_solve(cho_factor(a, lower=True), V), A),
    "qr": (qr, B),
    "qr, economic": (lambda b: qr(b, mode="economic"), B),
    "qr, r": (lambda b: qr(b, mode="r"), B),
    "pinv": (pinv, B),
    "pinv, rtol": (lambda b: pinv(b, rtol=0.5), B),
    "eigh": (lambda a: scipy.linalg.eigh(a, eigvals_only=True), A),
    "eigh of two": (lambda a: scipy.linalg.eigh(a, A @ A, eigvals_only=True), A),
    "eigvalsh": (scipy.linalg.eigvalsh, A),
    "sqrtm": (sqrtm, A),
    "sqrtm, complex": (lambda a: sqrtm(a.astype(complex)), -A),
    "logm": (logm, A),
    "solve_triangular": (lambda a: scipy.linalg.solve_triangular(a, V, lower=True, trans=1), A),
    "norm": (lambda a: scipy.linalg.norm(a, 1), A),
    "toeplitz": (toeplitz, V),
    "toeplitz of two": (lambda v: toeplitz(v, [9.0, 2.0, 3.0, 4.0]), V),
    "hankel": (lambda v: scipy.linalg.hankel(v, [0.5, 7.0]), V),
    "circulant": (scipy.linalg.circulant, V),
    "expm": (scipy.linalg.expm, A),
}  # fmt: skip


def assert_same(result, expected):
    if isinstance(expected, tuple):
        assert len(result) == len(expected)
        for pair in zip(result, expected, strict=True):
            assert_same(*pair)
        return
    np.testing.assert_allclose(np.abs(result), np.abs(expected), rtol=1e-9, atol=1e-12)
    assert np.asarray(result).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("mode", ["fast_run", "strict"])
@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name, mode):
    function, value = LINALG[name]
    assert_same(esat.jit(function, mode=mode)(value), function(value))


def test_eigenvectors_of_two_matrices():
    values, vectors = esat.jit(scipy.linalg.eigh)(A, A @ A)
    np.testing.assert_allclose(A @ vectors, A @ A @ vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ A @ A @ vectors, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("function", [sqrtm, logm, lambda a: toeplitz(a[0]) @ a, lambda a: cholesky(a + a.T)])
def test_gradients(function):
    weights = np.arange(9.0).reshape(3, 3)

    def cost(a):
        return (function(a) * weights).sum()

    gradient = esat.grad(cost)(A)
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        slope = (cost(A + step) - cost(A - step)) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_roots_that_are_complex_are_refused():
    with pytest.raises(LinearAlgebraError, match="complex"):
        esat.jit(sqrtm)(-A)


def test_parameters_that_are_not_known_are_named():
    with pytest.raises(CallError, match=r"check=.*'check'; it takes \(a"):
        esat.jit(lambda b: qr(b, check=True))(B)
    with pytest.raises(CallError, match="unexpected keyword"):
        esat.jit(lambda a: cholesky(a, upper=True))(A)
    with pytest.raises(DtypeError, match="ordqz"):
        esat.jit(lambda a: scipy.linalg.ordqz(a, a))(A)
