"""Special functions where SciPy's take time without end, or are not to be relied on."""

import time

import mpmath
import numpy as np
import pytest
from scipy import special

import esat


@pytest.mark.parametrize("order", [1, 2, 3, 7, 20])
def test_polygamma_far_below_zero(order: int) -> None:
    x = esat.vector("x")
    below, endless = np.array([-63.625, -64.25, -70.75, -1000.125]), -(2.0**40) - 0.25
    others = np.array([3.5, -70.0, np.nan])
    begin = time.perf_counter()
    found = esat.evaluate([esat.polygamma(order, x)], {x: np.array([*below, *others, endless])})[0]
    assert time.perf_counter() - begin < 5  # SciPy takes hours for the last
    with mpmath.workdps(30):
        wanted = [float(mpmath.polygamma(order, mpmath.mpf(point))) for point in below]
    np.testing.assert_allclose(found[:4], wanted, rtol=1e-13)
    np.testing.assert_array_equal(found[4:7], special.polygamma(order, others))
    # Terms farther from zero than a million do not count any more.
    np.testing.assert_allclose(found[7], special.polygamma(order, -1000000.25), rtol=1e-6)


def test_polygamma_of_float32_and_of_order_zero_far_below_zero() -> None:
    x = esat.vector("x", dtype="float32")
    points = np.array([-100.25, -1e6, -12345.5], "float32")
    slope = esat.grad(esat.digamma(x).sum(), x)
    (found,) = esat.evaluate([slope], {x: points})
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, special.polygamma(1, points.astype("float64")), rtol=1e-6)
    (of_order_zero,) = esat.evaluate([esat.polygamma(np.float32(0), x)], {x: points})
    np.testing.assert_array_equal(of_order_zero, special.polygamma(np.float32(0), points))


def test_slopes_of_digamma_compile_in_time() -> None:
    x = esat.vector("x")
    begin = time.perf_counter()
    f = esat.compile(esat.Graph([x], [esat.polygamma(1, x).sum() / 3]))
    assert time.perf_counter() - begin < 30
    np.testing.assert_allclose(
        f(np.array([0.5, 2.5])), special.polygamma(1, [0.5, 2.5]).sum() / 3, rtol=1e-14
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polygamma_of_orders_that_are_not_whole(dtype: str) -> None:
    """One plus the order decides, rounded to the dtype."""
    orders = [2.5, 1e-30, -1e-30, 1e-8, 0.99999999, -0.5, 1e10, np.nan]
    pairs = np.array([(order, point) for order in orders for point in (-3.5, 2.5, np.nan)] + [(2.5, -70.25)])
    n, x = esat.tensor("n", dtype=dtype, shape=(None,)), esat.tensor("x", dtype=dtype, shape=(None,))
    operands = pairs.T.astype(dtype)
    with np.errstate(all="ignore"):
        wanted = special.polygamma(*operands)
        found = esat.evaluate([esat.polygamma(n, x)], dict(zip((n, x), operands, strict=True)))[0]
    computed = esat.compile(esat.Graph([n, x], [esat.polygamma(n, x) * 1.0]))(*operands)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(computed, wanted, rtol=4 * np.finfo(dtype).eps)
