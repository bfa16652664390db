import numpy as np
import pytest
from oracle import agree

import esat
from esat.errors import AxisError, DtypeError
from esat.graph.types import DTYPES

RNG = np.random.default_rng(21)
ARRAY = RNG.standard_normal((3, 4, 2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["mean", "var", "std", "count_nonzero"])
def test_values_and_dtypes_are_those_of_numpy(name, dtype):
    array = (ARRAY * 3).astype(dtype)
    for axis in (None, 0, (0, -1)):
        for keepdims in (False, True):
            agree(
                lambda x, a=axis, k=keepdims: getattr(esat, name)(x, axis=a, keepdims=k),
                lambda x, a=axis, k=keepdims: getattr(np, name)(x, axis=a, keepdims=k),
                array,
            )


def test_options():
    agree(
        lambda x: [
            x.var(ddof=1),
            x.std(1, ddof=2),
            x.mean(dtype="float32"),
            esat.ptp(x, 0),
            esat.average(x, 1),
        ],
        lambda x: [x.var(ddof=1), x.std(1, ddof=2), x.mean(dtype="float32"), np.ptp(x, 0), np.average(x, 1)],
        ARRAY.astype("float32"),
    )
    agree(
        lambda x, w: [esat.average(x, 1, w), esat.average(x, weights=x + 5)],
        lambda x, w: [np.average(x, 1, w), np.average(x, weights=x + 5)],
        ARRAY,
        np.arange(4.0),
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "complex64"])
def test_dtypes_of_weighted_averages(dtype):
    for given in ("int16", "float16", "float32", "complex64"):
        values, weights = np.array([1, 0, 3]).astype(given), np.array([1, 1, 1]).astype(dtype)
        agree(lambda x, w: esat.average(x, None, w), lambda x, w: np.average(x, None, w), values, weights)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "ptp"])
def test_a_scalar_has_a_last_axis_for_reductions(name):
    for axis in (0, -1):
        agree(
            lambda x, a=axis: getattr(esat, name)(x, axis=a, keepdims=True),
            lambda x, a=axis: getattr(np, name)(x, axis=a, keepdims=True),
            np.array(2.5),
        )
        with pytest.raises(AxisError):
            getattr(esat, name)(esat.scalar(), axis=1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mean_of_nothing_is_nan():
    agree(lambda x: [x.mean(), x.mean(1), x.var()], lambda x: [x.mean(), x.mean(1), x.var()], np.ones((0, 2)))
    agree(lambda x: x.var(ddof=5), lambda x: x.var(ddof=5), np.ones(3))


@pytest.mark.parametrize("order", [None, 1, 2, 0, 3, 2.5, np.inf, -np.inf])
def test_vector_norms(order):
    agree(
        lambda x: esat.norm(x, order, 1, True),
        lambda x: np.linalg.norm(x, order, 1, keepdims=True),
        ARRAY,
    )


def test_norms_of_all_elements():
    agree(
        lambda x: [x.norm(), esat.linalg.norm(x[0], "fro"), esat.norm(x, axis=(0, 1))],
        lambda x: [np.linalg.norm(x), np.linalg.norm(x[0], "fro"), np.linalg.norm(x, axis=(0, 1))],
        ARRAY,
    )
    agree(esat.norm, np.linalg.norm, np.arange(5))
    with pytest.raises(AxisError):
        esat.norm(esat.matrix(), 1)
    with pytest.raises(DtypeError, match="two axes"):
        esat.norm(esat.vector(), "fro")


def test_gradients():
    for function in (esat.mean, esat.var, esat.std, esat.norm, esat.ptp):
        esat.verify_grad(lambda x, f=function: f(x, axis=1), [ARRAY])
    esat.verify_grad(esat.var, [ARRAY[0] + 1j * ARRAY[1]])
