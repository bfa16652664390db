"""Integers: wrap-around, division by zero, shifts, powers, numbers that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from esat.errors import DtypeError
from esat.graph.algorithms.evaluate import evaluate

from .samples import BY_NAME, DTYPES, assert_same, run, special_values, variable

INTEGERS = [dtype for dtype in DTYPES if np.dtype(dtype).kind in "iu"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_of_any_width(dtype):
    values = special_values(dtype)[:, None]
    counts = np.array([0, 1, 7, 8, 31, 32, 63, 64, 100], dtype)
    if np.dtype(dtype).kind == "i":
        counts = np.concatenate([counts, np.array([-1, -8], dtype)])
    for name, function in (("left_shift", np.left_shift), ("right_shift", np.right_shift)):
        assert_same(run(BY_NAME[name], values, counts), function(values, counts), (name, dtype))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_div", "mod", "fmod", "maximum", "left_shift"])
def test_a_python_integer_that_does_not_fit(name):
    with pytest.raises(DtypeError, match=rf"{name}\(.*300.*does not fit int8"):
        BY_NAME[name](variable(np.zeros(3, "int8")), 300)
    with pytest.raises(DtypeError, match=rf"{name}\(.*-1.*does not fit uint16"):
        BY_NAME[name](-1, variable(np.zeros(3, "uint16")))


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d.startswith("int")])
def test_negative_powers_of_integers(dtype):
    power = BY_NAME["pow"]
    base = variable(np.array([2, 3], dtype))
    with pytest.raises(DtypeError, match=rf"pow\(.*{dtype}.*negative integer powers"):
        power(base, -1)
    with pytest.raises(DtypeError, match=r"pow\(.*negative integer powers"):
        power(base, np.array([1, -2], dtype))
    exponent = variable(np.array([1, -2], dtype))
    output = power(base, exponent)
    with pytest.raises(DtypeError, match=r"pow\(.*negative integer powers"):
        evaluate(output, {base: np.array([2, 3], dtype), exponent: np.array([1, -2], dtype)})
    assert run(power, np.array([2.0]), -1) == 0.5


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("bounds", [(0, 10**20), (-(10**20), 3), (1, 2), (5, 2), (-1, 300), (0, 127)])
def test_clip_bounds_beyond_the_range(dtype, bounds):
    values, (low, high) = special_values(dtype), bounds
    expected = [min(max(int(value), low), high) for value in values]
    assert_same(run(BY_NAME["clip"], values, *bounds), np.array(expected, dtype), (dtype, bounds))


@pytest.mark.parametrize("bounds", [(300, 400), (-400, -300)])
def test_clip_results_beyond_the_range(bounds):
    with pytest.raises(DtypeError, match=r"clip\(-?300\): the number does not fit int8"):
        run(BY_NAME["clip"], np.array([1], "int8"), *bounds)


def test_booleans():
    values = np.array([False, True])
    assert_same(run(BY_NAME["add"], values[:, None], values), values[:, None] | values, "add is or")
    assert_same(run(BY_NAME["mul"], values[:, None], values), values[:, None] & values, "mul is and")
    for name in ("sub", "neg", "sign", "positive"):
        with pytest.raises(DtypeError, match=rf"{name}\(bool"):
            run(BY_NAME[name], *[values] * BY_NAME[name].arity)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"])
def test_bits_of_floats(name):
    with pytest.raises(DtypeError, match=rf"{name}\(float32, int32"):
        BY_NAME[name](variable(np.zeros(2, "float32")), variable(np.zeros(2, "int32")))
    with pytest.raises(DtypeError, match=rf"{name}\(int64, uint64"):
        BY_NAME[name](variable(np.zeros(2, "int64")), variable(np.zeros(2, "uint64")))


def test_logic_casts_to_bool():
    node = BY_NAME["logical_and"].make_node(variable(np.zeros(2)), variable(np.zeros(2, "complex64")))
    assert [operand.tensor_type.dtype for operand in node.inputs] == ["bool", "bool"]
    assert_same(
        run(BY_NAME["logical_not"], np.array([np.nan, 0.0, -0.0, 2.0])),
        np.array([False, True, True, False]),
        "",
    )
