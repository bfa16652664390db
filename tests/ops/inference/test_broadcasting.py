import numpy as np
import pytest

import esat
from esat.errors import ShapeError
from esat.graph.types import TensorType
from esat.ops.inference.broadcasting import broadcast_types, equalize_ranks, pad_rank


def types(*shapes):
    return [TensorType("float64", shape=shape) for shape in shapes]


def test_static_shapes():
    assert broadcast_types("add", types((2, 1), (1, 3))) == (2, 3)
    assert broadcast_types("add", types((None, 1), (1, None))) == (None, None)
    assert broadcast_types("add", types((None,), (3,))) == (3,)
    assert broadcast_types("add", types((1,), (1,))) == (1,)
    assert broadcast_types("add", types((0,), (1,))) == (0,)
    assert broadcast_types("add", types((), ())) == ()


def test_errors():
    with pytest.raises(ShapeError, match="sizes 2 and 3 of axis 0"):
        broadcast_types("add", types((2,), (3,)))
    with pytest.raises(ShapeError, match="one rank"):
        broadcast_types("add", types((2,), (2, 2)))


def test_ranks_grow_in_front():
    vector, matrix = equalize_ranks([esat.vector(), esat.matrix()])
    assert vector.type.shape == (1, None)
    assert pad_rank(matrix, 2) is matrix


def test_unknown_sizes_never_broadcast():
    x, y = esat.vector("x"), esat.vector("y")
    total = x + y
    with pytest.raises(ShapeError, match=r"add(?s:.)*broadcasts only if(?s:.)*test_broadcasting.py"):
        esat.evaluate(total, {x: np.ones(1), y: np.ones(3)})
