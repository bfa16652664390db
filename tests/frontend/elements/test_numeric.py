import numpy as np
import pytest
from oracle import agree
from scipy import special

import esat
from esat.errors import DtypeError, ParameterError
from esat.graph.types import DTYPES

ARRAY = np.random.default_rng(33).standard_normal((3, 5)) * 10


def both(function, *arrays):
    agree(lambda *x: function(esat, *x), lambda *x: function(np, *x), *arrays)


def test_clip_and_round():
    both(lambda m, x: [m.clip(x, -1, 2), m.clip(x, None, 0), m.clip(x, 1, None)], ARRAY)
    both(lambda m, x: [m.round(x), m.round(x, 2), m.round(x, -1), m.round(x.astype("float32"), 1)], ARRAY)
    both(lambda m, x: m.round(x, 2), np.arange(3))
    for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
        both(lambda m, x: [m.round(x, -1), m.round(x, -3)], np.arange(0, 127, 5).astype(dtype))
    both(lambda m, x: m.round(x), ARRAY > 0)
    both(lambda m, x: [m.clip(x, a_min=0, a_max=5), m.clip(x, min=-1), x.clip(max=2)], ARRAY)
    both(lambda _, x: [np.clip(x, a_min=None, a_max=3), x.clip(min=np.float64(0))], ARRAY)
    x = esat.vector()
    assert esat.clip(x) is x
    with pytest.raises(ParameterError, match=r"clip\(.*not both"):
        esat.clip(x, 0, max=1)
    with pytest.raises(DtypeError, match=r"round\(vector\(bool\)\): booleans have no decimals"):
        esat.round(esat.vector(dtype="bool"), 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_expit_has_scipys_dtypes(dtype):
    array = np.array([0, 1, 3], dtype)
    if np.dtype(dtype).kind == "c":
        with pytest.raises(DtypeError, match="expit"):
            esat.expit(esat.vector(dtype=dtype))
    else:
        agree(esat.expit, special.expit, array)


def test_operators_on_booleans_are_those_of_numpy():
    both(lambda m, x: [x**2, x**1, x**3, x**0, x**2.0, x * 1, x.conj()], ARRAY > 0)


def test_isclose_and_nan_to_num():
    special = np.array([np.nan, np.inf, -np.inf, 1.0, 1.0])
    other = np.array([np.nan, np.inf, np.inf, 1.0 + 1e-9, 1.1])
    both(
        lambda m, x, y: [m.isclose(x, y), m.isclose(x, y, equal_nan=True), m.isclose(x, y, 0.2)],
        special,
        other,
    )
    both(lambda m, x: [m.nan_to_num(x), m.nan_to_num(x, nan=7, posinf=8, neginf=9)], special)
    both(lambda m, x: m.nan_to_num(x), special.astype("float32"))
    both(lambda m, x: m.nan_to_num(x), np.arange(3))


def test_diff():
    for n, axis in ((1, -1), (2, 0), (1, 0), (0, 0), (4, 1)):
        both(lambda m, x, n=n, a=axis: m.diff(x, n, a), ARRAY)
    both(lambda m, x: m.diff(x), ARRAY > 0)
    both(lambda m, x: [m.diff(x, prepend=0.0), m.diff(x, 2, 0, append=x[:2], prepend=1.5)], ARRAY)
    both(
        lambda m, x: [m.diff(x, prepend=1), m.diff(x, append=0.5), m.diff(x, prepend=x[:1])],
        np.arange(3, dtype="i4"),
    )
    both(lambda m, x: m.diff(x[0], prepend=False), ARRAY > 0)
    with pytest.raises(ParameterError, match="-1 times"):
        esat.diff(esat.vector(), -1)


def test_gradients():
    for function in (lambda x: esat.clip(x, -1, 2), esat.diff, esat.nan_to_num):
        esat.verify_grad(function, [ARRAY])


def test_other_names_are_the_same_ops():
    assert esat.multiply is esat.mul
    assert esat.true_divide is esat.divide is esat.div
    assert esat.true_divide is esat.div
    assert esat.absolute is esat.abs
    assert esat.exp(esat.scalar()).owner.op is esat.exp
