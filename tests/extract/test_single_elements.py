"""What has one element has no axes in the e-graph; ops that library calls compute are priced with them."""

import numpy as np
import pytest

import esat

A, V, S, T = (
    esat.tensor("a", shape=(1, 1)),
    esat.vector("v"),
    esat.tensor("s", shape=(1,)),
    esat.tensor("t", shape=(1, 1, 1)),
)
OUTPUTS = [
    esat.linalg.solve(A, V), esat.linalg.solve(A, S), esat.linalg.solve(T, A),
    esat.linalg.solve_triangular(A, V, lower=True), esat.linalg.cho_solve((A, True), V),
    esat.linalg.inv(T), esat.linalg.pinv(A), esat.linalg.det(T), *esat.linalg.slogdet(A),
    esat.linalg.cholesky(A), *esat.linalg.qr(A), *esat.linalg.svd(T), *esat.linalg.eigh(A),
    *esat.linalg.lu(A), esat.linalg.expm(A), esat.linalg.matrix_power(A, 3), esat.linalg.multi_dot([A, A, S]),
    esat.sort(A, 0), esat.argsort(T, 1), esat.cumsum(S), esat.cumprod(A, 1), esat.take(S, [0]),
    esat.repeat(S, 3), esat.roll(A, 1), esat.diagonal(A), esat.diag(S), esat.searchsorted(S, V),
    esat.convolve(S, V),
    esat.concatenate([S, V]), esat.tile(A, (2, 1)), esat.median(T), esat.logsumexp(A), esat.softmax(S),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_ops_on_single_elements(mode):
    values = {A: np.array([[2.0]]), V: np.array([3.0]), S: np.array([0.5]), T: np.array([[[4.0]]])}
    expected = esat.evaluate(OUTPUTS, values)
    results = esat.compile(esat.Graph(list(values), OUTPUTS), mode)(*values.values())
    for output, result, value in zip(OUTPUTS, results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-12, err_msg=str(output))
        assert result.shape == value.shape
