import numpy as np
import pytest
import scipy.special
from oracle import agree, value

import esat
from esat.errors import AxisError

RNG = np.random.default_rng(5)
FUNCTIONS = {"softmax": scipy.special.softmax, "log_softmax": scipy.special.log_softmax}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_scipy(name):
    array = RNG.standard_normal((3, 4, 2)) * 300
    for axis in (None, 0, -1, (0, 2)):
        agree(
            lambda x, axis=axis: getattr(esat, name)(x, axis),
            lambda x, axis=axis: FUNCTIONS[name](x, axis),
            array,
        )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dtypes(name):
    for dtype in ("float16", "float32", "float64"):
        assert value(getattr(esat, name)(np.arange(3).astype(dtype))).dtype == dtype
    assert value(getattr(esat, name)(np.arange(3))).dtype == np.float64


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_nan_and_infinity(name):
    assert value(getattr(esat, name)(np.zeros((0, 3)), 1)).shape == (0, 3)
    assert value(getattr(esat, name)(np.zeros((0, 3)), 0)).shape == (0, 3)
    assert np.isnan(value(getattr(esat, name)(np.array([1.0, np.nan])))).all()
    one_possible = value(getattr(esat, name)(np.array([0.0, -np.inf])))
    np.testing.assert_array_equal(one_possible, [1.0, 0.0] if name == "softmax" else [0.0, -np.inf])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_expansion_is_the_op(name):
    x = esat.matrix("x")
    y = getattr(esat, name)(x, 1)
    array = RNG.standard_normal((3, 5)) * 100
    expanded = y.owner.op.expand(x)
    assert all(node.op != y.owner.op for node in esat.FunctionGraph([x], [expanded]).toposort())
    np.testing.assert_allclose(value(expanded, {x: array}), value(y, {x: array}), rtol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    for axis in (None, 0, 1):
        esat.verify_grad(lambda x, axis=axis: getattr(esat, name)(x, axis), [RNG.standard_normal((3, 4))])


def test_axis_errors():
    with pytest.raises(AxisError):
        esat.softmax(esat.vector(), 1)
