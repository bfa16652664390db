"""Casts between all dtypes, their gradients and what they leave out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import esat
from esat.errors import DtypeError
from esat.frontend.derivatives.gradient import vjp
from esat.frontend.derivatives.verify_grad import verify_grad
from esat.graph.algorithms.evaluate import evaluate
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


BEYOND = {"int8": 0, "int16": 0, "int32": -(2**31), "int64": -(2**63), "uint8": 0, "uint16": 0, "uint32": 0}
"""What NaN is as an integer, and what 1e20 is."""


@pytest.mark.parametrize("mode", ["fast_run", "o2", "fast_compile", "debug"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_numbers_beyond_the_range_of_integers(source, mode):
    """Those that a kernel is compiled with are as those it is called with: LLVM defines neither."""
    x = Variable(TensorType(source, shape=(None,)))
    values = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 7.9] * 3, source)
    unknown = [cast(x, target) for target in BEYOND]
    known = [cast(esat.full(x.shape, np.array(value, source)), "int64") for value in (np.nan, 1e20)]
    chosen = [cast(esat.where(x > 0, np.array(np.nan, source), x), "int32")]
    results = esat.compile(esat.Graph([x], unknown + known + chosen), mode=mode)(values)
    for target, result in zip(BEYOND, results, strict=False):
        np.testing.assert_array_equal(result, np.array([*[BEYOND[target]] * 5, 7] * 3, target))
    for result in results[len(BEYOND) : -1]:
        np.testing.assert_array_equal(result, np.full(values.size, -(2**63)))
    np.testing.assert_array_equal(results[-1], np.full(values.size, -(2**31), "int32"))


def test_negative_floats_as_unsigned_integers():
    x = Variable(TensorType("float64", shape=(None,)))
    values = np.array([-1.0, -1.5, 5e9, -3e9, 2.0**63, 2.0**64, np.nan])
    narrow, wide = esat.compile(esat.Graph([x], [cast(x, "uint32"), cast(x, "uint64")]))(values)
    below = [2**32 - 1, 2**32 - 1, 5 * 10**9 - 2**32, 2**32 - 3 * 10**9, 0, 0, 0]
    np.testing.assert_array_equal(narrow, np.array(below, "uint32"))
    above = [2**64 - 1, 2**64 - 1, 5 * 10**9, 2**64 - 3 * 10**9, 2**63, 0, 2**63]
    np.testing.assert_array_equal(wide, np.array(above, "uint64"))


@pytest.mark.parametrize("target", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_imaginary_parts_are_dropped_without_a_warning(mode, target):
    z = esat.vector("z", dtype="complex128")
    graph = esat.Graph([z], [(z * 2).astype(target).sum(), esat.exp(z.astype(target) + 1)])
    value = np.array([1 + 2j, -3, 2j])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = esat.compile(graph, mode)(value)
    for one, other in zip(found, esat.evaluate(graph.outputs, {z: value}), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
