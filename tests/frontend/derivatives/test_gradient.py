import numpy as np
import pytest

import esat
from esat.errors import GradientError


def value(variable, values):
    return esat.evaluate(variable, values)


def test_one_variable_or_several():
    x, y = esat.scalar("x"), esat.scalar("y")
    cost = x * x * y + y
    values = {x: 3.0, y: 2.0}
    assert value(esat.grad(cost, x), values) == 12
    assert [float(g) for g in value(esat.grad(cost, [x, y]), values)] == [12.0, 10.0]
    assert esat.grad(cost, []) == []


def test_uses_accumulate():
    x = esat.vector("x")
    cost = (x * x + esat.exp(x) * x).sum() + x[0]
    point = np.array([0.5, -1.0])
    expected = 2 * point + np.exp(point) * (1 + point) + [1, 0]
    np.testing.assert_allclose(value(esat.grad(cost, x), {x: point}), expected)


def test_by_inner_variables():
    x = esat.scalar("x")
    inner = esat.exp(x)
    outer = esat.sin(inner)
    gradients = value(esat.grad(outer * inner, [outer, inner, x]), {x: 0.0})
    expected = [1.0, np.sin(1) + np.cos(1), np.sin(1) + np.cos(1)]
    np.testing.assert_allclose(gradients, expected)
    assert value(esat.grad(inner, inner), {x: 0.0}) == 1


def test_types_of_gradients():
    for dtype in ("float16", "float32", "float64"):
        x = esat.matrix("x", dtype=dtype, shape=(None, 1))
        gradient = esat.grad((x + esat.vector(dtype=dtype)).sum(), x)
        assert gradient.dtype == dtype
        assert gradient.type.shape == (None, 1)


def test_casts_on_the_way():
    x = esat.vector("x", dtype="float32")
    cost = (x.astype("float64") ** 2).sum() + x.astype("int64").sum() * 1.0
    gradient = value(esat.grad(cost, x), {x: np.ones(2, "float32")})
    assert gradient.dtype == np.float32
    np.testing.assert_array_equal(gradient, [2, 2])


def test_second_derivatives():
    x = esat.scalar("x")
    second = esat.grad(esat.grad(x**4, x), x)
    assert value(second, {x: 2.0}) == 48


def test_shared_variables_and_constants():
    w = esat.shared(2.0, "w")
    c = esat.constant(3.0)
    assert [float(g) for g in esat.evaluate(esat.grad(w * c * w, [w, c]))] == [12.0, 4.0]


def test_vector_jacobian_products():
    x, v = esat.vector("x"), esat.vector("v")
    matrix = np.arange(6.0).reshape(2, 3)
    product = esat.vjp([esat.constant(matrix) @ x, x.sum()], x, [v, 1.0])
    np.testing.assert_allclose(
        value(product, {x: np.ones(3), v: np.array([1.0, 2.0])}), [1.0, 2.0] @ matrix + 1
    )
    assert isinstance(esat.vjp([x], [x], [v]), list)


def test_a_zero_derivative_is_not_a_disconnection():
    x = esat.vector("x")
    for cost in (esat.floor(x).sum(), esat.argmax(x) * 1.0, x.shape[0] * 1.0):
        assert value(esat.grad(cost, x), {x: np.array([1.5, 2.5])}).tolist() == [0.0, 0.0]


def test_ops_off_the_way_need_no_gradient():
    x, y = esat.scalar("x"), esat.scalar("y")
    opaque = esat.elementwise("opaque_for_this_test", np.abs)
    assert value(esat.grad(opaque(y) * x, x), {x: 1.0, y: -2.0}) == 2
    with pytest.raises(GradientError, match="no gradient"):
        esat.grad(opaque(x) * y, x)


def test_errors():
    x, y, i = esat.vector("x"), esat.scalar("y"), esat.lscalar("i")
    with pytest.raises(GradientError, match="must be a scalar"):
        esat.grad(x, x)
    with pytest.raises(GradientError, match="dtype int64"):
        esat.grad(i, x)
    with pytest.raises(GradientError, match="dtype int64"):
        esat.grad(y * i, i)
    with pytest.raises(GradientError, match=r"does not depend on x(?s:.)*disconnected"):
        esat.grad(y, x)
    with pytest.raises(GradientError, match="not a Variable"):
        esat.grad(1.0, x)
    with pytest.raises(GradientError, match="by Variables"):
        esat.grad(y, [1.0])
    with pytest.raises(GradientError, match="1 cotangents for 2"):
        esat.vjp([x, x], x, [x])
    with pytest.raises(GradientError, match="vjp"):
        esat.vjp([x], x, [y])
    assert value(esat.grad(y, x, disconnected="zero"), {x: np.ones(2), y: 1.0}).tolist() == [0, 0]
