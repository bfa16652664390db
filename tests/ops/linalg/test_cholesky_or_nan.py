"""Factors of matrices that are not positive definite: NaN where that is asked for."""

import numpy as np
import pytest

import esat
from esat.errors import LinearAlgebraError, ParameterError

MODES = ("fast_compile", "fast_run")
RNG = np.random.default_rng(3)


def positive(order):
    x = RNG.normal(size=(order, order))
    return x @ x.T + order * np.eye(order)


def compiled(build, *types, mode):
    inputs = [esat.TensorType("float64", shape=shape)("x") for shape in types]
    return esat.compile(esat.Graph(inputs, build(*inputs)), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [1, 3, 12, 40])
@pytest.mark.parametrize("upper", [False, True])
def test_a_factor_that_there_is_not_is_nan_as_a_whole(mode, order, upper):
    f = compiled(lambda x: esat.linalg.cholesky(x, upper, on_error="nan"), (None, None), mode=mode)
    good = positive(order)
    expected = np.linalg.cholesky(good).T if upper else np.linalg.cholesky(good)
    for _ in range(210):  # until there is a native function, which then meets what it refuses
        found = f(good)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert np.isnan(f(-good)).all()
    np.testing.assert_allclose(f(good), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_of_a_batch_only_the_matrix_that_has_none_is_nan(mode):
    f = compiled(lambda x: esat.linalg.cholesky(x, on_error="nan"), (None, None, None), mode=mode)
    batch = np.stack([positive(4), -positive(4), positive(4)])
    found = f(batch)
    assert np.isnan(found).all(axis=(1, 2)).tolist() == [False, True, False]
    np.testing.assert_allclose(found[[0, 2]], np.linalg.cholesky(batch[[0, 2]]), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_what_holds_of_factors_is_not_taken_to_hold_of_nan(mode):
    """Neither is the product of such a factor with itself the matrix, nor a block of it that of the block."""
    f = compiled(
        lambda x: [
            (factor := esat.linalg.cholesky(x, on_error="nan")) @ factor.T,
            esat.linalg.cholesky(esat.linalg.block_diag(x, np.eye(2)), on_error="nan"),
            esat.tril(factor),
        ],
        (3, 3),
        mode=mode,
    )
    product, blocks, lower = f(-np.eye(3))
    assert np.isnan(product).all()
    assert np.isnan(blocks).all()
    np.testing.assert_array_equal(np.isnan(lower), np.tri(3, dtype=bool))


def test_its_gradient_is_that_of_the_factor():
    x = esat.matrix("x")
    slopes = [esat.grad((esat.linalg.cholesky(x, on_error=kind) ** 3).sum(), x) for kind in ("nan", "raise")]
    one, other = esat.compile(esat.Graph([x], slopes))(positive(5))
    np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_an_error_is_raised_unless_nan_is_asked_for():
    x = esat.matrix("x")
    with pytest.raises(LinearAlgebraError, match="not positive definite"):
        esat.compile(esat.Graph([x], esat.linalg.cholesky(x)))(-np.eye(2))
    with pytest.raises(ParameterError, match="on_error is raise or nan"):
        esat.linalg.cholesky(x, on_error="ignore")
