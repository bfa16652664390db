import numpy as np
import pytest

import esat
from esat.errors import DtypeError, ShapeError
from esat.graph.types import DTYPES, TensorType, normalize_dtype


def test_flags_and_sizes_say_the_same():
    assert TensorType("float64", (False, True)) == TensorType("float64", shape=(None, 1))
    assert TensorType("float64", shape=(1, 3)).broadcastable == (True, False)
    assert TensorType(np.float32, shape=(2,)).dtype == "float32"
    assert TensorType("int8").ndim == 0
    assert hash(TensorType("int8", shape=[2])) == hash(TensorType("int8", shape=(2,)))


@pytest.mark.parametrize("dtype", ["object", "U3", "datetime64[s]", "nonsense", "longdouble", None.__class__])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(DtypeError):
        TensorType(dtype)


def test_contradictions_are_refused():
    with pytest.raises(ShapeError, match="contradicts"):
        TensorType("float64", (True,), (3,))
    with pytest.raises(ShapeError, match="flags"):
        TensorType("float64", (True,), (1, 1))
    with pytest.raises(ShapeError, match="negative"):
        TensorType("float64", shape=(-1,))
    with pytest.raises(ShapeError, match="axes"):
        TensorType("float64", shape=(1,) * 9)
    with pytest.raises(ShapeError, match="integer"):
        TensorType("float64", shape=(2.5,))


def test_filter_admits_what_loses_nothing():
    type = TensorType("float64", shape=(None,))
    assert type.filter([1, 2]).dtype == np.float64
    assert type.filter(np.ones(2, "float32")).dtype == np.float64
    array = np.ones(2)
    assert type.filter(array) is array
    assert TensorType("int8").filter(5).dtype == np.int8
    assert TensorType("float32").filter(0.1).dtype == np.float32
    assert TensorType("float64", shape=(0,)).filter([]).shape == (0,)


@pytest.mark.parametrize(
    ("type", "value", "error"),
    [
        (TensorType("int8"), 300, DtypeError),
        (TensorType("int64"), 1.5, DtypeError),
        (TensorType("float32"), np.float64(1), DtypeError),
        (TensorType("float64"), 1j, DtypeError),
        (TensorType("float64", shape=(3,)), np.ones(2), ShapeError),
        (TensorType("float64", shape=(None,)), np.ones((2, 2)), ShapeError),
        (TensorType("float64"), "text", DtypeError),
    ],
)
def test_filter_refuses_the_rest(type, value, error):
    with pytest.raises(error):
        type.filter(value)


def test_admits():
    unknown, known = TensorType("float64", shape=(None, 2)), TensorType("float64", shape=(3, 2))
    assert unknown.admits(known)
    assert not known.admits(unknown)
    assert not known.admits(known.with_dtype("float32"))
    assert known.with_dtype("float64") is known


def test_names():
    assert str(TensorType("float64", shape=(None, 1))) == "matrix(float64, shape=(?, 1))"
    assert str(TensorType("int8")) == "scalar(int8)"
    assert [normalize_dtype(name) for name in DTYPES] == list(DTYPES)
    assert esat.TensorType("bool")("b").name == "b"
