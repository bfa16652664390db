"""The choice of dtypes, against NumPy's own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from esat.errors import DtypeError
from esat.graph.types import DTYPES, TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.inference.promotion import FLOATS, common_dtype, given_dtypes, is_weak, operand_dtypes, wrap


def of(dtype):
    return Variable(TensorType(dtype, shape=(None,)))


def test_python_numbers_are_weak():
    assert [is_weak(value) for value in (1, 2.0, 1j)] == [True] * 3
    assert [is_weak(value) for value in (True, np.float64(1), np.int8(1), np.ones(1), [1])] == [False] * 5


def test_weak_numbers_among_themselves_count_as_arrays():
    assert given_dtypes([1, 2.5]) == (np.dtype("int64"), np.dtype("float64"))
    assert given_dtypes([1, of("int8")]) == (int, np.dtype("int8"))
    assert common_dtype("f", [1, 2.5]) == "float64"


@pytest.mark.parametrize("left", DTYPES)
def test_common_dtype(left):
    for right in DTYPES:
        assert common_dtype("f", [of(left), np.ones(2, right)]) == np.result_type(left, right)
    for number in (1, 2.5, 1j):
        assert common_dtype("f", [of(left), number]) == (np.ones(1, left) + number).dtype
    assert common_dtype("f", [of(left), True]) == np.result_type(left, bool)


def test_ufuncs_decide_by_their_result():
    assert operand_dtypes("div", np.divide, [of("int8"), of("int8")]) == ["float64", "float64"]
    assert operand_dtypes("exp", np.exp, [of("int8")]) == ["float16"]
    assert operand_dtypes("abs", np.absolute, [of("complex64")], by_result=False) == ["complex64"]
    assert operand_dtypes("lt", np.less, [of("int8"), 2.5], by_result=False) == ["float64", "float64"]
    with pytest.raises(DtypeError, match=r"invert\(float64\): NumPy does not define it"):
        operand_dtypes("invert", np.invert, [of("float64")])
    with pytest.raises(DtypeError, match=r"left_shift\(int8, Python float\)"):
        operand_dtypes("left_shift", np.left_shift, [of("int8"), 2.5])


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if not dtype.startswith("complex")])
def test_float_loops_choose_as_numpy_does(dtype):
    """Against two functions that have loops for real floats alone."""
    assert operand_dtypes("f", FLOATS, [of(dtype)]) == operand_dtypes("cbrt", np.cbrt, [of(dtype)])
    for other in itertools.chain(DTYPES[:12], (1, 2.5)):
        operands = [of(dtype), of(other) if isinstance(other, str) else other]
        assert operand_dtypes("f", FLOATS, operands) == operand_dtypes("hypot", np.hypot, operands), other


def test_loops_that_do_not_take_a_dtype():
    with pytest.raises(DtypeError, match=r"f\(complex64\): takes float16, float32, float64"):
        operand_dtypes("f", FLOATS, [of("complex64")])


def test_wrap():
    assert wrap("f", of("int8"), "float32").tensor_type.dtype == "int8"
    number = wrap("f", 3, "float32")
    assert isinstance(number, Constant)
    assert number.data.dtype == "float32"
    assert wrap("f", np.ones(2, "int8"), "float32").tensor_type.dtype == "int8"
    assert np.isinf(wrap("f", 1e6, "float16").data)
    with pytest.raises(DtypeError, match=r"f\(300\): the number does not fit uint8"):
        wrap("f", 300, "uint8")
