"""Elementwise ops, reductions and sorts at empty, size-1, 0-d and broadcast operands; integers that overflow.

Many ops stand in one graph, so that few programs are compiled. What is expected is what the ops' NumPy
functions give.
"""

import numpy as np
import pytest

import esat
from esat.graph.registry import registered_ops
from esat.graph.types import TensorType
from esat.ops.elementwise.record import Elementwise

ELEMENTWISE = [op for op in registered_ops() if isinstance(op, Elementwise)]
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OVERFLOWING = ("add", "sub", "mul", "neg", "abs", "sqr", "floor_div", "mod", "maximum", "minimum")


def applied(variables):
    """Each op on as many of the Variables as it takes, by name, where it admits their dtype."""
    found = {}
    for op in ELEMENTWISE:
        operands = variables[: op.arity]
        try:
            found[op.name] = op(*operands)
        except esat.errors.DtypeError:
            continue
    return found


def compare(outputs, variables, calls):
    """Fail unless one program gives what NumPy's functions do, at each call's values."""
    graph = esat.Graph(list(variables), list(outputs.values()), on_unused_input="ignore")
    function = esat.compile(graph)
    for values in calls:
        with np.errstate(all="ignore"):
            expected = esat.evaluate(list(outputs.values()), dict(zip(variables, values, strict=True)))
        for name, found, wanted in zip(outputs, function(*values), expected, strict=True):
            shapes = [value.shape for value in values]
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), f"{name} at {shapes}"
            tolerance = 1e-5 if wanted.dtype in ("float32", "complex64") else 1e-9
            np.testing.assert_allclose(found, wanted, rtol=tolerance, err_msg=f"{name} at {shapes}")


def random(dtype, shape):
    generator = np.random.default_rng(sum(shape) + 1)
    values = generator.uniform(0.2, 0.8, shape) if dtype == "float64" else generator.integers(1, 7, shape)
    return np.asarray(values, dtype)


@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_elementwise_ops_at_all_sizes(dtype):
    shapes = ((None, None), (1, None), (None, 1))
    variables = [TensorType(dtype, shape=shape)(name) for shape, name in zip(shapes, "xyz", strict=True)]
    outputs = applied(variables)
    assert len(outputs) > 80
    sizes = [(0, 3), (3, 0), (0, 0), (1, 1), (2, 1), (3, 4)]
    calls = [[random(dtype, shape) for shape in ((n, m), (1, m), (n, 1))] for n, m in sizes]
    compare(outputs, variables, calls)


def test_elementwise_ops_without_axes():
    variables = [esat.scalar(name) for name in "xyz"]
    compare(applied(variables), variables, [[random("float64", ()) for _ in variables]])


def test_reductions_and_sorts_at_all_sizes():
    x = esat.matrix("x")
    functions = {
        "sum": esat.sum, "prod": esat.prod, "any": esat.any, "all": esat.all, "cumsum": esat.cumsum,
        "cumprod": esat.cumprod, "sort": esat.sort, "argsort": esat.argsort,
    }  # fmt: skip
    outputs = {f"{name} {axis}": f(x, axis=axis) for name, f in functions.items() for axis in (0, 1, None)}
    compare(outputs, [x], [[random("float64", shape)] for shape in [(0, 3), (3, 0), (1, 1), (1, 4), (2, 3)]])


def test_integers_overflow_as_those_of_numpy():
    variables, outputs = [], {}
    low, high = [], []
    for dtype in INTEGERS:
        pair = [esat.vector(f"{name}_{dtype}", dtype=dtype) for name in "xy"]
        variables += pair
        found = applied(pair)
        outputs |= {f"{name} of {dtype}": found[name] for name in OVERFLOWING if name in found}
        limits = np.iinfo(dtype)
        extremes = np.array([limits.min, limits.min + 1, limits.max - 1, limits.max, 3, 1], dtype)
        low += [extremes, extremes[::-1].copy()]
        high += [np.full(6, limits.max, dtype), extremes]
    assert len(outputs) > 70
    compare(outputs, variables, [low, high])
