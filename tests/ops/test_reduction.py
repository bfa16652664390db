import math

import numpy as np
import pytest
from oracle import agree, value
from scipy import special

import esat
from esat.errors import AxisError, ShapeError
from esat.graph.types import DTYPES
from esat.ops.reduction import REDUCERS, SUM, Reduction, reduce, sum_to

FOLDS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all}
ARGUMENTS = {"argmax": np.argmax, "argmin": np.argmin}
RNG = np.random.default_rng(7)


def sample(dtype, shape=(3, 1, 4)):
    kind = np.dtype(dtype).kind
    if kind == "c":
        return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)
    if kind == "f":
        return RNG.standard_normal(shape).astype(dtype)
    return RNG.integers(0, 2 if kind == "b" else 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FOLDS)
def test_folds_are_those_of_numpy(name, dtype):
    function, reference = getattr(esat, name), FOLDS[name]
    array = sample(dtype)
    for axis in (None, 0, -1, (0, 2), (), 1):
        for keepdims in (False, True):
            agree(
                lambda x, axis=axis, keepdims=keepdims: function(x, axis=axis, keepdims=keepdims),
                lambda x, axis=axis, keepdims=keepdims: reference(x, axis=axis, keepdims=keepdims),
                array,
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_indices_are_those_of_numpy(name, dtype):
    function, reference = getattr(esat, name), ARGUMENTS[name]
    for axis in (None, 0, -1, 1):
        for keepdims in (False, True):
            agree(
                lambda x, axis=axis, keepdims=keepdims: function(x, axis=axis, keepdims=keepdims),
                lambda x, axis=axis, keepdims=keepdims: reference(x, axis=axis, keepdims=keepdims),
                sample(dtype),
            )


def test_index_of_the_first_and_of_nan():
    array = np.array([1.0, 3.0, np.nan, 3.0, np.nan])
    assert value(esat.argmax(array)) == 2
    assert value(esat.argmin(array)) == 2
    assert value(esat.argmax(np.array([1, 3, 3]))) == 1
    assert value(esat.argmax(np.float64(3.0))) == 0


def test_special_values():
    agree(esat.max, np.max, np.array([1.0, np.nan, np.inf]))
    agree(esat.sum, np.sum, np.array([np.inf, -np.inf]))
    agree(esat.any, np.any, np.array([np.nan]))
    agree(lambda x: esat.sum(x, dtype="int8"), lambda x: np.sum(x, dtype="int8"), np.array([100, 100]))
    agree(lambda x: esat.sum(x, dtype="float64"), lambda x: np.sum(x, dtype="float64"), sample("float32"))


@pytest.mark.parametrize("strided", [np.s_[::-1, :, ::2], np.s_[:, :, 1:0:-1], np.s_[1:1], np.s_[:, :, 2:2]])
def test_strides_and_nothing_at_all(strided):
    array = sample("float64")[strided]
    for name in ("sum", "prod", "any", "all"):
        agree(
            lambda x, name=name: getattr(esat, name)(x, axis=0),
            lambda x, name=name: FOLDS[name](x, axis=0),
            array,
        )
    agree(lambda x: esat.max(x, axis=1), lambda x: np.max(x, axis=1), array)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremum_of_nothing_is_an_error(name):
    x = esat.matrix("x")
    y = getattr(esat, name)(x, axis=0)
    with pytest.raises(ShapeError, match=rf"{name}.*(?s:.)*test_reduction.py"):
        value(y, {x: np.zeros((0, 3))})
    assert value(y, {x: np.zeros((3, 0))}).shape == (0,)


def test_axis_errors():
    x = esat.matrix("x")
    for axis in (2, -3, (0, 0), "0"):
        with pytest.raises(AxisError):
            esat.sum(x, axis=axis)
    with pytest.raises(AxisError):
        esat.argmax(x, axis=(0, 1))


def test_operand_and_result_have_one_dtype():
    node = esat.sum(esat.matrix("x", dtype="int8")).owner
    assert node.inputs[0].dtype == node.outputs[0].dtype == "int64"
    assert node.op == Reduction(SUM, (0, 1))
    assert node.op != Reduction(SUM, (0, 1), keepdims=True)
    assert str(node.op) == "sum{0,1}"


def test_logsumexp_without_overflow():
    array = np.array([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 0.0], [np.nan, 1.0]])
    for axis, keepdims in ((1, False), (0, True), (None, False)):
        agree(
            lambda x, a=axis, k=keepdims: esat.logsumexp(x, a, keepdims=k),
            lambda x, a=axis, k=keepdims: special.logsumexp(x, a, keepdims=k),
            array,
        )
    for dtype in ("bool", "int8", "uint16", "float16", "float32", "complex64"):
        agree(esat.logsumexp, special.logsumexp, np.array([0, 1, 3]).astype(dtype))
    assert value(esat.logsumexp(np.zeros((0,)))) == -np.inf
    assert value(esat.logsumexp(np.zeros(3, "float32"))).dtype == np.float32


