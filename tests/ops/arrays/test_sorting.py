import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError, ParameterError
from esat.graph.types import DTYPES

RNG = np.random.default_rng(12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_order_is_that_of_numpy(dtype):
    array = (RNG.standard_normal((3, 5)) * 3).astype(dtype)
    for axis in (None, 0, -1):
        agree(lambda x, a=axis: esat.sort(x, a), lambda x, a=axis: np.sort(x, a), array)
        agree(lambda x, a=axis: esat.argsort(x, a), lambda x, a=axis: np.argsort(x, a, kind="stable"), array)


def test_nan_comes_last():
    agree(esat.sort, np.sort, np.array([np.nan, np.inf, 1.0, -np.inf]))


def test_gradients():
    point = RNG.standard_normal((3, 5))
    for axis in (None, 0, 1):
        esat.verify_grad(lambda x, axis=axis: esat.sort(x, axis), [point])
    x = esat.vector("x")
    assert esat.evaluate(esat.grad((esat.argsort(x) * 1.0).sum(), x), {x: np.ones(2)}).tolist() == [0, 0]


def test_every_kind_is_stable():
    x = esat.vector(dtype="int8")
    assert esat.argsort(x, kind="quicksort").owner.op == esat.argsort(x, kind="stable").owner.op
    with pytest.raises(ParameterError, match="kind='bubble'"):
        esat.sort(x, kind="bubble")


def test_errors():
    with pytest.raises(AxisError):
        esat.sort(esat.vector(), 1)
