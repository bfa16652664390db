import numpy as np
import pytest

import esat
from esat.errors import DtypeError, ShapeError


def test_by_rank():
    for ndim, function in enumerate((esat.scalar, esat.vector, esat.matrix, esat.tensor3, esat.tensor4)):
        variable = function("v", dtype="int8")
        assert (variable.ndim, variable.dtype, variable.name) == (ndim, "int8", "v")
    assert esat.matrix(shape=(2, None)).type.shape == (2, None)
    assert esat.row().broadcastable == (True, False)
    assert esat.col().broadcastable == (False, True)


def test_by_shape():
    assert esat.tensor("t", dtype="float32", shape=(None, 64)).type == esat.TensorType(
        "float32", shape=(None, 64)
    )
    assert esat.tensor(ndim=3).type.shape == (None,) * 3
    assert esat.tensor(broadcastable=(True, False)).type.shape == (1, None)
    assert esat.tensor("s", shape=()).ndim == 0


def test_by_letter():
    assert esat.dmatrix("x").type == esat.TensorType("float64", (False, False))
    assert esat.lscalar().dtype == "int64"
    assert esat.fvector("f").name == "f"
    assert esat.bmatrix().dtype == "int8"
    assert esat.wtensor3().dtype == "int16"
    assert esat.icol().broadcastable == (False, True)
    assert esat.ztensor4().dtype == "complex128"


def test_errors():
    with pytest.raises(ShapeError, match="give one of"):
        esat.tensor("t")
    with pytest.raises(ShapeError, match="give one of"):
        esat.tensor(shape=(1,), ndim=1)
    with pytest.raises(ShapeError, match="not 2"):
        esat.matrix(shape=(1,))
    with pytest.raises(DtypeError):
        esat.vector(dtype="object")
    with pytest.raises(DtypeError, match="name"):
        esat.tensor(np.ones(2), shape=(2,))


def test_as_tensor():
    x = esat.scalar("x")
    assert esat.as_tensor(x) is x
    assert esat.as_tensor([1, 2]).data.tolist() == [1, 2]
    assert esat.as_tensor(x, "float32").dtype == "float32"
    assert esat.evaluate(esat.as_tensor([[x, 1.0], [2.0, x]]), {x: 5.0}).tolist() == [[5, 1], [2, 5]]


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64", "complex128"])
def test_a_dtype_is_no_name(dtype):
    """PyTensor's constructors take the dtype first."""
    for call in (
        lambda: esat.tensor(dtype, shape=(3,)), lambda: esat.matrix(dtype), lambda: esat.scalar(dtype),
    ):  # fmt: skip
        with pytest.raises(DtypeError, match=rf"tensor\('{dtype}'\): the name comes first.*dtype='{dtype}'"):
            call()