@pytest.mark.parametrize("reducer", [r for r in REDUCERS if r.gradient is not None], ids=lambda r: r.name)
def test_gradients(reducer):
    point = RNG.standard_normal((2, 3, 2))
    for axis in (None, 1, (0, 2), ()):
        esat.verify_grad(lambda x, axis=axis: reduce(reducer, x, axis), [point])
        esat.verify_grad(lambda x, axis=axis: reduce(reducer, x, axis, keepdims=True), [point])


def test_gradient_of_a_product_with_zeros():
    point = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]])
    for axis in (0, 1, None):
        esat.verify_grad(lambda x, axis=axis: esat.prod(x, axis=axis), [point])


def test_equal_maxima_share_the_gradient():
    x = esat.vector("x")
    gradient = value(esat.grad(esat.max(x), x), {x: np.array([2.0, 5.0, 5.0])})
    np.testing.assert_array_equal(gradient, [0.0, 0.5, 0.5])


def test_indices_have_zero_gradient():
    x = esat.vector("x")
    gradient = esat.grad(esat.sum(x * esat.argmax(x)), x)
    np.testing.assert_array_equal(value(gradient, {x: np.array([1.0, 4.0])}), [1.0, 1.0])


def test_sum_to_undoes_broadcasting():
    x = esat.tensor("x", shape=(2, 3, 4))
    array = RNG.standard_normal((2, 3, 4))
    reduced = sum_to(x, (True, False, True))
    np.testing.assert_allclose(value(reduced, {x: array}), array.sum(axis=(0, 2), keepdims=True))
    np.testing.assert_allclose(value(sum_to(x, (False,)), {x: array}), array.sum(axis=(0, 1)))
    assert sum_to(x, (False, False, False)) is x
    half = esat.tensor("h", dtype="float16", shape=(2, 3))
    assert sum_to(half, (True, False)).dtype == "float16"


def test_work_counts_elements():
    work = Reduction(SUM, (0,)).work([(10, 20)], [(20,)], [8, 8])
    assert work.flops == 200
    assert work.bytes == (200 + 20) * 8
    assert work.calls == 0


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "strict"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 1), (1, 1)])
def test_the_logarithm_of_one_complex_exponential_is_the_principal_one(mode, shape):
    z = esat.tensor("z", dtype="complex128", shape=shape)
    outputs = [esat.logsumexp(z), esat.logsumexp(z + 1.0, axis=-1, keepdims=True) if shape else z * 1.0]
    value = np.array([700.0 + 84j, 3 - 9j])[: math.prod(shape)].reshape(shape)
    found = esat.compile(esat.Graph([z], outputs), mode)(value)
    np.testing.assert_allclose(found[0], special.logsumexp(value), rtol=1e-13)
    if shape:
        np.testing.assert_allclose(found[1], special.logsumexp(value + 1, axis=-1, keepdims=True), rtol=1e-13)
