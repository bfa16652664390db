"""Linear algebra: each op with its options, alone and in batches, with gradients."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.linalg
import scipy.sparse
from pytensor import sparse
from pytensor.assumptions.specify import assume
from pytensor.graph.replace import vectorize_graph
from pytensor.tensor.blas.batched import BatchedDot

from frontend.pytensor.peer import MODES, compared, same, slopes, variable

RNG = np.random.default_rng(11)
A = RNG.normal(size=(4, 4)) + 4 * np.eye(4)
B, V = RNG.normal(size=(4, 2)), RNG.normal(size=4)
P = A @ A.T + np.eye(4)
L = np.linalg.cholesky(P)
T = np.stack([A, A.T, P])

PROGRAMS = {
    "dot": (lambda a, b, v: [pt.dot(a, b), pt.dot(a, v), pt.dot(v, a), pt.dot(v, v), a @ a], A, B, V),
    "matmul": (
        lambda t, b, v: [t @ t, t @ b, pt.matmul(v, t), pt.matvec(t, v), pt.vecmat(v, t), pt.vecdot(v, v)],
        T,
        B,
        V,
    ),
    "batched_dot": (lambda t: [BatchedDot()(t, t)], T),
    "cholesky": (lambda a: [pt.linalg.cholesky(a), pt.linalg.cholesky(a, lower=False)], P),
    "solve": (lambda a, b, v: [pt.linalg.solve(a, b), pt.linalg.solve(a, v, b_ndim=1)], A, B, V),
    "solve_triangular": (
        lambda a, b, v: [
            pt.linalg.solve_triangular(a, b, lower=True),
            pt.linalg.solve_triangular(a, v, lower=False, b_ndim=1),
            pt.linalg.solve_triangular(a, b, lower=True, trans=1),
            pt.linalg.solve_triangular(a, b, unit_diagonal=True),
        ],
        A,
        B,
        V,
    ),
    "cho_solve": (
        lambda c, b: [pt.linalg.cho_solve((c, True), b), pt.linalg.cho_solve((c.T, False), b)],
        L,
        B,
    ),
    "det": (lambda a: [pt.linalg.det(a), *pt.linalg.slogdet(a), pt.log(pt.abs(pt.linalg.det(a)))], A),
    "inv": (lambda a: [pt.linalg.inv(a), pt.linalg.matrix_power(a, 3), pt.linalg.pinv(a)], A),
    "eigh": (lambda a: [pt.linalg.eigh(a + a.T)[0]], A),
    "expm": (lambda a: [pt.linalg.expm(a / 10)], A),
    "svd": (
        lambda a: [
            pt.linalg.svd(a, compute_uv=False),
            pt.linalg.svd(a)[1],
            pt.linalg.svd(a, full_matrices=False)[1],
        ],
        A,
    ),
    "products": (
        lambda a, b: [pt.linalg.kron(a, b), pt.linalg.block_diag(a, b), pt.outer(b[:, 0], b[:, 1])],
        A,
        B,
    ),
    "trace": (lambda a: [pt.linalg.trace(a), pt.linalg.norm(a), pt.linalg.norm(a, ord=1)], A),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("known", [False, True])
def test_values(name, known):
    build, *values = PROGRAMS[name]
    inputs = [variable(value, known) for value in values]
    compared(inputs, build(*inputs), values, tolerance=1e-9)


WITHOUT_SLOPES = ("expm", "svd", "trace")


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WITHOUT_SLOPES])
def test_gradients(name):
    build, *values = PROGRAMS[name]
    inputs = [variable(value) for value in values]
    outputs = [one for one in build(*inputs) if one.dtype == "float64"]
    compared(inputs, slopes(outputs, inputs), values, tolerance=1e-8)


def test_factors_and_pivots():
    x = variable(A)
    packed, pivots = pt.linalg.lu_factor(x)
    permutations = [pt.linalg.pivot_to_permutation(pivots, inverse=flag) for flag in (True, False)]
    compared([x], [packed, pivots, *permutations, pt.linalg.lu_solve((packed, pivots), x)], [A])
    compared([x], [packed], [np.ones((3, 3))])
    compared([x], [packed, pivots, *permutations], [np.zeros((0, 0))])


def test_batches():
    t, b = variable(T), variable(B)
    positive = t @ t.mT + pt.eye(4)
    outputs = [
        pt.linalg.cholesky(positive),
        pt.linalg.inv(t),
        pt.linalg.solve(t, t),
        pt.linalg.solve(t, b),
        pt.linalg.det(t),
        pt.linalg.slogdet(t)[1],
        pt.linalg.eigh(positive)[0],
        pt.linalg.solve_triangular(t, t, lower=True),
        pt.linalg.svd(t, compute_uv=False),
        pt.linalg.pinv(t),
    ]
    compared([t, b], [*outputs, *slopes(outputs[:5], [t, b])], [T, B], tolerance=1e-8)


def test_batches_of_what_is_no_function_of_matrices():
    """By the op for an element, whose graph becomes one of the batch."""
    x, rows, places = pt.dvector(), variable(T[0]), variable(np.array([0, 0, 2]))
    elements = [pt.sort(x)[::-1], pt.cumsum(x), x[places], pt.inc_subtensor(x[places], 1.0), pt.repeat(x, 2)]
    compared(
        [rows, places], [vectorize_graph(one, {x: rows}) for one in elements], [T[0], np.array([0, 0, 2])]
    )
    n, one = pt.lscalar(), variable(np.array([[3]]))
    compared([one], [vectorize_graph(pt.arange(n), {n: one})], [np.array([[3]])])


@pytest.mark.parametrize("kind", ["sym", "pos", "her"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_systems_of_one_triangle(kind, dtype):
    """The other one is not read. PyTensor's own rewrites of such systems are wrong: SciPy's count."""
    a = A + (1j * RNG.normal(size=A.shape) if dtype == "complex128" else 0)
    whole = a + (a.T if kind == "sym" else a.conj().T) + 30 * np.eye(4)
    upper = np.triu(whole)
    x, b = variable(upper), variable(B)
    function = pytensor.function([x, b], pt.linalg.solve(x, b, assume_a=kind), mode="ESAT")
    np.testing.assert_allclose(function(upper, B), scipy.linalg.solve(whole, B), rtol=1e-10)


def test_systems_of_bands():
    """Of a tridiagonal matrix nothing else is read."""
    x, b = variable(A), variable(B)
    compared([x, b], [pt.linalg.solve(x, b, assume_a="tridiagonal")], [A, B], tolerance=1e-9)
    banded = np.triu(np.tril(A, 1), -2)
    compared([x, b], [pt.linalg.solve(x, b, assume_a="banded")], [banded, B], tolerance=1e-9)


def test_inverses_of_tensors():
    tensor = RNG.normal(size=(2, 3, 6))
    x = variable(tensor, known=True)
    compared([x], [pt.linalg.tensorinv(x, ind=2)], [tensor], tolerance=1e-9)


def test_factors_up_to_signs():
    """Vectors of which the sign is free, by what they are for."""
    x = variable(A)
    q, r = pt.linalg.qr(x)
    values, vectors = pt.linalg.eigh(x + x.T)
    u, s, v = pt.linalg.svd(x)
    p, lower, upper = pt.linalg.lu(x)
    outputs = [
        q @ r,
        q @ q.T,
        vectors @ pt.diag(values) @ vectors.T,
        (u * s) @ v,
        p @ lower @ upper,
        pt.abs(r),
    ]
    compared([x], outputs, [A], tolerance=1e-10)
    triangles = [pt.linalg.qr(one, mode="r") for one in (x, x[:, :2], x[:2])]
    order, lower, upper = pt.linalg.lu(x, p_indices=True)
    outputs = [
        *map(pt.abs, triangles),
        pt.abs(pt.linalg.qr(x[:, :2], mode="economic")[0]),
        order,
        lower[order] @ upper,
    ]
    compared([x], outputs, [A], tolerance=1e-10)
    known = variable(A, known=True)
    compared([known], [pt.abs(pt.linalg.qr(known[:, :3], mode="r"))], [A], tolerance=1e-10)


@pytest.mark.parametrize("lower", [True, False])
def test_a_matrix_without_a_factor_has_one_of_nan(lower):
    x = variable(P)
    factor = pt.linalg.cholesky(x, lower=lower)
    outputs = [factor, pt.log(pt.diag(factor)).sum(), pt.switch(pt.all(pt.diag(factor) > 0), 1.0, -np.inf)]
    for value in (P, -P):
        compared([x], outputs, [value])
    t = pt.dtensor3()
    compared([t], [pt.linalg.cholesky(t)], [np.stack([P, -P])])
    compared([t], [pt.linalg.cholesky(t)], [np.zeros((2, 0, 0))])


def test_what_is_assumed_of_a_matrix_is_known():
    """The system of a matrix that is said to be diagonal is a quotient."""
    x, b = variable(np.diag(V)), variable(B)
    known = assume(x, diagonal=True, orthogonal=False)
    outputs = [pt.linalg.solve(known, b), pt.linalg.inv(known), known @ b]
    compared([x, b], outputs, [np.diag(V), B])
    function = pytensor.function([x, b], outputs[0], mode="ESAT")
    assert "solve" not in function.vm.jit_fn.executable.source()
    complex_ = variable(A + 0j)
    compared([complex_], [assume(complex_, positive_definite=True) * 2], [A + 0j])


def test_singular_matrices_raise_as_numpys():
    x = pt.dmatrix()
    for mode in MODES:
        function = pytensor.function([x], pt.linalg.inv(x), mode=mode)
        with pytest.raises(np.linalg.LinAlgError, match=r"(?s)[Ss]ingular"):
            function(np.zeros((3, 3)))


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_sparse_matrices(format):
    value = scipy.sparse.random(5, 4, 0.4, format=format, random_state=3)
    value = getattr(scipy.sparse, f"{format}_matrix")(value)
    x = sparse.matrix(format, dtype="float64")
    dense, wide = variable(B), variable(RNG.normal(size=(3, 5)))
    outputs = [
        sparse.structured_dot(x, dense),
        sparse.dot(x, dense),
        sparse.dot(wide, x),
        sparse.dense_from_sparse(x),
        sparse.sp_sum(x),
        sparse.sp_sum(x, axis=0),
        sparse.sp_sum(x, axis=1),
        sparse.dense_from_sparse(sparse.transpose(x)),
        sparse.dense_from_sparse(sparse.add(x, x)),
    ]
    values = [value, B, RNG.normal(size=(3, 5))]
    compared([x, dense, wide], outputs, values)
    for mode in MODES:
        function = pytensor.function([x], [sparse.transpose(x), sparse.multiply(x, x)], mode=mode)
        turned, squared = function(value)
        assert isinstance(turned, scipy.sparse.spmatrix)
        assert turned.format != format
        same([turned.toarray(), squared.toarray()], [value.toarray().T, value.toarray() ** 2])
