"""Rarer linear algebra: bands, Schur forms, ordered columns, least squares, problems of two matrices."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
from pytensor.tensor.linalg.solvers.linear_control import TRSYL
from pytensor.tensor.linalg.solvers.lstsq import lstsq, tensorsolve
from pytensor.tensor.linalg.solvers.tridiagonal import tridiagonal_lu_factor, tridiagonal_lu_solve
from pytensor.tensor.math import Sum
from pytensor.tensor.signal import convolve1d

from frontend.pytensor.peer import MODES, compared, same, slopes, variable

RNG = np.random.default_rng(29)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B, V = RNG.normal(size=(4, 2)), RNG.normal(size=4)
P = A @ A.T + np.eye(4)
T = np.stack([A, A.T, P])
DTYPES = ("float32", "float64", "complex64", "complex128")


def of(dtype, value):
    return (value + 1j * value[::-1] if dtype[0] == "c" else value).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_systems(dtype):
    values = [of(dtype, A), of(dtype, B), of(dtype, V)]
    a, b, v = map(variable, values)
    outputs = [
        pt.linalg.solve(a, b, assume_a="tridiagonal"),
        pt.linalg.solve(a, v, assume_a="tridiagonal", b_ndim=1),
        pt.linalg.solve(a, b, assume_a="tridiagonal", transposed=True),
    ]
    compared([a, b, v], outputs, values, tolerance=1e-9)
    batch = variable(of(dtype, T))
    compared([batch, b], [pt.linalg.solve(batch, b, assume_a="tridiagonal")], [of(dtype, T), values[1]])
    for size in (0, 1, 2):
        small = [of(dtype, A[:size, :size]), of(dtype, B[:size])]
        compared([a, b], [pt.linalg.solve(a, b, assume_a="tridiagonal")], small, tolerance=1e-9)


def test_gradients_of_tridiagonal_systems():
    a, b = variable(A), variable(B)
    compared([a, b], slopes([pt.linalg.solve(a, b, assume_a="tridiagonal")], [a, b]), [A, B], tolerance=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tridiagonal_factors(dtype):
    values = [of(dtype, T), of(dtype, B), of(dtype, V)]
    t, b, v = map(variable, values)
    for matrix in (t, t[0]):
        factors = tridiagonal_lu_factor(matrix)
        solutions = [
            tridiagonal_lu_solve(factors, side, b_ndim=side.ndim, transposed=flag)
            for side in (b, v)
            for flag in (False, True)
        ]
        compared([t, b, v], [*factors, *solutions], values, tolerance=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("output", ["real", "complex"])
def test_schur_forms(dtype, output):
    values = [of(dtype, T), of(dtype, P)]
    t, p = map(variable, values)
    outputs = [
        *pt.linalg.schur(t, output=output),
        *pt.linalg.schur(t[0], output=output, sort="ouc"),
        *pt.linalg.qz(t, p, output=output),
        *pt.linalg.qz(t[1], p, output=output, sort="iuc"),
        *pt.linalg.ordqz(t, p, output=output, sort="lhp"),
    ]
    compared([t, p], outputs, values, tolerance=1e-8)
    nothing = [np.full((1, 4, 4), np.nan, dtype), values[1]]
    compared([t, p], [*pt.linalg.schur(t, output=output)], nothing, modes=("ESAT",))


def test_sylvesters_equation():
    a, t, b = variable(A), variable(T), variable(P[:3, :3])
    c = variable(RNG.normal(size=(4, 3)))
    values = [A, T, P[:3, :3], RNG.normal(size=(4, 3))]
    outputs = [
        pt.linalg.solve_sylvester(a, b, c),
        pt.linalg.solve_sylvester(t, b, c),
        pt.linalg.solve_continuous_lyapunov(a, a @ a.T),
        pt.linalg.solve_discrete_lyapunov(a / 20, a @ a.T),
        pt.linalg.solve_discrete_are(a / 9, a[:, :2], a @ a.T, pt.eye(2)),
    ]
    inputs = [a, t, b, c]
    compared(inputs, [*outputs, *slopes(outputs[:4], inputs)], values, tolerance=1e-7)
    forms = [scipy.linalg.schur(A)[0], scipy.linalg.schur(P[:3, :3])[0], values[-1]]
    compared([a, b, c], [TRSYL()(a, b, c)], forms, tolerance=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["full", "economic", "r"])
def test_columns_in_order(dtype, mode):
    for value in (A, A[:, :2], A[:2], T):
        x = variable(of(dtype, value))
        compared([x], pt.linalg.qr(x, mode=mode, pivoting=True), [of(dtype, value)], tolerance=1e-8)


def test_least_squares():
    a, b, rcond = pt.dmatrix(), pt.dmatrix(), pt.dscalar()
    tall, low = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 1)) * np.ones((1, 3))
    sides = RNG.normal(size=(6, 2))
    for matrix in (tall, low, tall.T):
        for fraction in (-1.0, 0.0, 1e-3, 0.9, 1.0, 7.0):
            values = [matrix, sides[: len(matrix)], np.asarray(fraction)]
            compared([a, b, rcond], lstsq(a, b, rcond), values, tolerance=1e-8)
    compared([a, b], lstsq(a, b, -1.0), [tall, sides], tolerance=1e-8)


def test_equations_of_arrays():
    value = RNG.normal(size=(2, 3, 6))
    for known in (True, False):
        x = variable(value, known=known)
        compared([x], [pt.linalg.tensorinv(x, ind=2)], [value], tolerance=1e-9)
    matrix, sides = RNG.normal(size=(6, 2, 3)), RNG.normal(size=6)
    x, y = variable(matrix), variable(sides)
    compared([x, y], [tensorsolve(x, y)], [matrix, sides], tolerance=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_problems_of_two_matrices(dtype, lower):
    """Of either matrix one triangle is read. Vectors are compared without their signs."""
    whole = of(dtype, A)
    values = [whole + whole.conj().T, whole @ whole.conj().T + np.eye(4, dtype=dtype)]
    other = np.triu(np.ones((4, 4)), 1) if lower else np.tril(np.ones((4, 4)), -1)
    values = [(value + 9 * other).astype(dtype) for value in values]
    a, b = map(variable, values)
    eigenvalues, vectors = pt.linalg.eigh(a, b, lower=lower)
    outputs = [eigenvalues, pt.abs(vectors), pt.linalg.eigvalsh(a, b, lower=lower)]
    compared([a, b], outputs, values, tolerance=1e-4 if dtype in ("float32", "complex64") else 1e-8)


@pytest.mark.parametrize("kind", ["full", "valid", "same"])
def test_gradients_of_convolutions_of_sizes_that_are_not_known(kind):
    """Which part of the whole it is, sizes decide at run time."""
    x, y, rows = pt.dvector(), pt.dvector(), pt.dmatrix()
    outputs = [convolve1d(x, y, mode=kind), convolve1d(rows, y, mode=kind)]
    for size in (3, 9):
        values = [RNG.normal(size=6), RNG.normal(size=size), RNG.normal(size=(2, 6))]
        inputs = [x, y, rows]
        compared(inputs, [*outputs, *slopes(outputs, inputs)], values)


def test_sums_of_complex_numbers_as_real_ones():
    """PyTensor drops imaginary parts of what is summed, where the result is said to be real."""
    x = variable(A + 0j)
    total = Sum(axis=0, dtype="float64", acc_dtype="complex128")(x)
    compared([x], [total], [A + 0j])


def test_blocks_in_batches():
    values = [T, RNG.normal(size=(3, 2, 1)), B]
    t, u, b = map(variable, values)
    compared([t, u, b], [pt.linalg.block_diag(t, u), pt.linalg.block_diag(t, b, u)], values)


@pytest.mark.parametrize("mode", MODES)
def test_a_system_without_a_factor_has_a_solution_of_nan(mode):
    """As PyTensor's own: a sampler goes on where a matrix is not positive definite."""
    a, b = variable(P), variable(B)
    function = pytensor.function([a, b], pt.linalg.solve(a, b, assume_a="pos"), mode=mode)
    same([function(P, B)], [scipy.linalg.solve(P, B)])
    assert np.isnan(function(-P, B)).all()
