"""Ops that read one triangle of a matrix: gradients are those of the function, whatever fills the other one.

Finite differences by single elements, of a matrix that is symmetric and of one with anything across the
diagonal; and through what makes a symmetric matrix, or fills one triangle.
"""

import numpy as np
import pytest

import esat

LA = esat.linalg
RNG = np.random.default_rng(3)
WEIGHTS = RNG.normal(size=(3, 3))


def of_factor(matrix, upper=False):
    return (LA.cholesky(matrix, upper=upper) * WEIGHTS).sum()


def of_values(matrix, triangle="L"):
    return (LA.eigvalsh(matrix, triangle) * np.arange(1.0, 4.0)).sum()


def of_vectors(matrix, triangle="L"):
    values, vectors = LA.eigh(matrix, triangle)
    return (vectors[..., 0] ** 2 * np.arange(1.0, 4.0)).sum() + (values**2).sum()


def logarithm_of_determinant(matrix):
    return 2 * esat.log(esat.diagonal(LA.cholesky(matrix))).sum()


COSTS = {
    "cholesky": of_factor,
    "cholesky, upper": lambda m: of_factor(m, True),
    "eigvalsh": of_values,
    "eigvalsh, upper": lambda m: of_values(m, "U"),
    "eigh": of_vectors,
    "eigh, upper": lambda m: of_vectors(m, "U"),
    "logarithm of a determinant": logarithm_of_determinant,
}
SYMMETRIC = np.array([[4.0, 0.5, -0.7], [0.5, 3.0, 0.2], [-0.7, 0.2, 5.0]])
MATRICES = {
    "symmetric": SYMMETRIC,
    "anything above": np.tril(SYMMETRIC) + np.triu(RNG.normal(size=(3, 3)), 1),
    "anything below": np.triu(SYMMETRIC) + np.tril(RNG.normal(size=(3, 3)), -1),
}
MADE = {
    "itself": lambda m: m,
    "lower triangle": esat.tril,
    "upper triangle": esat.triu,
    "product": lambda m: m @ m.T + 2 * np.eye(3),
    "mean": lambda m: (m + m.T) / 2,
    "covariances": lambda m: esat.exp(-((m[:, :1] - m[:, :1].T) ** 2)) + m[0, 0] * np.eye(3),
    "mirrored": lambda m: esat.tril(m) + esat.tril(m, -1).T,
}
MODES = ("fast_run", "greedy", "strict", "fast_compile")


def differences(f, point):
    """Central differences by each element."""
    step, found = 1e-6, np.zeros_like(point)
    for place in np.ndindex(point.shape):
        change = np.zeros_like(point)
        change[place] = step
        found[place] = (f(point + change) - f(point - change)) / (2 * step)
    return found


# But for diagonal matrices, where the triangle that is read is cut off.
PAIRS = [
    (cost, made)
    for cost in COSTS
    for made in MADE
    if made != ("lower triangle" if "upper" in cost else "upper triangle")
]


@pytest.mark.parametrize(("cost", "made"), PAIRS)
def test_gradients_are_those_of_finite_differences(cost, made):
    m = esat.tensor("m", shape=(3, 3))
    value = COSTS[cost](MADE[made](m))
    graph = esat.Graph([m], [value, esat.grad(value, m)])
    found = {mode: esat.compile(graph, mode=mode) for mode in (MODES if made == "product" else MODES[::2])}
    for name, point in MATRICES.items():
        wanted = differences(lambda p: found["strict"](p)[0], point)
        for mode, function in found.items():
            np.testing.assert_allclose(function(point)[1], wanted, 2e-5, 1e-7, err_msg=f"{name}, {mode}")


@pytest.mark.parametrize("cost", COSTS)
def test_tangents_and_second_derivatives(cost):
    tangent = RNG.normal(size=(3, 3))
    for name, point in MATRICES.items():
        f = esat.jit(COSTS[cost], mode="strict")
        gradient = esat.grad(f)(point)
        np.testing.assert_allclose(esat.jvp(f, (point,), (tangent,))[1], (gradient * tangent).sum(), 1e-9)
        gradients = esat.grad(f)
        step = 1e-6 * tangent
        wanted = (gradients(point + step) - gradients(point - step)) / 2e-6
        hessian = esat.hessian(f)(point)
        np.testing.assert_allclose((hessian * tangent).sum(axis=(2, 3)), wanted, 1e-4, 1e-6, err_msg=name)


def test_complex_matrices():
    rest = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
    point = rest @ rest.conj().T + 3 * np.eye(3)
    for cost in (lambda m: (esat.abs(LA.cholesky(m)) ** 2 * WEIGHTS).sum(), of_values):
        f = esat.jit(cost, mode="strict")
        gradient = esat.grad(f)(point)
        for place in [(0, 0), (1, 0), (0, 1), (2, 1)]:
            for unit in (1e-6, 1e-6j):
                change = np.zeros((3, 3), complex)
                change[place] = unit
                wanted = (f(point + change) - f(point - change)) / 2
                np.testing.assert_allclose((gradient * change).sum().real, wanted, 1e-4, 1e-13)


def test_batches():
    points = np.stack([SYMMETRIC, 2 * SYMMETRIC])
    single = [esat.grad(of_factor)(point) for point in points]
    np.testing.assert_allclose(esat.vmap(esat.grad(of_factor))(points), single, 1e-12)
    whole = esat.grad(lambda m: (LA.cholesky(m) * WEIGHTS).sum())(points)
    np.testing.assert_allclose(whole, single, 1e-12)
