import numpy as np
import pytest
from oracle import value

import esat
from esat.errors import DtypeError, ShapeError
from esat.graph.variables import Constant
from esat.ops.arrays.shape import ShapeI, as_size, element_count, known_size, size_of, sizes_of


def test_sizes():
    x = esat.tensor("x", shape=(None, 4, None))
    array = np.zeros((2, 4, 3))
    assert [int(value(size, {x: array})) for size in sizes_of(x)] == [2, 4, 3]
    assert isinstance(size_of(x, 1), Constant)
    assert known_size(size_of(x, -2)) == 4
    assert known_size(size_of(x, 0)) is None
    assert size_of(x, -1).owner.op == ShapeI(2)
    assert size_of(x, 0).dtype == "int64"


def test_element_count():
    x = esat.tensor("x", shape=(None, 4, None))
    array = np.zeros((2, 4, 3))
    assert value(element_count(x), {x: array}) == 24
    assert value(element_count(x, (0, 1)), {x: array}) == 8
    assert known_size(element_count(x, (1,))) == 4
    assert known_size(element_count(esat.scalar())) == 1


def test_sizes_have_no_gradient():
    x = esat.vector("x")
    gradient = esat.grad((x * size_of(x, 0)).sum(), x)
    np.testing.assert_array_equal(value(gradient, {x: np.ones(3)}), [3.0, 3.0, 3.0])


def test_what_is_a_size():
    assert as_size("op", np.uint8(3)).dtype == "int64"
    with pytest.raises(DtypeError, match="a size is an integer"):
        as_size("op", 2.0)
    with pytest.raises(ShapeError, match="scalar"):
        as_size("op", esat.lvector())
