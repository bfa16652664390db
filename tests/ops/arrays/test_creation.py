import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import DtypeError, ShapeError
from esat.graph.algorithms.folding import fold


def test_alloc():
    agree(lambda x: esat.alloc(x, 2, 3), lambda x: np.tile(x, (2, 1)), np.arange(3.0))
    agree(lambda x: esat.alloc(x, 4, 3), lambda x: np.tile(x, (1, 3)), np.arange(4.0)[:, None])
    agree(esat.alloc, lambda x: x, np.float32(2))
    n = esat.lscalar("n")
    assert value(esat.alloc(1.5, n, 0), {n: 3}).shape == (3, 0)
    assert esat.alloc(esat.vector(), n, n).type.shape == (None, None)
    assert esat.alloc(esat.vector(shape=(3,)), n, n).type.shape == (None, 3)


def test_alloc_errors():
    with pytest.raises(ShapeError):
        esat.alloc(np.ones(3), 2)
    with pytest.raises(ShapeError):
        esat.alloc(np.ones((2, 3)), 3)
    with pytest.raises(ShapeError):
        esat.alloc(1.0, -1)
    with pytest.raises(DtypeError):
        esat.alloc(1.0, 2.0)
    x, n = esat.vector("x"), esat.lscalar("n")
    with pytest.raises(ShapeError, match=r"alloc(?s:.)*test_creation.py"):
        value(esat.alloc(x, 2, n), {x: np.ones(1), n: 3})
    with pytest.raises(ShapeError):
        value(esat.alloc(1.0, n), {n: -3})


def test_alloc_gradient():
    esat.verify_grad(lambda x: esat.alloc(x, 2, 3, 4), [np.ones((3, 1))])


@pytest.mark.parametrize(
    "bounds",
    [(5,), (2, 7), (7, 2, -2), (0, 1, 0.25), (3, 3), (5, 2), (1.5,), (np.float32(0), 2), (np.int8(3),)],
)
def test_arange(bounds):
    agree(lambda: esat.arange(*bounds), lambda: np.arange(*bounds))


def test_arange_dtypes_and_symbols():
    agree(lambda: esat.arange(3, dtype="float32"), lambda: np.arange(3, dtype="float32"))
    n, s = esat.iscalar("n"), esat.scalar("s")
    agree(esat.arange, np.arange, np.int32(4))
    assert value(esat.arange(n), {n: 4}).tolist() == [0, 1, 2, 3]
    assert value(esat.arange(0, n, s), {n: 1, s: 0.5}).tolist() == [0.0, 0.5]
    assert esat.arange(2, 10, 3).type.shape == (3,)
    assert esat.arange(n).type.shape == (None,)
    esat.verify_grad(lambda a, d: esat.arange(a, 2.0, d), [np.float64(0.1), np.float64(0.3)])


def test_arange_errors():
    with pytest.raises(ShapeError):
        esat.arange(0, 3, 0)
    with pytest.raises(ShapeError):
        esat.arange(esat.vector())
    with pytest.raises(DtypeError):
        esat.arange(1j)


@pytest.mark.parametrize("k", [2**80, -(2**63) - 1, 2**63 - 1])
def test_diagonals_out_of_sight(k):
    np.testing.assert_array_equal(esat.eye(2, k=k).eval(), np.zeros((2, 2)))
    np.testing.assert_array_equal(esat.tri(2, k=k).eval(), np.full((2, 2), float(k > 0)))


@pytest.mark.parametrize("arguments", [(3,), (3, 4), (3, 2, 1), (2, 3, -1), (0, 3), (2, 2, 5)])
def test_eye_and_tri(arguments):
    agree(lambda: esat.eye(*arguments), lambda: np.eye(*arguments))
    agree(lambda: esat.tri(*arguments, dtype="int8"), lambda: np.tri(*arguments, dtype="int8"))
    n = esat.lscalar("n")
    np.testing.assert_array_equal(value(esat.eye(n, k=n), {n: 2}), np.eye(2, k=2))
    with pytest.raises(ShapeError):
        esat.eye(-1)


@pytest.mark.parametrize("made", [esat.arange(2**40), esat.eye(2**20), esat.zeros(2**40)])
def test_what_is_too_large_to_keep_is_not_made_to_find_that_out(made):
    node = made.owner
    assert fold(node, node.inputs) is None
    assert fold(esat.arange(5).owner, esat.arange(5).owner.inputs)[0].data.tolist() == [0, 1, 2, 3, 4]
