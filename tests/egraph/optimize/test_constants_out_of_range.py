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
    "squared": lambda x, large: (x * large) ** 2 / 3.0,
    "cubed": lambda x, large: (x * large) ** 3 * 0.5,
    "below, squared": lambda x, large: 7.0 / ((x / large) ** 2 + 0.0),
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


@pytest.mark.parametrize("mode", ["fast_run", "greedy", "o2", "unsafe"])
@pytest.mark.parametrize(
    ("dtype", "gravity", "distance", "mass"),
    [
        ("float32", 6.674e-11, 1.496e11, 1.989e30),
        ("float64", 1e-90, 1e95, 1e250),
        ("float16", 1e-3, 8.0, 4e4),
    ],
)
def test_quotients_of_constants_are_not_more_extreme_than_these(dtype, gravity, distance, mass, mode):
    """Kepler's third law: with the quotient of the constants the numerator is out of range."""
    a, m = (esat.scalar(name, dtype=dtype) for name in "am")
    number = np.dtype(dtype).type
    period = esat.sqrt(39.5 * a**3 / (number(gravity) * m))
    values = number(distance), number(mass)
    wanted = np.sqrt(number(39.5) * values[0] ** 3 / (number(gravity) * values[1]))
    assert np.isfinite(wanted)
    found = esat.compile(esat.Graph([a, m], [period]), mode)(*values)
    np.testing.assert_allclose(found, wanted, rtol=8 * np.finfo(dtype).eps)
