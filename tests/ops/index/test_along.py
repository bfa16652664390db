import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import ShapeError
from esat.ops.index.along import set_along_axis

RNG = np.random.default_rng(17)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_along_an_axis(axis):
    array = RNG.standard_normal((3, 4))
    places = np.argsort(array, axis=axis)
    agree(
        lambda x, i: esat.take_along_axis(x, i, axis),
        lambda x, i: np.take_along_axis(x, i, axis),
        array,
        places,
    )
    if axis is not None:

        def put(x, i):
            copy = x.copy()
            np.put_along_axis(copy, i, -1.0, axis)
            return copy

        agree(lambda x, i: set_along_axis(x, i, -1.0, axis), put, array, places[:, :1])
        esat.verify_grad(lambda x: esat.take_along_axis(x, places, axis), [array])


def test_ranks_must_be_equal():
    with pytest.raises(ShapeError, match="rank"):
        esat.take_along_axis(esat.matrix(), np.array([0]), 0)
