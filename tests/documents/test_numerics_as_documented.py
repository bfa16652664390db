"""What docs/numpy.md and docs/accuracy.md say of values: where modes differ from NumPy, and where not."""

import numpy as np
import pytest

import esat

ALGEBRA = ("fast_run", "o3", "o4", "unsafe", "greedy", "debug")
OTHERS = ("strict", "o2", "Stabilization", "fast_compile")
SPECIAL = np.array([np.inf, np.nan, 0.0, 2.0])


def run(mode, function, *arguments):
    inputs = [
        esat.tensor(dtype=str(one.dtype), shape=(None,) * one.ndim) for one in map(np.asarray, arguments)
    ]
    with np.errstate(all="ignore"):
        return esat.compile(esat.Graph(inputs, function(*inputs)), mode)(*arguments)


@pytest.mark.parametrize("mode", ALGEBRA)
def test_algebra_is_that_of_real_numbers(mode):
    for function, wanted in [
        (lambda x: x - x, [0, 0, 0, 0]),
        (lambda x: x / x, [1, 1, 1, 1]),
        (lambda x: x * (1 / x), [1, 1, 1, 1]),
        (lambda x: 0 * x, [0, 0, 0, 0]),
        (lambda x: x / x**2, [0, np.nan, np.inf, 0.5]),
        (lambda x: 0 / x, [0, np.nan, np.nan, 0]),
    ]:
        np.testing.assert_array_equal(run(mode, function, SPECIAL), wanted)
    y = np.arange(1.0, 5.0)
    np.testing.assert_array_equal(run(mode, lambda x, y: (x * y) / x, SPECIAL, y), y)


@pytest.mark.parametrize("mode", OTHERS)
def test_other_modes_are_as_numpy(mode):
    for function in (
        lambda x: x - x,
        lambda x: x / x,
        lambda x: x * (1 / x),
        lambda x: 0 * x,
        lambda x: x / x**2,
        lambda x: 0 / x,
        lambda x: np.exp(x) >= 0,
    ):
        with np.errstate(all="ignore"):
            wanted = function(SPECIAL)
        np.testing.assert_array_equal(run(mode, function, SPECIAL), wanted)


@pytest.mark.parametrize("mode", [*ALGEBRA, *OTHERS])
def test_comparisons_with_nan_are_as_numpy(mode):
    x, y = np.array([np.nan, 1.0, 2.0]), np.array([1.0, np.nan, 3.0])
    for function in (
        lambda x, y: np.where(x > y, x, y),
        lambda x, y: np.where(x <= y, x, y),
        lambda x, y: np.where(x < 0, 0, x) + y,
        lambda x, y: (np.exp(x) >= 0) & (np.abs(y) >= 0),
        lambda x, y: np.where(np.sqrt(x) >= 0, x, y),
    ):
        np.testing.assert_array_equal(run(mode, function, x, y), function(x, y))


def test_zeros_have_their_signs_in_strict_mode():
    zeros = np.array([-0.0, 0.0])
    for function in (lambda x: x + 0, lambda x: 0 - x):
        np.testing.assert_array_equal(np.signbit(run("strict", function, zeros)), np.signbit(function(zeros)))
    assert np.signbit(run("fast_run", lambda x: x + 0, zeros)).tolist() == [True, False]
    assert np.signbit(run("fast_run", lambda x: 0 - x, zeros)).tolist() == [False, True]


@pytest.mark.parametrize("mode", ALGEBRA)
def test_what_was_written_as_a_precaution_stays(mode):
    f2, f4 = np.float16, np.float32
    two = np.array([1.5e308]), np.array([1.7e308])
    np.testing.assert_allclose(run(mode, lambda a, b: a / 2 + b / 2, *two), 1.6e308)
    np.testing.assert_allclose(run(mode, lambda x: (x / 4).sum(), f2([4e4, 5e4, 6e4, 3e4])), 45000, 1e-3)
    np.testing.assert_allclose(run(mode, lambda x, y: (x / 4) @ y, np.full(4, 1.7e308), np.ones(4)), 1.7e308)
    np.testing.assert_allclose(run(mode, lambda p: esat.log(1 - p + 1e-9), f4([1])), -20.723267, 1e-6)
    weights = [1e16, 0.5], [1.0, 1e-20], [1.0, 1.0]
    blend = run(mode, lambda a, b, t: (1 - t) * a + t * b, *map(np.array, weights))
    np.testing.assert_array_equal(blend, [1.0, 1e-20])
    np.testing.assert_array_equal(
        run(mode, lambda a, b: b - ((a + b) - a), np.array([1e16]), np.array([1.0])), [1]
    )
    rounded = run(mode, lambda x: (x + 6755399441055744.0) - 6755399441055744.0, np.array([2.6, -1.2]))
    np.testing.assert_array_equal(rounded, [3.0, -1.0])
    np.testing.assert_allclose(
        run(mode, lambda x, y: x / y / y, np.array([1e300]), np.array([1e200])), 1e-100
    )


@pytest.mark.parametrize("mode", ["fast_run", "o3", "greedy"])
def test_logarithms_of_determinants(mode):
    matrix = 3 * np.random.default_rng(0).normal(size=(300, 300))
    matrix[0] *= np.linalg.slogdet(matrix)[0]
    size, det = np.linalg.slogdet(matrix)[1], esat.linalg.det
    for function, wanted in [
        (lambda a: esat.log(det(a)), size),
        (lambda a: esat.log(abs(det(-a))), size),
        (lambda a: esat.log(det(a) ** 2), 2 * size),
        (lambda a: esat.log(esat.sqrt(det(a))), size / 2),
        (lambda a: esat.log(det(a) * det(2 * a)), 2 * size + 300 * np.log(2)),
        (lambda a: esat.log(3 / det(a)), np.log(3) - size),
        (lambda a: esat.log(1 / (det(a) * det(a) * det(a))), -3 * size),
        (lambda a: esat.log(1 / det(a) ** 3), -3 * size),
        (lambda a: esat.log2(det(a)), size / np.log(2)),
        (lambda a: esat.log10(det(a)), size / np.log(10)),
    ]:
        np.testing.assert_allclose(run(mode, function, matrix), wanted, 1e-10)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("mode", ["fast_run", "o3", "unsafe"])
def test_logarithms_of_sizes_of_determinants(mode, sign):
    matrix = 3 * np.random.default_rng(0).normal(size=(300, 300))
    matrix[0] *= sign * np.linalg.slogdet(matrix)[0]
    size, det = np.linalg.slogdet(matrix)[1], esat.linalg.det
    for function, wanted in [
        (lambda a: esat.log2(abs(det(a))), size / np.log(2)),
        (lambda a: esat.log10(abs(det(a))), size / np.log(10)),
        (lambda a: esat.log1p(abs(det(a))), size),
        (lambda a: esat.log(3 * abs(det(a))), np.log(3) + size),
        (lambda a: esat.log(1 / abs(det(a))), -size),
        (lambda a: esat.log(esat.sqrt(abs(det(a)))), size / 2),
        (lambda a: esat.log(det(a) if sign > 0 else -det(a)), size),
    ]:
        np.testing.assert_allclose(run(mode, function, matrix), wanted, 1e-10)
