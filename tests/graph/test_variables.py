import numpy as np
import pytest

import esat
from esat.errors import DtypeError, GraphError, ShapeError
from esat.graph.variables import Apply, Constant, SharedVariable, Variable


def test_apply_owns_its_outputs():
    x = esat.scalar("x")
    out = Variable(x.type)
    node = Apply(esat.exp, [x], [out])
    assert out.owner is node
    assert out.index == 0
    assert node.where[0].endswith("test_variables.py")
    with pytest.raises(GraphError, match="already belongs"):
        Apply(esat.exp, [x], [out])
    with pytest.raises(GraphError, match="not a Variable"):
        Apply(esat.exp, [1.0], [Variable(x.type)])


def test_the_users_line_is_the_one_outside_esat():
    assert esat.mean(esat.vector()).owner.where[0] == __file__


def test_constants_cannot_change():
    array = np.ones(2)
    c = esat.constant(array)
    array[0] = 5
    assert c.data.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        c.data[0] = 2
    with pytest.raises(AttributeError):
        c.data = array
    assert c.clone() is c
    assert c.type.shape == (2,)


def test_constants_from_values():
    assert esat.constant([1, 2]).dtype == "int64"
    assert esat.constant(1.5, "float32").dtype == "float32"
    assert str(esat.constant(2.5)) == "2.5"
    assert str(esat.constant(2.5, name="half")) == "half"
    for bad in ("text", object(), None, [esat.scalar()], [[1], [1, 2]]):
        with pytest.raises(DtypeError):
            esat.constant(bad)


def test_equality_is_identity():
    x = esat.scalar("x")
    assert x == x
    assert x != esat.scalar("x")
    assert len({x, x, esat.scalar("x")}) == 2
    with pytest.raises(TypeError, match="truth value"):
        bool(x > 0)


def test_shared_variables_own_their_value():
    array = np.ones(2)
    w = SharedVariable(esat.TensorType("float64", shape=(None,)), array, "w")
    array[0] = 9
    assert w.get_value().tolist() == [1.0, 1.0]
    w.get_value()[0] = 9
    assert w.get_value().tolist() == [1.0, 1.0]
    assert w.get_value(borrow=True) is w.get_value(borrow=True)
    w.set_value([1, 2, 3])
    assert w.get_value().dtype == np.float64
    with pytest.raises(ShapeError):
        w.set_value(np.ones((2, 2)))
    with pytest.raises(DtypeError):
        w.set_value(np.ones(2, dtype="complex128"))
    assert w.clone() is w


def test_numpy_makes_no_arrays_of_variables():
    x = esat.vector("x")
    for result in (np.ones(2) + x, np.float64(2) * x, np.ones(2) < x, 2 - x, np.ones((2, 2)) @ x, np.exp(x)):
        assert isinstance(result, Variable)
    with pytest.raises(DtypeError, match="has no value"):
        np.asarray(x)


def test_text():
    x = esat.vector("x")
    assert str(x) == "x"
    assert str(x + 1) == "add.0"
    assert str(esat.vector()) == "<vector(float64)>"
    assert "exp" in repr(esat.exp(x).owner)
    assert isinstance(esat.constant(3), Constant)
