import numpy as np
import pytest
from oracle import value

import esat
from esat.errors import ShapeError
from esat.graph.variables import Constant
from esat.ops.inference.vectors import as_sizes, make_vector, shape_vector


def test_vectors_of_scalars():
    x = esat.scalar("x")
    vector = make_vector([x, 1, 2.5])
    np.testing.assert_array_equal(value(vector, {x: 7.0}), [7.0, 1.0, 2.5])
    assert vector.type == esat.TensorType("float64", shape=(3,))
    assert isinstance(make_vector([1, 2]), Constant)
    assert make_vector([1, 2]).dtype == "int64"
    assert make_vector([], "int64").type.shape == (0,)
    with pytest.raises(ShapeError, match="scalars"):
        make_vector([esat.vector(), x])
    esat.verify_grad(lambda a, b: make_vector([a, b, a * b]), [np.float64(2.0), np.float64(3.0)])


def test_shapes_as_vectors():
    x = esat.matrix("x")
    assert value(x.shape, {x: np.zeros((2, 3))}).tolist() == [2, 3]
    assert isinstance(shape_vector(esat.matrix(shape=(2, 3))), Constant)
    assert x.shape[0].owner.op.axis == 0
    rows, columns = x.shape
    assert value([rows, columns], {x: np.zeros((2, 3))}) == [2, 3]
    assert value(x.shape[::-1], {x: np.zeros((2, 3))}).tolist() == [3, 2]
    assert value(esat.prod(x.shape), {x: np.zeros((2, 3))}) == 6


def test_shape_arguments():
    n, v = esat.lscalar(), esat.lvector()
    assert [size.data for size in as_sizes("op", (2, np.int32(3)))] == [2, 3]
    assert [size.data for size in as_sizes("op", 4)] == [4]
    assert [size.data for size in as_sizes("op", np.array([4, 5]))] == [4, 5]
    assert [size.data for size in as_sizes("op", esat.constant([4, 5]))] == [4, 5]
    assert as_sizes("op", n) == (n,)
    assert len(as_sizes("op", v, 2)) == 2
    with pytest.raises(ShapeError, match="ndim="):
        as_sizes("op", v)
    with pytest.raises(ShapeError, match="vector"):
        as_sizes("op", esat.matrix(dtype="int64"))
