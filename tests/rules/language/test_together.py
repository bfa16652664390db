"""The textbook expressions, optimized as a mathematician would: what is left of each."""

from collections import Counter

import numpy as np
import pytest

import esat

MATRICES = {name: esat.matrix(name) for name in "abcdxyz"}
a, b, c, d, x, y, z = MATRICES.values()

EXPECTED = {
    "x + y and y + x": ([x + y, y + x], {"add": 1}),
    "(a + b + c + d) - (b + d)": ([(a + b + c + d) - (b + d)], {"add": 1}),
    "x y z / (y x)": ([x * y * z / (y * x)], {}),
    "a b + a c + a d": ([a * b + a * c + a * d], {"mul": 1, "add": 2}),
    "log(1 + exp(x))": ([esat.log(1 + esat.exp(x))], {"softplus": 1}),
    "log(softmax(x))": ([esat.log(esat.softmax(x, axis=1))], {"log_softmax": 1}),
    "sum(2 x)": ([esat.sum(2 * x)], {"sum": 1, "mul": 1}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_left(name):
    outputs, expected = EXPECTED[name]
    inputs = list(MATRICES.values())
    function = esat.compile(esat.Graph(inputs, outputs, on_unused_input="ignore"), "fast_run")
    generator = np.random.default_rng(0)
    values = {variable: generator.normal(size=(4, 3)) for variable in inputs}
    results = function(*values.values())
    for result, wanted in zip(
        results if len(outputs) > 1 else [results], esat.evaluate(outputs, values), strict=True
    ):
        np.testing.assert_allclose(result, wanted, rtol=1e-12)
    ops = Counter(node.op.name for node in function.optimized.toposort())
    del ops["dimshuffle"]
    assert ops == expected
