import numpy as np
import pytest
from oracle import agree, value

import esat
from esat.errors import DtypeError, ShapeError

ARRAY = np.random.default_rng(32).standard_normal((2, 3, 4))


def both(function, *arrays):
    agree(lambda *x: function(esat, *x), lambda *x: function(np, *x), *arrays)


def test_filled():
    both(
        lambda m: [
            m.zeros(3),
            m.ones((2, 3), "int8"),
            m.full((2, 2), 1.5),
            m.full(2, 7, "float32"),
            m.zeros(()),
        ]
    )
    both(
        lambda m, x: [m.full((2, 3, 4), x), m.full_like(x, 2), m.zeros_like(x, "int8"), m.ones_like(x)], ARRAY
    )
    both(lambda m, x: m.full_like(x, 2.7), np.arange(3))
    x, n = esat.matrix("x"), esat.lscalar("n")
    assert value(esat.zeros((n, x.shape[1], 2)), {x: ARRAY[0], n: 5}).shape == (5, 4, 2)
    assert value(esat.ones(x.shape), {x: ARRAY[0]}).shape == (3, 4)


def test_triangles():
    for k in (-1, 0, 2):
        both(lambda m, x, k=k: [m.tril(x, k), m.triu(x, k)], ARRAY)
    both(lambda m, x: m.tril(x), np.array([[np.nan, np.inf], [1, np.nan]]))
    both(lambda m, x: m.triu(x), ARRAY[0] > 0)
    both(lambda m, x: [m.tril(x, 1), m.triu(x)], ARRAY[0, 0])
    with pytest.raises(ShapeError, match="one axis"):
        esat.tril(esat.scalar())
    esat.verify_grad(lambda x: esat.triu(x, 1), [ARRAY])


def test_linspace():
    both(
        lambda m: [
            m.linspace(0, 1, 7),
            m.linspace(0, 3, 4, endpoint=False),
            m.linspace(2, 3, 1),
            m.linspace(1, 2, 0),
        ]
    )
    both(lambda m, a: [m.linspace(a, 2.7, 11), m.linspace(0, 10, 5, dtype="int32")], np.float64(0.1))
    both(lambda m, x, y: [m.linspace(x, y, 3), m.linspace(1, y, 2, False)], ARRAY[0], ARRAY[0, 0])
    both(lambda m, a: [m.linspace(a, 2, 3), m.linspace(a, a, 2, dtype="complex64")], np.complex128(1j))
    with pytest.raises(ShapeError, match="negative"):
        esat.linspace(0, 1, -1)
    with pytest.raises(DtypeError, match=r"num=2\.5"):
        esat.linspace(0, 1, 2.5)


def test_identity_is_a_matrix():
    both(lambda m: [m.identity(3), m.identity(2, "int8"), m.empty((2, 0), "int8")])
    assert esat.evaluate(esat.empty_like(np.ones(3, "int8"))).tolist() == [0, 0, 0]


def test_meshgrid():
    x, y = ARRAY[0, 0], ARRAY[0, :, 0]
    for indexing in ("xy", "ij"):
        both(lambda m, x, y, i=indexing: list(m.meshgrid(x, y, x, indexing=i)), x, y)
    both(lambda m, x: list(m.meshgrid(x)), x)
    with pytest.raises(ShapeError):
        esat.meshgrid(ARRAY[0])
