"""Casts between all dtypes, their gradients and what they leave out."""

from __future__ import annotations

import numpy as np
import pytest

from esat.errors import DtypeError
from esat.frontend.gradient import vjp
from esat.frontend.verify_grad import verify_grad
from esat.graph.evaluate import evaluate
from esat.graph.types import DTYPES, TensorType
from esat.graph.variables import Constant, Variable
from esat.ops.cast import Cast, cast

from .elementwise.samples import special_values


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_as_astype(source, target):
    values = special_values(source)
    if np.dtype(source).kind in "fc" and np.dtype(target).kind in "iu":
        # What becomes of numbers out of range is the machine's choice, in NumPy too.
        values = np.array(
            [-1.9, -0.5, 0, 0.5, 1.9, 100.7] if target[0] != "u" else [0, 0.5, 1.9, 100.7], source
        )
    x = Variable(TensorType(source, shape=values.shape))
    result = evaluate(cast(x, target), {x: values})
    with np.errstate(all="ignore"):
        real = values.real if target[0] not in "cb" else values
        expected = real.astype(target)
    assert result.dtype == target
    np.testing.assert_array_equal(result, expected)


def test_casts_that_change_nothing():
    x = Variable(TensorType("float32", shape=(None,)))
    assert cast(x, np.float32) is x
    assert cast(x, "float64").owner.op == Cast("float64")
    assert Cast("float64") != Cast("float32")
    assert str(Cast("int8")) == "cast{int8}"


def test_constants_are_cast_at_once():
    constant = cast(np.array([1.5, -2.5]), "int8")
    assert isinstance(constant, Constant)
    np.testing.assert_array_equal(constant.data, np.array([1, -2], "int8"))


def test_unknown_dtypes():
    x = Variable(TensorType("float32", shape=()))
    for dtype in ("object", "datetime64[s]", "U3", "no dtype"):
        with pytest.raises(DtypeError):
            cast(x, dtype)


def test_gradients():
    z = np.array([1 + 2j, -0.5 + 1j])
    verify_grad(lambda x: cast(x, "complex128"), [np.array([1.0, 2.0])])
    verify_grad(lambda x: cast(x, "float64"), [z])
    x = Variable(TensorType("float32", shape=(2,)))
    assert vjp([cast(x, "float64")], x, [np.ones(2)]).tensor_type.dtype == "float32"
    node = Cast("int8").make_node(x)
    assert node.op.vjp(node, [node.outputs[0]]) == [None]
