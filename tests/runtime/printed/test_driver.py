import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from esat.graph import TensorType, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.contraction import matmul
from esat.runtime import Executable
from esat.runtime.printed.python_names import Identifiers

Build = Callable[..., Executable]


def tensor(name: str | None, *shape: int | None) -> Variable:
    return TensorType("float64", shape=shape)(name)


def test_the_source_is_python_one_line_a_step(compiled: Build) -> None:
    x, w = tensor("x", None, None), tensor("w", None, None)
    function = compiled([x, w], [op_named("tanh")(matmul(x, dimshuffle(w, (1, 0))) + 1.0)])
    text = function.source()
    ast.parse(text.partition("# kernel_")[0])
    steps = [line.strip() for line in text.splitlines() if line.strip().startswith("# ")]
    assert [step.split(":")[1].strip() for step in steps[:3]] == ["view", "library", "kernel"]
    assert "test_driver.py:" in steps[0]
    assert "dimshuffle = w.transpose(1, 0)" in text
    assert "copy()" not in text


def test_names_that_would_clash_are_told_apart(compiled: Build) -> None:
    names = [
        "class",
        "call",
        "key",
        "new_exp",
        "exp",
        "float64",
        "ndarray",
        "signature",
        "x y",
        "1",
        "",
        "x y",
    ]
    inputs = [tensor(name, None) for name in names] + [tensor(None, None)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = op_named("exp")(total) - variable
    function = compiled(inputs, [total])
    data = [np.array([float(place)]) for place in range(len(inputs))]
    expected = data[0]
    for array in data[1:]:
        expected = np.exp(expected) - array
    assert np.array_equal(function(*data), expected)


def test_names_are_distinct_identifiers() -> None:
    names = Identifiers(("call",))
    variables = [tensor(name) for name in ("a", "a", "call", "for", "a_1", "ü", None)]
    found = [names[variable] for variable in variables]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() for name in found)
    assert names[variables[1]] == found[1]


def test_measuring_can_be_switched_on_and_off(compiled: Build) -> None:
    x = tensor("x", None)
    function = compiled([x], [op_named("exp")(x), matmul(dimshuffle(x, ("x", 0)), dimshuffle(x, (0, "x")))])
    data = np.ones(100)
    plain = function(data)
    assert function.profile.calls == 0
    function.measure()
    for measured in (function(data), function(data)):
        assert all(np.array_equal(one, other) for one, other in zip(plain, measured, strict=True))
    function.measure(False)
    function(data)
    profile = function.profile
    assert profile.calls == 2
    assert all(step.calls == 2 for step in profile.steps)
    assert next(step for step in profile.steps if "exp" in step.name).bytes == 2 * 1600
    assert 0.0 < sum(step.seconds for step in profile.steps) <= profile.call_seconds
    assert "Function profiling" in str(profile)


def test_axes_inserted_permuted_and_dropped_are_views(compiled: Build) -> None:
    data = np.arange(12.0).reshape(3, 1, 4)
    orders: list[tuple[Any, ...]] = [(0, 2), (2, 0), ("x", 2, 0), (2, "x", 1, 0, "x"), (1, 0, 2)]
    for order in orders:
        x = TensorType("float64", shape=(None, 1, None))("x")
        function = compiled([x], [dimshuffle(x, order)], kernels=False)
        (expected,) = dimshuffle(x, order).owner.op.perform([data])
        result = function(data)
        assert result.shape == expected.shape
        assert np.array_equal(result, expected)


def test_thousands_of_arguments_and_results(compiled: Build) -> None:
    """One kernel reads all of them: no expression of the driver may be as deep as there are arrays."""
    inputs = [tensor(None, None) for _ in range(2000)]
    total = inputs[0]
    for variable in inputs[1:]:
        total = total + variable
    function = compiled(inputs, [total, *(variable + total for variable in inputs)])
    data = [np.array([float(place)]) for place in range(len(inputs))]
    function.measure()
    first, *others = function(*data)
    assert first == sum(range(2000))
    assert np.array_equal(others, np.array(data) + first)


@pytest.mark.parametrize("name", ["way", "run", "frames", "key", "flags", "results", "call", "type"])
def test_inputs_may_have_the_names_that_the_text_uses(compiled: Build, name: str) -> None:
    one, other = tensor(name, None, None), tensor("other", None, None)
    function = compiled([one, other], [op_named("exp")(matmul(one, other)) + one])
    values = np.eye(3) * 0.5
    np.testing.assert_allclose(function(values, values), np.exp(values @ values) + values, rtol=1e-15)
