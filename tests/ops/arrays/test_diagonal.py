import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError, ShapeError

ARRAY = np.random.default_rng(6).standard_normal((2, 3, 4))


@pytest.mark.parametrize("offset", [-4, -1, 0, 2, 5])
def test_values_are_those_of_numpy(offset):
    for axes in ((0, 1), (2, 0), (-1, 1)):
        agree(
            lambda x, axes=axes: esat.diagonal(x, offset, *axes),
            lambda x, axes=axes: np.diagonal(x, offset, *axes),
            ARRAY,
        )
        esat.verify_grad(lambda x, axes=axes: esat.diagonal(x, offset, *axes), [ARRAY])
    for array in (ARRAY[0], ARRAY[0, 0]):
        agree(lambda x: esat.diag(x, offset), lambda x: np.diag(x, offset), array)
        esat.verify_grad(lambda x: esat.diag(x, offset), [array])
    agree(lambda x: esat.trace(x, offset), lambda x: np.trace(x, offset), ARRAY)


def test_errors():
    with pytest.raises(ShapeError):
        esat.diagonal(esat.vector())
    with pytest.raises(ShapeError):
        esat.diag(esat.scalar())
    with pytest.raises(AxisError):
        esat.diagonal(esat.matrix(), 0, 1, 1)


def test_reading_is_a_view():
    assert np.shares_memory(esat.diag(esat.matrix()).owner.op.perform([ARRAY[0]])[0], ARRAY)
