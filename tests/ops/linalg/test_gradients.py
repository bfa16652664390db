"""Gradients of matrix functions against central differences."""

import numpy as np
import pytest

import esat
from esat import linalg
from esat.errors import GradientError, LinearAlgebraError

pytestmark = pytest.mark.usefixtures("libraries_without_threads")

RNG = np.random.default_rng(41)


def matrices(*shape, complex=False):
    real = RNG.standard_normal(shape)
    return real + 1j * RNG.standard_normal(shape) if complex else real


def well(*shape, complex=False):
    """Matrices far from singular."""
    return matrices(*shape, complex=complex) + 3 * np.eye(shape[-2], shape[-1])


def hermitian(x):
    return x + (esat.conj(x) if x.dtype.startswith("complex") else x).mT


def positive(x):
    adjoint = (esat.conj(x) if x.dtype.startswith("complex") else x).mT
    return x @ adjoint + np.eye(x.type.shape[-1])


both = pytest.mark.parametrize("complex", [False, True])


@both
def test_systems(complex):
    square, sides = well(3, 3, complex=complex), matrices(3, 2, complex=complex)
    batch, vector = well(2, 3, 3, complex=complex), matrices(3, complex=complex)
    esat.verify_grad(linalg.solve, [square, sides])
    esat.verify_grad(linalg.solve, [batch, sides])
    esat.verify_grad(linalg.solve, [batch, vector])
    esat.verify_grad(linalg.solve, [batch[:1], well(4, 3, 1, complex=complex)])
    for lower in (False, True):
        for trans in (0, "T", "C"):
            for unit in (False, True):
                esat.verify_grad(
                    lambda a, b, o=(trans, lower, unit): linalg.solve_triangular(a, b, *o), [square, sides]
                )
        esat.verify_grad(
            lambda a, b, lower=lower: linalg.cho_solve((a, lower), b), [batch, sides], tolerance=1e-5
        )


@both
def test_inverses_and_determinants(complex):
    for square in (well(3, 3, complex=complex), well(2, 2, 2, complex=complex)):
        esat.verify_grad(linalg.inv, [square])
        esat.verify_grad(linalg.det, [square], tolerance=1e-5)
        esat.verify_grad(lambda a: linalg.slogdet(a)[1], [square])
        esat.verify_grad(lambda a: linalg.slogdet(a)[0] * a.sum(), [square])
        esat.verify_grad(lambda a: esat.grad(esat.real(linalg.det(a)).sum(), a), [square], tolerance=1e-4)
    for shape in ((3, 3), (4, 2), (2, 2, 4)):
        esat.verify_grad(linalg.pinv, [matrices(*shape, complex=complex)], tolerance=1e-4)


def test_a_singular_matrix_has_cofactors():
    for singular in (np.ones((3, 3)), np.zeros((2, 2)), np.outer([1.0, 2.0], [3.0, -1.0])):
        esat.verify_grad(linalg.det, [singular])
    rank_two = matrices(4, 2) @ matrices(2, 3) @ matrices(3, 4)
    esat.verify_grad(linalg.det, [rank_two])
    a = esat.matrix("a")
    with pytest.raises(LinearAlgebraError, match="singular"):
        esat.evaluate(esat.grad(linalg.slogdet(a)[1], a), {a: np.zeros((2, 2))})


@both
def test_factorizations(complex):
    for shape in ((3, 3), (2, 3, 3)):
        point = [matrices(*shape, complex=complex)]
        esat.verify_grad(lambda x: linalg.cholesky(positive(x)), point, tolerance=1e-5)
        esat.verify_grad(lambda x: linalg.cholesky(positive(x), upper=True), point, tolerance=1e-5)
        esat.verify_grad(lambda x: linalg.eigvalsh(hermitian(x)), point, tolerance=1e-5)
        esat.verify_grad(lambda x: linalg.eigvalsh(hermitian(x), "U"), point, tolerance=1e-5)
        esat.verify_grad(lambda x: linalg.eigh(hermitian(x))[0], point, tolerance=1e-5)
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2)):
        point = [well(*shape, complex=complex)]
        for which in (1, 2):
            esat.verify_grad(lambda x, i=which: linalg.lu(x)[i], point, tolerance=1e-4)
            esat.verify_grad(lambda x, i=which: linalg.qr(x)[i - 1], point, tolerance=1e-4)
        esat.verify_grad(lambda x: linalg.lu(x, permute_l=True)[0], point, tolerance=1e-4)
        esat.verify_grad(lambda x: linalg.qr(x, "r"), point, tolerance=1e-4)
        esat.verify_grad(linalg.svdvals, point, tolerance=1e-5)
        esat.verify_grad(lambda x: linalg.svd(x)[1], point, tolerance=1e-5)


