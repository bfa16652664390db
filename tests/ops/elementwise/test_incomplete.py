"""Derivatives of the incomplete gamma and beta functions by their parameters, against mpmath."""

import mpmath
import numpy as np
import pytest

import esat

from .samples import BY_NAME, run

GAMMA = (
    (0.03, 0.001),
    (0.5, 0.2),
    (1.0, 9.0),
    (4.0, 4.9),
    (4.0, 5.1),
    (40.0, 30.0),
    (300.0, 330.0),
    (700.0, 690.0),
)
BETA = (
    (0.5, 0.5, 0.1),
    (2.0, 3.0, 0.4),
    (2.0, 3.0, 0.9),
    (60.0, 2.0, 0.97),
    (0.2, 30.0, 1e-3),
    (90.0, 80.0, 0.5),
)


def derivative(function, at):
    with mpmath.workdps(40):
        return float(mpmath.diff(function, mpmath.mpf(at)))


def test_gammainc_by_its_order():
    found = run(BY_NAME["gammainc_by_order"], *np.array(GAMMA).T)
    expected = [
        derivative(lambda t, x=x: mpmath.gammainc(t, 0, mpmath.mpf(x), regularized=True), a) for a, x in GAMMA
    ]
    np.testing.assert_allclose(found, expected, rtol=2e-12)


def test_betainc_by_its_parameters():
    operands = np.array(BETA).T
    whole = {"regularized": True}
    by_first = [derivative(lambda t, b=b, x=x: mpmath.betainc(t, b, 0, x, **whole), a) for a, b, x in BETA]
    by_second = [derivative(lambda t, a=a, x=x: mpmath.betainc(a, t, 0, x, **whole), b) for a, b, x in BETA]
    np.testing.assert_allclose(run(BY_NAME["betainc_by_first"], *operands), by_first, rtol=2e-11)
    np.testing.assert_allclose(run(BY_NAME["betainc_by_second"], *operands), by_second, rtol=2e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends_and_what_is_outside(dtype):
    a = np.array([1, 1, 1, -1, np.nan, 0], dtype)
    x = np.array([0, np.inf, -1, 1, 1, 1], dtype)
    found = run(BY_NAME["gammainc_by_order"], a, x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [0, 0, np.nan, np.nan, np.nan, np.nan])
    x = np.array([0, 1, 2, 0.5, 0.5, 0.5], dtype)
    for name in ("betainc_by_first", "betainc_by_second"):
        found = run(BY_NAME[name], a, np.ones(6, dtype), x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, [0, 0, np.nan, np.nan, np.nan, np.nan])


def test_gradients_are_compiled():
    a, x = esat.scalar("a"), esat.vector("x")
    cost = esat.gammaincc(a, x).sum() + esat.betainc(a, 2.0, x / 9).sum() + esat.ndtri(x / 9).sum()
    slopes = esat.compile(esat.Graph([a, x], esat.grad(cost, [a, x])), "fast_compile")(1.5, [1.0, 2.0])
    checked = esat.evaluate(esat.grad(cost, [a, x]), {a: 1.5, x: [1.0, 2.0]})
    for one, other in zip(slopes, checked, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
