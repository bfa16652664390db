"""Matrix functions against NumPy and SciPy: values, dtypes, shapes, batches, empty matrices."""

import numpy as np
import pytest
import scipy.linalg
from oracle import agree

import esat
from esat import linalg
from esat.errors import LinearAlgebraError, ShapeError
from esat.ops.linalg.inverse import TriangularInverse
from esat.ops.linalg.solve import SOLVE, SemidefiniteSolve
from esat.ops.linalg.whitening import WHITEN

pytestmark = pytest.mark.usefixtures("libraries_without_threads")

RNG = np.random.default_rng(17)
DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "bool")


def array(dtype, *shape):
    real = RNG.standard_normal(shape)
    if len(shape) > 1:
        real = real + 2 * np.eye(*shape[-2:])
    if dtype.startswith("complex"):
        real = real + 1j * RNG.standard_normal(shape)
    if dtype == "bool":
        return np.tril(np.ones(shape, dtype=bool)) if len(shape) > 1 else np.ones(shape, dtype=bool)
    return (real * (4 if dtype == "int32" else 1)).astype(dtype)


def positive(dtype, *shape):
    if dtype == "bool":
        return np.broadcast_to(np.eye(shape[-1], dtype=bool), shape)
    root = array(dtype, *shape)
    return root @ np.swapaxes(root, -1, -2).conj() + np.eye(shape[-1], dtype=root.dtype)


dtypes = pytest.mark.parametrize("dtype", DTYPES)


@dtypes
def test_square(dtype):
    for shape in ((3, 3), (2, 3, 3), (1, 1), (0, 0), (2, 0, 0)):
        matrix = array(dtype, *shape)
        for name in ("inv", "det", "slogdet"):
            agree(getattr(linalg, name), getattr(np.linalg, name), matrix)
        for power in (0, 1, 2, 5, -1, -3):
            agree(
                lambda a, n=power: linalg.matrix_power(a, n),
                lambda a, n=power: np.linalg.matrix_power(a, n),
                matrix,
            )
        definite = positive(dtype, *shape)
        for upper in (False, True):
            agree(
                lambda a, u=upper: linalg.cholesky(a, upper=u),
                lambda a, u=upper: np.linalg.cholesky(a, upper=u),
                definite,
            )
        for triangle in ("L", "U"):
            agree(
                lambda a, t=triangle: linalg.eigvalsh(a, t),
                lambda a, t=triangle: np.linalg.eigvalsh(a, t),
                definite,
            )
            agree(
                lambda a, t=triangle: linalg.eigh(a, t), lambda a, t=triangle: np.linalg.eigh(a, t), definite
            )


@dtypes
def test_any_shape(dtype):
    for shape in ((3, 3), (2, 4, 3), (2, 3), (3, 1)):
        matrix = array(dtype, *shape)
        agree(linalg.pinv, np.linalg.pinv, matrix)
        agree(lambda a: linalg.pinv(a, 0.5), lambda a: np.linalg.pinv(a, 0.5), matrix)
        agree(linalg.svdvals, np.linalg.svdvals, matrix)
        for full in (True, False):
            agree(lambda a, f=full: linalg.svd(a, f), lambda a, f=full: np.linalg.svd(a, f), matrix)
        for mode in ("reduced", "complete", "r"):
            agree(lambda a, m=mode: linalg.qr(a, m), lambda a, m=mode: np.linalg.qr(a, m), matrix)
        agree(linalg.cond, np.linalg.cond, matrix)
        for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            for keepdims in (False, True):
                agree(
                    lambda a, o=order, k=keepdims: linalg.norm(a, o, (-2, -1), k),
                    lambda a, o=order, k=keepdims: np.linalg.norm(
                        a.astype("float64") if a.dtype == bool else a, o, (-2, -1), k
                    ),
                    matrix,
                )


@dtypes
def test_lu(dtype):
    for shape in ((3, 3), (4, 2), (2, 4)):
        matrix = array(dtype, *shape)
        inexact = matrix.astype("float64") if matrix.dtype.kind in "bi" else matrix
        agree(linalg.lu, lambda a, b=inexact: scipy.linalg.lu(b), matrix)
        agree(lambda a: linalg.lu(a, True), lambda a, b=inexact: scipy.linalg.lu(b, True), matrix)
    batch = array("float64", 2, 3, 3)
    agree(linalg.lu, lambda a: [np.stack(part) for part in zip(*map(scipy.linalg.lu, a), strict=True)], batch)
    permutation = linalg.lu(np.ones((0, 2)))[0].eval()
    assert permutation.shape == (0, 0)


