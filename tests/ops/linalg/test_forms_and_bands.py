"""Schur forms, Sylvester's equation, systems of bands and ordered columns, against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import esat
from esat.errors import GradientError, LinearAlgebraError, MatrixShapeError, ParameterError, ShapeError
from esat.frontend.scipy_functions.linalg import FUNCTIONS
from esat.ops.linalg.bands import TRIDIAGONAL_FACTORS, BandedSolve, TridiagonalFactorsSolve
from esat.ops.linalg.pivoted import PivotedQR
from esat.ops.linalg.schur import (
    SCHUR,
    SORTS,
    SYLVESTER,
    GeneralizedSchur,
    Schur,
    TriangularSylvester,
)

pytestmark = pytest.mark.usefixtures("libraries_without_threads")

RNG = np.random.default_rng(23)
DTYPES = ("float32", "float64", "complex64", "complex128")


def matrices(*shape, dtype="float64"):
    real = RNG.standard_normal(shape)
    return (real + 1j * RNG.standard_normal(shape) if dtype[0] == "c" else real).astype(dtype)


def agree(found, expected, dtype="float64"):
    assert len(found) == len(expected)
    tolerance = 2e-3 if dtype in ("float32", "complex64") else 1e-9
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (np.asarray(other).dtype, np.shape(other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def scipys(name, *operands, **options):
    """What SciPy gives for each matrix of batches."""
    function = getattr(scipy.linalg, name)
    batch = np.broadcast_shapes(*(one.shape[:-2] for one in operands))
    whole = [np.broadcast_to(one, (*batch, *one.shape[-2:])) for one in operands]
    each = [function(*(one[place] for one in whole), **options) for place in np.ndindex(batch)]
    return [np.reshape(np.stack(parts), (*batch, *np.shape(parts[0]))) for parts in zip(*each, strict=True)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("complex", [False, True])
def test_schur_forms(dtype, complex):
    output = "complex" if complex else "real"
    for shape in ((4, 4), (2, 3, 3), (1, 1)):
        matrix = matrices(*shape, dtype=dtype)
        agree(esat.evaluate(list(Schur(complex)(matrix))), scipys("schur", matrix, output=output), dtype)
        for sort in SORTS:
            found = esat.evaluate(list(Schur(complex, sort)(matrix)))
            agree(found, scipys("schur", matrix, output=output, sort=sort)[:2], dtype)
    assert [one.shape for one in esat.evaluate(list(SCHUR(np.zeros((2, 0, 0)))))] == [(2, 0, 0)] * 2
    assert np.isnan(esat.evaluate(list(SCHUR(np.full((2, 2), np.inf))))).all()


def test_schur_under_scipys_name():
    matrix = matrices(4, 4)
    function = FUNCTIONS["scipy.linalg.schur"]
    agree(esat.evaluate(list(function(matrix, "complex"))), scipy.linalg.schur(matrix, "complex"))
    for sort in SORTS:
        *_, count = function(matrix, sort=sort)
        assert esat.evaluate(count) == scipy.linalg.schur(matrix, sort=sort)[-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("complex", [False, True])
def test_two_schur_forms(dtype, complex):
    left, right = matrices(2, 4, 4, dtype=dtype), matrices(4, 4, dtype=dtype)
    output = "complex" if complex else "real"
    for sort in SORTS:
        found = esat.evaluate(list(GeneralizedSchur(complex, sort)(left, right)))
        agree(found, scipys("ordqz", left, right, sort=sort, output=output), dtype)
    found = esat.evaluate(list(GeneralizedSchur(complex)(left, right)))
    agree([*found[:2], *found[4:]], scipys("qz", left, right, output=output), dtype)
    eigenvalues = np.sort_complex(found[2][1] / found[3][1])
    expected = np.sort_complex(scipy.linalg.eigvals(left[1], right))
    np.testing.assert_allclose(
        eigenvalues, expected, rtol=1e-3 if dtype in ("float32", "complex64") else 1e-9
    )
    singular = esat.evaluate(list(GeneralizedSchur(complex, "ouc")(left[0], np.zeros_like(right))))
    agree(singular, scipy.linalg.ordqz(left[0], np.zeros_like(right), "ouc", output), dtype)
    assert all(np.isnan(one).all() for one in esat.evaluate(list(GeneralizedSchur()(np.nan * left, right))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sylvesters_equation(dtype):
    left, right = matrices(2, 4, 4, dtype=dtype) + 4 * np.eye(4), matrices(3, 3, dtype=dtype) + 4 * np.eye(3)
    left, right, sides = left.astype(dtype), right.astype(dtype), matrices(4, 3, dtype=dtype)
    found = esat.evaluate(SYLVESTER(left, right, sides))
    expected = np.stack([scipy.linalg.solve_sylvester(one, right, sides) for one in left])
    agree([found], [expected], dtype)
    output = "real"
    first, second = scipy.linalg.schur(left[0], output)[0], scipy.linalg.schur(right, output)[0]
    for adjoint in (False, True):
        solution = esat.evaluate(TriangularSylvester(adjoint)(first, second, sides))
        a, b = (one.conj().T if adjoint else one for one in (first, second))
        agree([(a @ solution + solution @ b).astype(dtype)], [sides], dtype)
    assert esat.evaluate(SYLVESTER(np.zeros((0, 0)), right, sides[:0])).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_sylvesters_equation(dtype):
    left, right = matrices(2, 4, 4, dtype=dtype) + 4 * np.eye(4), matrices(3, 3, dtype=dtype) + 4 * np.eye(3)
    sides = matrices(4, 3, dtype=dtype)
    esat.verify_grad(SYLVESTER, [left, right, sides])
    first, second = scipy.linalg.schur(left[0])[0], scipy.linalg.schur(right)[0]
    for adjoint in (False, True):
        op = TriangularSylvester(adjoint)
        # Other elements than those of blocks are not read.
        esat.verify_grad(
            lambda a, b, c, op=op: op(a * (first != 0), b * (second != 0), c), [first, second, sides]
        )


def dense(bands, lower, upper):
    size = bands.shape[-1]
    result = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
    for row in range(size):
        for column in range(size):
            if -upper <= row - column <= lower:
                result[..., row, column] = bands[..., upper + row - column, column]
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("lower", "upper"), [(1, 1), (2, 1), (0, 1), (0, 0), (1, 3)])
def test_systems_of_bands(dtype, lower, upper):
    for size in (0, 1, 2, 3, 6):
        bands, sides = matrices(2, lower + upper + 1, size, dtype=dtype), matrices(size, 3, dtype=dtype)
        bands[:, upper] += 5
        matrix = dense(bands, lower, upper)
        for transpose in (False, True):
            system = matrix.swapaxes(-1, -2) if transpose else matrix
            expected = np.linalg.solve(system, np.broadcast_to(sides, (2, size, 3)))
            agree([esat.evaluate(BandedSolve(lower, upper, transpose)(bands, sides))], [expected], dtype)
            if lower == upper == 1:
                factors = TRIDIAGONAL_FACTORS(bands)
                agree([esat.evaluate(TridiagonalFactorsSolve(transpose)(factors, sides))], [expected], dtype)
    solve = FUNCTIONS["scipy.linalg.solve_banded"]
    expected = scipy.linalg.solve_banded((lower, upper), bands[0], sides)
    agree([esat.evaluate(solve((lower, upper), bands[0], sides))], [expected], dtype)
    agree([esat.evaluate(solve((lower, upper), bands[0], sides[:, 0]))], [expected[:, 0]], dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_gradients_of_systems_of_bands(dtype, size):
    for lower, upper in ((1, 1), (2, 1), (0, 2)):
        bands, sides = matrices(2, lower + upper + 1, size, dtype=dtype), matrices(size, 2, dtype=dtype)
        bands[:, upper] += 5
        for transpose in (False, True):
            esat.verify_grad(BandedSolve(lower, upper, transpose), [bands, sides])
    factors = esat.evaluate(TRIDIAGONAL_FACTORS(matrices(3, size, dtype=dtype)))
    for transpose in (False, True):
        esat.verify_grad(lambda b, t=transpose: TridiagonalFactorsSolve(t)(factors, b), [sides])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("mode", "name"), [("reduced", "economic"), ("complete", "full"), ("r", "r")])
def test_columns_in_order(dtype, mode, name):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3)):
        matrix = matrices(*shape, dtype=dtype)
        expected = scipys("qr", matrix, mode=name, pivoting=True)
        if mode == "r":
            expected[0] = expected[0][..., : min(shape[-2:]), :]
        agree(esat.evaluate(list(PivotedQR(mode)(matrix))), expected, dtype)
        if len(shape) == 2:
            found = FUNCTIONS["scipy.linalg.qr"](matrix, name, True)
            agree(esat.evaluate(list(found)), scipy.linalg.qr(matrix, mode=name, pivoting=True), dtype)
    assert [one.shape for one in esat.evaluate(list(PivotedQR(mode)(np.zeros((2, 3, 0)))))][-1] == (2, 0)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_gradients_of_columns_in_order(dtype, shape):
    matrix = matrices(*shape, dtype=dtype)
    weights = np.arange(1.0, 1 + shape[-1])[None, :]

    def weighted(x, mode, count):
        parts = list(PivotedQR(mode)(x))[:count]
        return sum((esat.abs(one) ** 2 * weights[:, : one.type.shape[-1]]).sum() for one in parts)

    for mode, count in (("reduced", 2), ("r", 1)):
        esat.verify_grad(lambda x, m=mode, c=count: weighted(x, m, c), [matrix], tolerance=1e-4)


def test_what_is_refused():
    x, square = esat.matrix("x"), np.eye(3)
    with pytest.raises(ParameterError, match="sort"):
        Schur(sort="up")
    with pytest.raises(MatrixShapeError, match="square"):
        SCHUR(np.ones((2, 3)))
    with pytest.raises(MatrixShapeError, match="one size"):
        GeneralizedSchur()(square, np.eye(2))
    with pytest.raises(ShapeError, match="do not fit"):
        SYLVESTER(square, np.eye(2), square)
    with pytest.raises(ShapeError, match="3 rows"):
        BandedSolve()(np.ones((2, 4)), np.ones((4, 1)))
    with pytest.raises(ShapeError, match="4 equations"):
        BandedSolve()(np.ones((3, 4)), np.ones((5, 1)))
    with pytest.raises(LinearAlgebraError, match="singular"):
        esat.evaluate(BandedSolve()(np.zeros((3, 4)), np.ones((4, 1))))
    with pytest.raises(ShapeError, match="exchanged"):
        esat.evaluate(TridiagonalFactorsSolve()(np.full((5, 4), 9.0), np.ones((4, 1))))
    for loss in (SCHUR(x)[0].sum(), TRIDIAGONAL_FACTORS(x).sum(), TridiagonalFactorsSolve()(x, x).sum()):
        with pytest.raises(GradientError, match=r"has no gradient|have no gradient"):
            esat.grad(loss, x)
