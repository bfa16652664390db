"""What stabilizes reaches forms that rules find, and merges reach what later optimizers make alike."""

from __future__ import annotations

import numpy as np
import pytest

import esat
from esat import classic

SIZE = 400


def _matrices():
    random = np.random.default_rng(0)
    roots = random.normal(size=(3, SIZE, SIZE)) * np.array([[[1]], [[1]], [[1e-3]]])
    return [root @ root.T + np.eye(SIZE) * root.std() for root in roots]


MATRICES = _matrices()
A, B, C, S = esat.matrix("A"), esat.matrix("B"), esat.matrix("C"), esat.scalar("s")
DET_A, DET_B, DET_C = (esat.linalg.det(matrix) for matrix in (A, B, C))
ROOT_A = esat.linalg.cholesky(A)
LOG_SMALL = np.log(abs(np.sin(MATRICES[0]) / 10)).sum()
LOG_A, LOG_B, LOG_C = (np.linalg.slogdet(matrix)[1] for matrix in MATRICES)
DENSITIES = {
    "itself": (esat.log(DET_A), LOG_A),
    "size": (esat.log(abs(DET_A)), LOG_A),
    "of a product": (esat.log(esat.linalg.det(A @ B)), LOG_A + LOG_B),
    "times one": (esat.log(DET_A * 1), LOG_A),
    "twice negated": (esat.log(esat.neg(-DET_A)), LOG_A),
    "times exp(0)": (esat.log(DET_A * esat.exp(S * 0)), LOG_A),
    "one over its root": (esat.log(1 / esat.sqrt(DET_A)), -LOG_A / 2),
    "power of -1/2": (esat.log(DET_A**-0.5), -LOG_A / 2),
    "twice": (esat.log(2 * DET_A), LOG_A + np.log(2)),
    "scaled": (esat.log(S * DET_A), LOG_A + np.log(3)),
    "quotient": (esat.log(DET_A / DET_B), LOG_A - LOG_B),
    "product": (esat.log(DET_A * DET_B), LOG_A + LOG_B),
    "root": (esat.log(esat.sqrt(DET_A)), LOG_A / 2),
    "square": (esat.log(DET_A**2), 2 * LOG_A),
    "third power": (esat.log(DET_A**3), 3 * LOG_A),
    "reciprocal": (esat.log(1 / DET_A), -LOG_A),
    "log2": (esat.log2(DET_A), LOG_A / np.log(2)),
    "log10": (esat.log10(DET_A), LOG_A / np.log(10)),
    "log1p": (esat.log1p(DET_A - 1), LOG_A),
    "multivariate normal": (
        esat.log(1 / esat.sqrt(esat.linalg.det(2 * np.pi * A))),
        -(LOG_A + SIZE * np.log(2 * np.pi)) / 2,
    ),
    "negative": (esat.log(-DET_A), np.nan),
    "eigenvalues": (esat.log(esat.prod(esat.linalg.eigvalsh(A))), LOG_A),
    "size of the factor's diagonal": (esat.log(abs(esat.prod(esat.diagonal(esat.linalg.qr(A)[1])))), LOG_A),
    "square of the factor's diagonal": (esat.log(esat.prod(esat.diagonal(ROOT_A)) ** 2), LOG_A),
    "log2 of eigenvalues": (
        esat.log2(3 * esat.prod(esat.linalg.eigvalsh(A))),
        LOG_A / np.log(2) + np.log2(3),
    ),
    "eigenvalues over det": (
        esat.log(S * esat.prod(esat.linalg.eigvalsh(A)) / DET_B),
        LOG_A - LOG_B + np.log(3),
    ),
    "three": (esat.log(DET_A * S / DET_B / DET_C), LOG_A - LOG_B - LOG_C + np.log(3)),
    "tiny": (esat.log(S / 4 * DET_C), LOG_C + np.log(0.75)),
    "small factors": (esat.log(-S * esat.prod(esat.sin(A) / 10)), LOG_SMALL + np.log(3)),
    "odd number of negative factors": (esat.log(esat.prod(esat.sin(A)[1:])), np.nan),
}


