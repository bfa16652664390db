"""Products of small matrices as code of their own, for all orders in memory."""

import itertools

import numpy as np
import pytest

from esat.codegen.ground.machine_text import function_at
from esat.codegen.matmul.unrolled_products import unrolled_plan, unrolled_product

SIZES = [
    (1, 1, 1),
    (2, 3, 4),
    (4, 4, 1),
    (1, 4, 4),
    (3, 1, 5),
    (1, 9, 1),
    (5, 1, 1),
    (6, 20, 1),
    (4, 17, 7),
    (1, 2, 40),
]
ORDERS = ("C", "F", "rows", "columns")


def multiply_unrolled(largest, left, right, output):
    """Write the product; whether it was done."""
    plan = unrolled_plan(largest, left.dtype, left.shape, left.strides, right.shape, right.strides)
    return plan is not None and plan[1](left, right, output)


def matrix(rng, shape, dtype, order):
    """Contiguous in one order, or every other row or column of such."""
    steps = {"rows": (2, 1), "columns": (1, 2)}.get(order, (1, 1))
    whole = [size * step for size, step in zip(shape, steps, strict=True)]
    values = np.asarray(rng.standard_normal(whole), dtype, order="F" if order == "F" else "C")
    return values[:: steps[0], :: steps[1]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", SIZES)
def test_all_orders(sizes, dtype):
    rng = np.random.default_rng(0)
    rows, inner, columns = sizes
    done = []
    for orders in itertools.product(ORDERS, ORDERS):
        left, right = (
            matrix(rng, shape, dtype, order)
            for shape, order in zip(((rows, inner), (inner, columns)), orders, strict=True)
        )
        output = np.full((rows, columns), np.nan, dtype)
        done.append(multiply_unrolled(512, left, right, output))
        if done[-1]:
            wanted = left.astype(np.float64) @ right.astype(np.float64)
            limit = 4 * inner * np.finfo(dtype).eps
            size = np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64)
            assert np.all(np.abs(output - wanted) <= limit * size)
    assert sum(done) >= len(ORDERS)


def test_batches_are_broadcast():
    rng = np.random.default_rng(1)
    left, right = rng.standard_normal((3, 1, 5, 2, 4)), rng.standard_normal((1, 6, 5, 4, 3))
    for one, other in [
        (left, right),
        (left[:, :, ::-1], right[..., ::-1, :]),
        (left[:, :, :1], right[:, ::2]),
    ]:
        output = np.full(np.matmul(one, other).shape, np.nan)
        assert multiply_unrolled(512, one, other, output)
        np.testing.assert_allclose(output, one @ other, rtol=1e-13, atol=1e-14)


def test_what_is_not_finite_goes_where_it_goes():
    left, right = np.ones((3, 4)), np.ones((4, 5))
    left[1, 2], right[0, 3] = np.nan, np.inf
    output = np.empty((3, 5))
    assert multiply_unrolled(512, left, right, output)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(output, left @ right)


def test_others_are_left_alone():
    left, right = np.ones((9, 9)), np.ones((9, 9))
    assert not multiply_unrolled(512, left, right, np.empty((9, 9)))
    assert not multiply_unrolled(512, np.ones((0, 3)), np.ones((3, 2)), np.empty((0, 2)))
    assert not multiply_unrolled(512, np.ones((2, 0)), np.ones((0, 2)), np.empty((2, 2)))
    assert not multiply_unrolled(512, np.ones((2, 2), int), np.ones((2, 2), int), np.empty((2, 2), int))


def test_addresses_are_known():
    product = unrolled_product("float64", (2, 2), (2, 1), (2, 2), (2, 1), 512)
    assert function_at(product.address()) == product
    assert product.address() == product.address()
    assert function_at(0) is None
