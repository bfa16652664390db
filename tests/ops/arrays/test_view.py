import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import AxisError, ShapeError

ARRAY = np.random.default_rng(2).standard_normal((2, 3, 4))


@pytest.mark.parametrize("shape", [(6, 4), (-1,), (4, -1, 2), 24, (2, 1, 3, 4), (1, 24, 1), (2, -1, 2, 2)])
def test_reshape(shape):
    agree(lambda x: x.reshape(shape), lambda x: x.reshape(shape), ARRAY)
    agree(lambda x: x[:, ::2].T.reshape(-1, 2), lambda x: x[:, ::2].T.reshape(-1, 2), ARRAY)
    esat.verify_grad(lambda x: x.reshape(shape), [ARRAY])


def test_reshape_scalars_and_nothing():
    agree(
        lambda x: [x.reshape(()), x.reshape(1, 1)], lambda x: [x.reshape(()), x.reshape(1, 1)], np.ones((1,))
    )
    agree(lambda x: x.reshape(3, 0, 2), lambda x: x.reshape(3, 0, 2), np.ones((0, 5)))


def test_symbolic_shapes():
    x, n, v = esat.matrix("x"), esat.lscalar("n"), esat.lvector("v")
    array = np.arange(12.0).reshape(3, 4)
    assert value(x.reshape((n, -1)), {x: array, n: 6}).shape == (6, 2)
    assert value(x.reshape(x.shape[::-1]), {x: array}).shape == (4, 3)
    assert value(x.reshape(v, ndim=3), {x: array, v: np.array([2, 3, 2])}).shape == (2, 3, 2)
    assert value(esat.zeros((2, 6)).reshape(x.shape), {x: array}).shape == (3, 4)
    assert x.reshape((n, 1)).type.shape == (None, 1)
    with pytest.raises(ShapeError, match="ndim"):
        x.reshape(v)


def test_static_shapes():
    x = esat.tensor(shape=(2, 3, 4))
    assert x.reshape(6, -1).type.shape == (6, 4)
    assert x.reshape(esat.lscalar(), 4).type.shape == (6, 4)
    assert esat.matrix().reshape(-1).type.shape == (None,)
    assert x.reshape(2, 3, 4) is x
    assert x.flatten(2).type.shape == (2, 12)


def test_reshape_errors():
    x = esat.tensor(shape=(2, 3, 4))
    for shape in ((5, 5), (-1, 5), (-1, -1), (-2, 12), (0, -1)):
        with pytest.raises(ShapeError):
            x.reshape(shape)
    y = esat.vector("y")
    with pytest.raises(ShapeError, match=r"reshape(?s:.)*test_view.py"):
        value(y.reshape(2, 2), {y: np.zeros(3)})


def test_reshape_is_a_view():
    node = esat.matrix().reshape(-1).owner
    array = np.zeros((2, 3))
    assert np.shares_memory(node.op.perform([array, np.array([-1])])[0], array)
    assert node.op.view_map == {0: (0,)}


def test_moving_axes():
    agree(
        lambda x: [
            esat.transpose(x), esat.transpose(x, (1, 2, 0)), x.T, x.mT, esat.swapaxes(x, 0, -1),
            esat.moveaxis(x, 0, 2), esat.moveaxis(x, (0, 1), (-1, 0)), esat.expand_dims(x, (0, -1)),
            esat.flatten(x), esat.flatten(x, 2), esat.ravel(x),
        ],
        lambda x: [
            np.transpose(x), np.transpose(x, (1, 2, 0)), x.T, x.swapaxes(1, 2), np.swapaxes(x, 0, -1),
            np.moveaxis(x, 0, 2), np.moveaxis(x, (0, 1), (-1, 0)), np.expand_dims(x, (0, -1)),
            x.flatten(), x.reshape(2, 12), np.ravel(x),
        ],
        ARRAY,
    )  # fmt: skip
    agree(lambda x: [x.squeeze(), x.squeeze(1)], lambda x: [x.squeeze(), x.squeeze(1)], np.ones((2, 1, 3, 1)))


def test_axis_errors():
    x = esat.matrix("x")
    for call in (
        lambda: esat.transpose(x, (0,)),
        lambda: esat.transpose(x, (0, 0)),
        lambda: esat.swapaxes(x, 0, 2),
        lambda: esat.moveaxis(x, (0, 1), 0),
        lambda: esat.expand_dims(x, 4),
        lambda: esat.squeeze(x, 5),
    ):
        with pytest.raises(AxisError):
            call()
    with pytest.raises(ShapeError, match="cannot be dropped"):
        esat.squeeze(esat.matrix(shape=(2, 3)), 0)
    with pytest.raises(ShapeError, match=r"cannot be dropped(?s:.)*test_view.py"):
        value(esat.squeeze(x, 0), {x: np.zeros((2, 3))})
    with pytest.raises(ShapeError):
        esat.flatten(x, 3)


def test_gradients():
    for function in (
        lambda x: x.T, lambda x: x.flatten(2), lambda x: esat.moveaxis(x, 0, 1),
        lambda x: x.dimshuffle(2, "x", 0, 1),
    ):  # fmt: skip
        esat.verify_grad(function, [ARRAY])
