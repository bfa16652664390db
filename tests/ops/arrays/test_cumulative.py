import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError
from esat.graph.types import DTYPES

FUNCTIONS = {"cumsum": np.cumsum, "cumprod": np.cumprod}
POINT = np.random.default_rng(8).standard_normal((3, 4))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_numpy(name, dtype):
    array = (POINT * 4).astype(dtype)
    for axis in (None, 0, -1):
        agree(
            lambda x, axis=axis: getattr(esat, name)(x, axis),
            lambda x, axis=axis: FUNCTIONS[name](x, axis),
            array,
        )
    agree(lambda x: getattr(esat, name)(x, 0), lambda x: FUNCTIONS[name](x, 0), array[:0])


def test_dtype_argument_and_errors():
    agree(lambda x: x.cumsum(dtype="int8"), lambda x: x.cumsum(dtype="int8"), np.array([100, 100]))
    with pytest.raises(AxisError):
        esat.cumsum(esat.vector(), 1)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, axis):
    esat.verify_grad(lambda x: getattr(esat, name)(x, axis), [POINT])


def test_gradient_of_products_with_zeros():
    point = np.array([[1.0, 0.0, 2.0, 3.0], [0.0, 2.0, 0.0, 1.0], [2.0, 3.0, 4.0, 0.0]])
    for axis in (0, 1, None):
        esat.verify_grad(lambda x, axis=axis: esat.cumprod(x, axis), [point])
