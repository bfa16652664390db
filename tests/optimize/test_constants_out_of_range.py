"""Constants of a product that cannot be made one, as their product is out of their dtype's range."""

import numpy as np
import pytest

import esat

RANGE = {"float64": 1e200, "float32": 1e25, "float16": 1e3}
"""Numbers whose squares are out of range, and the reciprocals of which are."""

PRODUCTS = {
    "multiplied": lambda x, large: x * large * large,
    "small": lambda x, large: x * (1 / large) * (1 / large),
    "divided": lambda x, large: x / large / large,
    "divided by small": lambda x, large: x / (1 / large) / (1 / large),
    "quotient": lambda x, large: (x * large) / (1 / large),
    "below a fraction": lambda x, large: large / ((1 / large) * x),
    "in a square": lambda x, large: (x * large) * (x * large),
    "in a difference": lambda x, large: -(x * large) * large,
    "added to itself": lambda x, large: x * large * large + x * large * large,
    "below the least normal number": lambda x, large: x * (1 / large) * (1 / large) * 3.0,
}


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o2"])
@pytest.mark.parametrize("dtype", RANGE)
@pytest.mark.parametrize("name", PRODUCTS)
def test_constants_are_not_multiplied_out_of_range(name, dtype, mode):
    x = esat.vector("x", dtype=dtype)
    large, small = RANGE[dtype], 1 / RANGE[dtype]
    values = np.array([0.0, small, large, small * 1e-3, -5.0], dtype)
    with np.errstate(all="ignore"):
        expected = PRODUCTS[name](values, large)
    found = esat.compile(esat.Graph([x], PRODUCTS[name](x, large)), mode=mode)(values)
    normal = np.isfinite(expected) & ((abs(expected) >= np.finfo(dtype).smallest_normal) | (values == 0))
    assert normal.any()
    np.testing.assert_allclose(found[normal], expected[normal], rtol=8 * np.finfo(dtype).eps)


def test_constant_arrays_are_still_one():
    x = esat.vector("x", shape=(3,))
    first, second = np.arange(1.0, 13.0).reshape(4, 3), np.linspace(2.0, 3.0, 12).reshape(4, 3)
    program = esat.compile(esat.Graph([x], x / first / second))
    np.testing.assert_allclose(program(np.ones(3)), 1.0 / (first * second), rtol=1e-14)
    assert [node.op.name for node in program.graph.toposort()] == ["dimshuffle", "div"]


def test_constants_in_range_are_still_one():
    x = esat.vector("x")
    program = esat.compile(esat.Graph([x], x * 1e150 * 1e150 / 4.0))
    assert [str(node.op) for node in program.graph.apply_nodes] == ["mul"]