@both
def test_vectors_up_to_their_phase(complex):
    """Functions of the vectors that do not depend on sign or phase, which are not determined."""
    scale = np.array([1.0, 2.0, -1.0])

    def spectral(x):
        values, vectors = linalg.eigh(hermitian(x))
        return (vectors * esat.exp(0.1 * values)) @ esat.conj(vectors).mT * scale

    def left_only(x):
        left, _, _ = linalg.svd(x, full_matrices=False)
        weights = np.arange(1.0, left.type.shape[-1] + 1)
        return (left * weights) @ esat.conj(left).mT

    def right_only(x):
        _, _, right = linalg.svd(x, full_matrices=False)
        weights = np.arange(1.0, right.type.shape[-2] + 1)[:, None]
        return esat.conj(right).mT @ (weights * right)

    def polar(x):
        left, values, right = linalg.svd(x, full_matrices=False)
        return (left * esat.sqrt(values)) @ right

    esat.verify_grad(spectral, [matrices(3, 3, complex=complex)], tolerance=1e-4)
    for shape in ((3, 3), (4, 2), (2, 4), (2, 2, 2)):
        point = [well(*shape, complex=complex)]
        for function in (left_only, right_only, polar):
            esat.verify_grad(function, point, tolerance=1e-4)


@both
def test_eigenvalues_of_general_matrices(complex):
    def lengths(x):
        """Absolute values do not depend on the vectors' phases."""
        return esat.abs(linalg.eig(x)[1])

    def rebuilt(x):
        values, vectors = linalg.eig(x)
        return esat.real(vectors @ (esat.exp(values)[..., None] * linalg.inv(vectors)))

    for shape in ((3, 3), (2, 4, 4)):
        point = [matrices(*shape, complex=complex)]
        for function in (
            lambda x: esat.real(linalg.eigvals(x)) ** 2,
            lambda x: esat.imag(linalg.eigvals(x)) ** 2,
            lambda x: esat.abs(linalg.eig(x)[0]),
            lengths,
            rebuilt,
        ):
            esat.verify_grad(function, point, tolerance=1e-4)


@both
def test_functions(complex):
    for point in (0.5 * matrices(3, 3, complex=complex), 0.5 * matrices(2, 2, 2, complex=complex)):
        esat.verify_grad(linalg.expm, [point], tolerance=1e-5)
        for power in (0, 1, 3, -2):
            shifted = point + 2 * np.eye(point.shape[-1])
            if power:
                esat.verify_grad(lambda a, n=power: linalg.matrix_power(a, n), [shifted], tolerance=1e-4)
    blocks = [matrices(2, 3, complex=complex), matrices(1, 1, complex=complex), matrices(2, 1)]
    esat.verify_grad(linalg.block_diag, blocks)
    esat.verify_grad(linalg.kron, [matrices(2, 3, complex=complex), matrices(3, 2)])


def test_norms():
    for shape in ((3, 3), (2, 4)):
        point = [well(*shape)]
        for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            esat.verify_grad(lambda x, order=order: linalg.norm(x, order), point, tolerance=1e-5)
    esat.verify_grad(linalg.cond, [well(3, 3)], tolerance=1e-4)
    esat.verify_grad(lambda a, b: linalg.lstsq(a, b)[0], [well(4, 2), matrices(4)], tolerance=1e-4)


def test_second_derivatives():
    def second(function):
        return lambda x: esat.grad((function(x) ** 2).sum(), x)

    for function in (linalg.inv, linalg.expm, lambda x: linalg.cholesky(positive(x)), linalg.svdvals):
        esat.verify_grad(second(function), [0.3 * well(2, 2) + [[0.0, 0.1], [0.2, 0.5]]], tolerance=1e-3)


def test_gradients_that_do_not_exist():
    x = esat.matrix("x", shape=(4, 2))
    left, _, _ = linalg.svd(x)
    with pytest.raises(GradientError, match="full_matrices=False"):
        esat.grad(left.sum(), x)
    with pytest.raises(GradientError, match="reduced"):
        esat.grad(linalg.qr(x, "complete")[0].sum(), x)
    y = esat.matrix("y")
    for output in (linalg.qr(y)[0], linalg.lu(y)[1]):
        with pytest.raises(GradientError, match="sizes are known"):
            esat.grad(output.sum(), y)