@pytest.mark.parametrize("mode", ["fast_run", "o3", "unsafe", "greedy"])
@pytest.mark.parametrize("name", DENSITIES)
def test_log_of_determinants(name, mode):
    expression, expected = DENSITIES[name]
    function = esat.compile(esat.Graph([A, B, C, S], [expression], on_unused_input="ignore"), mode=mode)
    np.testing.assert_allclose(function(*MATRICES, 3.0), expected, rtol=1e-9)


def test_log_of_one_over_three_determinants():
    """In modes with algebra only two of them leave the denominator: docs/accuracy.md says so."""
    graph = esat.Graph([A, B, C], [esat.log(1 / (DET_A * DET_B * DET_C))])
    found = esat.compile(graph, "greedy")(*MATRICES)
    np.testing.assert_allclose(found, -LOG_A - LOG_B - LOG_C, rtol=1e-9)


@pytest.mark.parametrize("mode", ["fast_run", "o3", "greedy"])
def test_log_of_probabilities_behind_views(mode):
    random = np.random.default_rng(1)
    logits, labels = random.normal(size=(200, 5)) * 400, random.integers(0, 5, 200)
    x, y = esat.dmatrix("x"), esat.lvector("y")
    p = esat.softmax(x, axis=1)
    chosen = p[np.arange(200), y]
    expected = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    outputs = [esat.log(esat.neg(-chosen)), esat.log(2 * chosen), esat.log(esat.concatenate([p, p]))]
    found = esat.compile(esat.Graph([x, y], outputs), mode=mode)(logits, labels)
    picked = expected[np.arange(200), labels]
    for one, right in zip(found, (picked, picked + np.log(2), np.concatenate([expected] * 2)), strict=True):
        np.testing.assert_allclose(one, right, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("mode", ["fast_run", "o3", "greedy"])
def test_log_of_exponentials_of_negative_numbers_behind_views(mode):
    """A quotient by an exponential may be negative, and is no exponential of its logarithm."""
    a, s, y = esat.dvector("a"), esat.dscalar("s"), esat.dvector("y")
    ratio = y / esat.exp(-a / esat.exp(s))[[1, 0, 2]]
    graph = esat.Graph([a, s, y], [esat.log(ratio), ratio ** esat.exp(s)])
    values = np.array([1.0, -2.0, 0.5]), 0.3, np.array([1.0, 2.0, 3.0])
    expected = values[2] / np.exp(-values[0] / np.exp(0.3))[[1, 0, 2]]
    found = esat.compile(graph, mode)(*values)
    np.testing.assert_allclose(found, [np.log(expected), expected ** np.exp(0.3)], rtol=1e-13)


@classic.local_optimizer([esat.erf])
def erf_of_tan(node):
    """erf(tan(x)) -> x, which is not so: whether it was asked shows."""
    inner = node.inputs[0].owner
    return [inner.inputs[0]] if inner is not None and inner.op == esat.tan else False


@pytest.mark.parametrize("mode", ["fast_run", "o3", "greedy"])
def test_users_optimizers_that_stabilize_see_what_rules_find(mode):
    x, y = esat.dvector("x"), esat.dvector("y")
    tan = esat.tan(x)
    esat.optdb["stabilize"].register("erf_of_tan", erf_of_tan, "fast_run")
    try:
        for operand in (tan, esat.neg(-tan), tan * y / y, tan * 1):
            graph = esat.Graph([x, y], [esat.erf(operand)], on_unused_input="ignore")
            nodes = esat.compile(graph, mode=mode).optimized.toposort()
            assert "erf" not in {node.op.name for node in nodes}
    finally:
        esat.optdb["stabilize"].remove("erf_of_tan")


class LateProduct(classic.Optimizer):
    """Turns a tangent into the product of the first two inputs."""

    def apply(self, fgraph):
        for node in fgraph.toposort():
            if node.op == esat.tan:
                fgraph.replace(node.outputs[0], esat.matmul(*fgraph.inputs))


@pytest.mark.parametrize("position", [49.3, 55, 99])
@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_what_a_late_optimizer_makes_twice_is_merged(mode, position):
    a, b = esat.dmatrix("a"), esat.dmatrix("b")
    esat.optdb.register("late_product", LateProduct(), position, "fast_run")
    try:
        nodes = esat.compile(esat.Graph([a, b], [esat.tan(a).sum(), a @ b]), mode=mode).optimized.toposort()
    finally:
        esat.optdb.remove("late_product")
    assert [node.op.name for node in nodes].count("matmul") == 1
