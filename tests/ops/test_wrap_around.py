"""Signed integers wrap around, also where the result is compared with what it was computed from."""

import numpy as np
import pytest

import esat

LIMITS = np.iinfo("int64")
EDGES = np.array(
    [[LIMITS.max, LIMITS.min, 1, -1], [LIMITS.max // 2 + 1, LIMITS.min // 2 - 1, 5, LIMITS.max - 3]]
)
LARGE = np.array([[LIMITS.max, LIMITS.max - 5, 7], [LIMITS.max // 3, LIMITS.max // 2 + 9, 5]])

FORMULAS = {
    "x + 1 > x": lambda m, x, y: x + 1 > x,
    "x - 1 < x": lambda m, x, y: x - 1 < x,
    "2 x > 0": lambda m, x, y: x * 2 > 0,
    "x x < 0": lambda m, x, y: x * x < 0,
    "x**2 < 0": lambda m, x, y: x**2 < 0,
    "-x < 0": lambda m, x, y: -x < 0,
    "x + y < x": lambda m, x, y: x + y < x,
    "x - y < 0": lambda m, x, y: x - y < 0,
    "3 x > 3 y": lambda m, x, y: x * 3 > y * 3,
    "2 x // 2": lambda m, x, y: (x * 2) // 2,
    "max - min": lambda m, x, y: m.maximum(x, y) - m.minimum(x, y) < 0,
    "|x| < 0": lambda m, x, y: m.abs(x) < 0,
    "x << 1 > 0": lambda m, x, y: (x << 1) > 0,
    "sum of positive": lambda m, x, y: m.maximum(y, 0).sum(axis=1) >= 0,
    "columns of positive": lambda m, x, y: m.maximum(y, 0).sum(axis=0) >= 0,
    "product of positive": lambda m, x, y: (y & 0xFFFFFFFFFF).prod(axis=1) < 0,
    "sum of all": lambda m, x, y: m.abs(y).sum() < 0,
}


@pytest.mark.parametrize("mode", ["fast_run", "strict", "greedy"])
@pytest.mark.parametrize("name", FORMULAS)
def test_int64(name, mode):
    x, y = esat.matrix("x", "int64"), esat.matrix("y", "int64")
    formula = FORMULAS[name]
    function = esat.compile(esat.Graph([x, y], [formula(esat, x, y)], on_unused_input="ignore"), mode)
    for repeats in (1, 40):
        left, right = np.tile(EDGES, (1, 3 * repeats)), np.tile(LARGE, (1, 4 * repeats))
        with np.errstate(over="ignore"):
            expected = formula(np, left, right)
        np.testing.assert_array_equal(function(left, right), expected)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
def test_smaller_integers(dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.max, limits.min, 1, -1, 0, limits.max // 2 + 1] * 9, dtype)
    x = esat.vector("x", dtype)
    forms = [x + 1 > x, x * 3, x - 100, x * x < 0, x.sum(dtype=dtype), x.prod()]
    with np.errstate(over="ignore"):
        expected = [values + 1 > values, values * 3, values - 100, values * values < 0]
        expected += [values.sum(dtype=dtype), values.prod()]
    for result, wanted in zip(esat.compile(esat.Graph([x], forms))(values), expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
