import numpy as np
import pytest

import esat
from esat.errors import AxisError, ShapeError
from esat.ops.arrays.dimshuffle import DimShuffle, dimshuffle

ARRAY = np.arange(6.0).reshape(2, 1, 3)


@pytest.mark.parametrize(
    ("order", "shape"),
    [
        ((2, 0), (3, 2)),
        (("x", 2, "x", 0, 1), (1, 3, 1, 2, 1)),
        ((0, 1, 2, "x"), (2, 1, 3, 1)),
        ((-1, 0), (3, 2)),
    ],
)
def test_permute_insert_drop(order, shape):
    x = esat.tensor(shape=(None, 1, None))
    result = esat.evaluate(dimshuffle(x, order), {x: ARRAY})
    assert result.shape == shape
    assert sorted(result.ravel()) == list(range(6))
    assert np.shares_memory(dimshuffle(x, order).owner.op.perform([ARRAY])[0], ARRAY)


def test_identity_is_the_operand():
    x = esat.matrix()
    assert dimshuffle(x, (0, 1)) is x
    assert DimShuffle((1, 0), 2) == DimShuffle((1, 0), 2)
    assert DimShuffle((1, 0), 2).dropped == ()


def test_errors():
    x = esat.matrix("x", shape=(2, 3))
    with pytest.raises(AxisError, match="no axis"):
        dimshuffle(x, (0, 2))
    with pytest.raises(AxisError, match="twice"):
        dimshuffle(x, (0, 0))
    with pytest.raises(AxisError, match="at most"):
        dimshuffle(x, (0, 1, *["x"] * 7))
    with pytest.raises(ShapeError, match="cannot be dropped"):
        dimshuffle(x, (0,))
