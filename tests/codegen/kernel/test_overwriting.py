"""Kernels in place: which outputs may replace which inputs, and that they then compute the same."""

import numpy as np
import pytest
from codegen.kernel_cases import group_of, op, reference, variable
from codegen.targets import HOST

from esat.codegen import compile_kernel, lower, overwritable, overwrite, verify
from esat.errors import CompileError
from esat.graph import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.normalization import softmax
from esat.ops.reduction import SUM, reduce


def check_in_place(output: Variable, inputs: list[Variable], replaced: int, data: list[np.ndarray]) -> None:
    group = group_of([output], inputs)
    assert list(group.inputs) == inputs
    (wanted,) = reference(group, dict(zip(inputs, data, strict=True)))
    kernel = overwrite(lower(group), 0, replaced)
    verify(kernel)
    assert kernel.operands == tuple(place for place in range(len(inputs)) if place != replaced)
    held = data[replaced].copy()
    compile_kernel(kernel, HOST)(held, *(data[place] for place in kernel.operands))
    np.testing.assert_allclose(held, wanted, rtol=1e-12)


def test_an_update_step_in_place() -> None:
    weights, gradient = (variable("float64", None, None) for _ in range(2))
    rate = variable("float64")
    step = op("sub", weights, op("mul", gradient, rate))
    inputs = [rate, gradient, weights]
    assert overwritable(lower(group_of([step], inputs))) == ((0, 1), (0, 2))
    rng = np.random.default_rng(0)
    data = [np.array(0.1), rng.random((30, 50)), rng.random((30, 50))]
    check_in_place(step, inputs, 2, data)
    check_in_place(step, inputs, 1, data)


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_in_place(axis: int) -> None:
    x = variable("float64", None, None)
    check_in_place(softmax(x, axis), [x], 0, [np.random.default_rng(1).random((9, 1200))])


def test_what_is_read_again_or_elsewhere_is_not_replaced() -> None:
    x, row = variable("float64", None, None), variable("float64", 1, None)
    centred = op("sub", x, reduce(SUM, x, 1, keepdims=True))
    assert overwritable(lower(group_of([centred], [x]))) == ((0, 0),)
    both = op("add", op("exp", op("sub", x, reduce(SUM, op("exp", x), 1, keepdims=True))), op("exp", x))
    assert overwritable(lower(group_of([both], [x]))) == ()
    assert overwritable(lower(group_of([op("add", x, dimshuffle(x, (1, 0)))], [x]))) == ()
    assert overwritable(lower(group_of([op("add", x, row)], [x, row]))) == ((0, 0),)
    assert overwritable(lower(group_of([op("gt", x, 0.0)], [x]))) == ()
    with pytest.raises(CompileError, match="cannot replace"):
        overwrite(lower(group_of([op("gt", x, 0.0)], [x])), 0, 0)
