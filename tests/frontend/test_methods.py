import inspect
import re

import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import GraphError, ShapeError
from esat.frontend.methods import METHODS, OTHER_METHODS
from esat.graph.methods import Methods

ARRAY = np.random.default_rng(35).standard_normal((3, 4, 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(0), lambda x: x.prod(1), lambda x: x.mean(-1), lambda x: x.var(), lambda x: x.std(0),
        lambda x: x.max(1), lambda x: x.min(), lambda x: (x > 0).any(1), lambda x: (x > 0).all(),
        lambda x: x.argmax(0),
        lambda x: x.argmin(), lambda x: x.cumsum(1), lambda x: x.cumprod(), lambda x: x[0].dot(x[1].T),
        lambda x: x.astype("float32"), lambda x: x.clip(-1, 1), lambda x: x.round(1), lambda x: x.conj(),
        lambda x: x.copy(), lambda x: x.argsort(0), lambda x: x.reshape(2, 12), lambda x: x.reshape((4, -1)),
        lambda x: x.transpose(), lambda x: x.transpose(2, 0, 1), lambda x: x.transpose((1, 0, 2)),
        lambda x: x.T,
        lambda x: x.swapaxes(0, 1), lambda x: x.flatten(), lambda x: x.ravel(), lambda x: x[:1].squeeze(0),
        lambda x: x.repeat(2, 1), lambda x: x.take([1, 0], 1), lambda x: x.diagonal(1), lambda x: x.trace(),
        lambda x: x.real, lambda x: x.imag, lambda x: x[0] @ x[1].T, lambda x: np.ones((5, 3)) @ x[..., 0],
        lambda x: abs(-x), lambda x: divmod(x, 2.0)[1], lambda x: x.mT, lambda x: +x,
        lambda x: 2 ** x, lambda x: (x > 0) & (x < 1), lambda x: x // 1, lambda x: 1 - x % 2,
    ],
)  # fmt: skip
def test_methods_are_those_of_arrays(call):
    agree(call, call, ARRAY)


def test_what_arrays_do_not_have():
    agree(
        lambda x: [x.norm(), x.fill(2), x.sort(0)],
        lambda x: [np.linalg.norm(x), np.full_like(x, 2), np.sort(x, 0)],
        ARRAY,
    )
    agree(lambda x: [x.shape, x.size], lambda x: [np.array(x.shape), np.asarray(x.size)], ARRAY)
    agree(lambda x: x.dimshuffle(1, "x", 0, 2), lambda x: x.transpose(1, 0, 2)[:, None], ARRAY)
    x = esat.matrix(shape=(None, 1))
    assert (x.ndim, x.dtype, x.broadcastable) == (2, "float64", (False, True))


def test_round():
    agree(lambda x: [round(x), round(x, 2)], lambda x: [np.round(x), np.round(x, 2)], ARRAY)


def test_sequences():
    x = esat.matrix(shape=(2, None))
    assert len(x) == 2
    first, second = x
    assert first.ndim == second.ndim == 1
    for variable in (esat.matrix(), esat.scalar()):
        with pytest.raises(ShapeError, match="len"):
            len(variable)
        with pytest.raises(ShapeError, match="iter"):
            iter(variable)
    with pytest.raises(GraphError, match="set_subtensor"):
        x[0] = 1
    with pytest.raises(GraphError, match="no elements"):
        assert 1.0 in x


def test_every_method_has_its_function():
    source = inspect.getsource(Methods)
    called = set(re.findall(r'(?:_call|function_named)\(\s*"(\w+)"', source))
    assert called - {"call_numpy", "call_ufunc"} == {*METHODS, *OTHER_METHODS}
