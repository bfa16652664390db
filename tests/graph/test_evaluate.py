import numpy as np
import pytest

import esat
from esat.errors import GraphError, InputError, ShapeError


def test_values():
    x, w = esat.vector("x"), esat.shared(np.ones(2), "w")
    y = x * 2 + w
    np.testing.assert_array_equal(esat.evaluate(y, {x: [1.0, 2.0]}), [3.0, 5.0])
    assert isinstance(esat.evaluate([y, x], {x: [1.0, 2.0]}), list)
    np.testing.assert_array_equal(y.eval({x: [1.0, 2.0]}), [3.0, 5.0])
    np.testing.assert_array_equal(esat.evaluate(y + 1, {y: [0.0, 0.0]}), [1.0, 1.0])
    assert esat.evaluate(esat.constant(2) + 3) == 5


def test_errors():
    x = esat.vector("x")
    with pytest.raises(GraphError, match="no value was given for x"):
        esat.evaluate(x + 1)
    with pytest.raises(InputError, match="given for x"):
        esat.evaluate(x + 1, {x: np.ones((2, 2))})
    with pytest.raises(InputError):
        esat.evaluate(x + 1, {x: np.ones(2, "complex64")})


def test_size_errors_name_op_and_line():
    x, y = esat.vector("x"), esat.vector("y")
    z = esat.exp(x) * y
    with pytest.raises(ShapeError) as caught:
        esat.evaluate(z, {x: np.ones(2), y: np.ones(3)})
    assert "mul(shape (2,), shape (3,))" in str(caught.value)
    assert str(caught.value).count(__file__) == 1
