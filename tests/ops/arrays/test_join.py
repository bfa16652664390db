import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import AxisError, ShapeError

RNG = np.random.default_rng(4)
A, B = RNG.standard_normal((2, 3)), RNG.standard_normal((2, 1))


def test_join():
    agree(lambda a, b: esat.join([a, b, a], 1), lambda a, b: np.concatenate([a, b, a], 1), A, B)
    agree(lambda a, b: esat.join([a, b], -1), lambda a, b: np.concatenate([a, b], -1), A, B.astype("float32"))
    agree(lambda a: esat.join([a[:0], a]), lambda a: a, A)
    agree(lambda a: esat.join([a, [[1, 2, 3]]]), lambda a: np.concatenate([a, [[1, 2, 3]]]), A.astype("int8"))


def test_static_shapes():
    x, y = esat.matrix(shape=(2, None)), esat.matrix(shape=(None, 3))
    assert esat.join([x, y], 0).type.shape == (None, 3)
    assert esat.join([x, x], 0).type.shape == (4, None)


def test_join_errors():
    for tensors, axis in (([], 0), ([A, A[0]], 0), ([A, B], 0)):
        with pytest.raises(ShapeError):
            esat.join(tensors, axis)
    with pytest.raises(AxisError):
        esat.join([A, A], 2)
    x, y = esat.matrix("x"), esat.matrix("y")
    with pytest.raises(ShapeError, match=r"join(?s:.)*test_join.py"):
        value(esat.join([x, y], 0), {x: A, y: B})


def test_split():
    for cut in (3, 1, [1], [0, 2], [2, 1], [5]):
        agree(lambda a, cut=cut: esat.split(a, cut, 1), lambda a, cut=cut: np.split(a, cut, 1), A)
    n = esat.lscalar("n")
    x = esat.matrix("x")
    parts = value(esat.split(x, [n], 1), {x: A, n: 2})
    np.testing.assert_array_equal(parts[0], A[:, :2])
    assert esat.split(esat.matrix(shape=(6, 2)), 3)[0].type.shape == (2, 2)
    assert np.shares_memory(esat.split(x, 2)[0].owner.op.perform([A])[1], A)


def test_split_errors():
    x = esat.matrix("x")
    for parts in (0, -1):
        with pytest.raises(ShapeError):
            esat.split(x, parts)
    with pytest.raises(ShapeError, match="equal parts"):
        esat.split(esat.matrix(shape=(3, 3)), 2)
    with pytest.raises(ShapeError, match=r"equal parts(?s:.)*test_join.py"):
        value(esat.split(x, 2, 1)[0], {x: A})


def test_gradients():
    esat.verify_grad(lambda a, b: esat.join([a, b, a], 1), [A, B])
    esat.verify_grad(lambda a: esat.split(a, 3, 1)[2], [A])
    esat.verify_grad(lambda a: esat.split(a, 3, 1)[2] * esat.split(a, 3, 1)[0], [A])
    esat.verify_grad(lambda a: esat.split(a, [1, 2], 1)[1], [A])