@dtypes
def test_systems(dtype):
    matrix, batch = array(dtype, 3, 3), array(dtype, 2, 3, 3)
    for sides in (
        array(dtype, 3, 2),
        array(dtype, 3, 2)[:, 0],
        array(dtype, 2, 3, 1),
        array("float64", 3, 2),
    ):
        for first in (matrix, batch):
            agree(linalg.solve, np.linalg.solve, first, sides)
    for lower in (False, True):
        for trans in (0, 1, 2, "N", "T", "C"):
            for unit in (False, True):
                options = {"trans": trans, "lower": lower, "unit_diagonal": unit}
                inexact = matrix.astype("float64") if matrix.dtype.kind in "bi" else matrix
                for sides in (array("complex128", 3, 2), array("float32", 3)):
                    agree(
                        lambda a, b, o=options: linalg.solve_triangular(a, b, **o),
                        lambda a, b, o=options, i=inexact: scipy.linalg.solve_triangular(
                            i, b.astype(np.result_type(i, b)), **o
                        ).astype(np.result_type(i, b)),
                        matrix,
                        sides,
                    )
        factor = np.tril(positive("float64", 3, 3))
        agree(
            lambda c, b, low=lower: linalg.cho_solve((c, low), b),
            lambda c, b, low=lower: scipy.linalg.cho_solve((c, low), b),
            factor if lower else factor.T,
            array("float64", 3, 2),
        )


def test_expm_and_blocks():
    for shape in ((3, 3), (2, 2, 2), (1, 1)):
        for dtype in ("float64", "complex128"):
            agree(linalg.expm, scipy.linalg.expm, array(dtype, *shape))
    assert linalg.expm(np.zeros((0, 0))).eval().shape == (0, 0)
    blocks = [array("float64", 2, 3), array("float32", 1, 1), np.arange(3.0), np.zeros((0, 2)), np.array(2)]
    agree(linalg.block_diag, scipy.linalg.block_diag, *blocks)
    agree(linalg.kron, np.kron, array("float64", 2, 3), array("float32", 3, 2))


def test_reading_one_triangle():
    matrix = positive("float64", 3, 3)
    lower = np.tril(matrix) + np.triu(np.full((3, 3), np.nan), 1)
    agree(linalg.cholesky, lambda a: np.linalg.cholesky(matrix), lower)
    agree(linalg.eigvalsh, lambda a: np.linalg.eigvalsh(matrix), lower)
    agree(lambda a: linalg.cholesky(a, True), lambda a: np.linalg.cholesky(matrix).T, lower.T)
    solution = scipy.linalg.solve_triangular(np.tril(matrix), np.ones((3, 1)), lower=True)
    agree(lambda a: linalg.solve_triangular(a, np.ones((3, 1)), lower=True), lambda a: solution, lower)


def test_composites():
    parts = [array("float64", 3, 4), array("float64", 4, 2), array("float64", 2, 5)]
    agree(lambda *a: linalg.multi_dot(a), lambda *a: np.linalg.multi_dot(a), *parts)
    agree(
        lambda *a: linalg.multi_dot([a[0][0], *a[1:]]),
        lambda *a: np.linalg.multi_dot([a[0][0], *a[1:]]),
        *parts,
    )
    tall, sides = array("float64", 5, 3), array("float64", 5, 2)
    deficient = tall.copy()
    deficient[:, 2] = deficient[:, 0]
    for matrix in (tall, deficient):
        agree(linalg.lstsq, np.linalg.lstsq, matrix, sides)
        agree(linalg.lstsq, np.linalg.lstsq, matrix, sides[:, 0])
        for rcond in (-1, 0, 0.5, 1, 3):
            agree(
                lambda a, b, r=rcond: linalg.lstsq(a, b, r),
                lambda a, b, r=rcond: np.linalg.lstsq(a, b, r),
                matrix,
                sides,
            )
        agree(linalg.lstsq, np.linalg.lstsq, matrix.T, sides[:3])
    vector = array("float64", 3, 4)
    for order in (0, 1, 2, 3, np.inf, -np.inf):
        for axis in (0, -1):
            agree(
                lambda x, o=order, a=axis: linalg.norm(x, o, a),
                lambda x, o=order, a=axis: np.linalg.norm(x, o, a),
                vector,
            )
        agree(
            lambda x, o=order: linalg.vector_norm(x, ord=o, keepdims=True),
            lambda x, o=order: np.linalg.vector_norm(x, ord=o, keepdims=True),
            vector,
        )
    cube = array("float64", 2, 3, 4)
    for axes in ((0, 1), (2, 0), (-1, 1)):
        for order in (None, "nuc", 1, -1, 2, np.inf):
            for keep in (False, True):
                agree(
                    lambda x, o=order, a=axes, k=keep: linalg.norm(x, o, a, k),
                    lambda x, o=order, a=axes, k=keep: np.linalg.norm(x, o, a, k),
                    cube,
                )
    agree(linalg.norm, np.linalg.norm, cube)
    for data, axes in ((array("float64"), ()), (cube, ()), (cube, (2, 0)), (cube, None), (cube, (0, 1, 2))):
        for order in (0, 1, 2, 3, np.inf, -np.inf):
            agree(
                lambda x, o=order, a=axes: linalg.vector_norm(x, axis=a, ord=o),
                lambda x, o=order, a=axes: np.linalg.vector_norm(x, axis=a, ord=o),
                data,
            )
    square = array("float64", 3, 3)
    for order in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro"):
        agree(lambda a, o=order: linalg.cond(a, o), lambda a, o=order: np.linalg.cond(a, o), square)


def test_a_large_log_determinant():
    matrix = array("float64", 400, 400) * 1e100
    agree(linalg.slogdet, np.linalg.slogdet, matrix, static=(True,))


@pytest.mark.parametrize(
    "solve",
    [
        esat.linalg.solve,
        esat.linalg.solve_triangular,
        lambda a, b: esat.linalg.cho_solve((a, True), b),
        SOLVE,
    ],
)
def test_systems_take_matrices(solve):
    name = r"^(solve|solve_triangular|cho_solve)\("
    for matrix in (esat.vector(), esat.scalar(), esat.tensor("one", shape=(1,))):
        for sides in (esat.vector(), esat.matrix()):
            with pytest.raises(ShapeError, match=name + ".*takes matrices"):
                solve(matrix, sides)
    with pytest.raises(ShapeError, match=name + ".*takes matrices"):
        solve(esat.matrix(), esat.scalar())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_with_semidefinite_matrices(dtype):
    square = array(dtype, 2, 4, 4)
    sides = array(dtype, 2, 4, 3)
    gram = square @ np.swapaxes(square, -1, -2)
    agree(SemidefiniteSolve(), np.linalg.solve, gram, sides)
    agree(SemidefiniteSolve(), np.linalg.solve, gram[:0], sides[:0])


def test_what_has_no_cholesky_factor_is_solved_all_the_same():
    """Rounding makes semidefinite matrices indefinite, and NaN is passed on, as in NumPy."""
    indefinite, sides = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[1.0], [3.0]])
    agree(SemidefiniteSolve(), np.linalg.solve, indefinite, sides)
    (found,) = SemidefiniteSolve().perform([np.full((2, 2), np.nan), sides])
    assert np.isnan(found).all()
    with pytest.raises(LinearAlgebraError, match="singular"):
        SemidefiniteSolve().perform([np.zeros((2, 2)), sides])


@pytest.mark.parametrize("columns", [1, 3, 12])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whitened_sides(dtype, columns):
    square = array(dtype, 2, 4, 4)
    sides = array(dtype, 2, 4, columns)
    gram = square @ np.swapaxes(square, -1, -2)
    agree(WHITEN, lambda a, b: np.linalg.solve(np.linalg.cholesky(a), b), gram, sides)
    agree(WHITEN, lambda a, b: np.linalg.solve(np.linalg.cholesky(a), b), gram[:0], sides[:0])


def test_what_has_no_cholesky_factor_is_whitened_all_the_same():
    """Rounding makes semidefinite matrices indefinite, where forms may be known all the same. NaN is passed
    on, and what is singular refused, as in NumPy."""
    rounded, sides = np.array([[1.0, 1.0], [1.0, 1.0 - 2e-16]]), np.array([[1.0], [1.0]])
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(rounded)
    (half,) = WHITEN.perform([rounded, sides])
    np.testing.assert_allclose(half.T @ half, 1.0, rtol=1e-6)
    (found,) = WHITEN.perform([np.full((2, 2), np.nan), sides])
    assert np.isnan(found).all()
    with pytest.raises(LinearAlgebraError, match="singular"):
        WHITEN.perform([np.zeros((2, 2)), sides])


def test_inverses_of_triangles():
    for dtype in ("float32", "float64", "complex128"):
        matrix = array(dtype, 2, 4, 4) + 3 * np.eye(4, dtype=dtype)
        for lower, kept in ((True, np.tril), (False, np.triu)):
            agree(TriangularInverse(lower), lambda a, k=kept: np.linalg.inv(k(a)), matrix)
    with pytest.raises(LinearAlgebraError, match="singular"):
        TriangularInverse().perform([np.zeros((2, 2))])
