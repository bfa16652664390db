"""Programs of real kernels: the layers below the runtime have tests of their own."""

from typing import Any

import numpy as np
import pytest
from assembled import assembled

import esat
from esat import codegen
from esat.graph import FunctionGraph, TensorType, Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.contraction import matmul
from esat.ops.normalization import softmax
from esat.ops.reduction import ARGMIN, MAX, SUM, reduce
from esat.phases.fusing.fusion import fuse
from esat.phases.memory.effects import Permissions
from esat.runtime import Executable
from esat.runtime.buffers import KEPT_PER_OUTPUT, POOLED_FROM


def tensor(name: str, *shape: int | None, dtype: str = "float64") -> Variable:
    return TensorType(dtype, shape=shape)(name)


def built(inputs: list[Variable], outputs: list[Variable]) -> Executable:
    graph = FunctionGraph(inputs, outputs)
    return assembled(graph, fuse(graph, codegen))


@pytest.fixture(scope="module")
def network() -> tuple[Executable, list[Variable], list[Variable]]:
    """A layer and its softmax, scaled: contractions, kernels, a view, a scalar input."""
    x, w, b, scale = tensor("x", None, None), tensor("w", None, None), tensor("b", None), tensor("scale")
    hidden = op_named("tanh")(matmul(x, w) + b)
    shifted = op_named("exp")(hidden - reduce(MAX, hidden, 1, keepdims=True))
    outputs = [
        shifted / reduce(SUM, shifted, 1, keepdims=True),
        reduce(SUM, op_named("exp")(x) * scale),
        matmul(dimshuffle(hidden, (1, 0)), x * scale),
    ]
    inputs = [x, w, b, scale]
    return built(inputs, outputs), inputs, outputs


LAYOUTS: dict[str, Any] = {
    "contiguous": lambda a: a,
    "fortran": np.asfortranarray,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "every second": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "read-only": lambda a: np.frombuffer(a.tobytes()).reshape(a.shape),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows", [1, 5])
def test_kernels_and_products_agree_with_the_interpreter(layout: str, rows: int, network: Any) -> None:
    function, inputs, outputs = network
    generator = np.random.default_rng(0)
    data = [generator.normal(size=size) for size in ((rows, 4), (4, 3), (3,))]
    given = [LAYOUTS[layout](array) for array in data]
    results = function(*given, 0.5)
    expected = evaluate(outputs, dict(zip(inputs, [*data, 0.5], strict=True)))
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape
        assert np.allclose(result, wanted, rtol=1e-13, atol=1e-15)


def test_an_empty_batch_gives_empty_results(network: Any) -> None:
    function, _, _ = network
    probabilities, total, product = function(np.empty((0, 4)), np.ones((4, 3)), np.ones(3), 2.0)
    assert probabilities.shape == (0, 3)
    assert total == 0.0
    assert np.array_equal(product, np.zeros((3, 4)))


def test_nothing_is_allocated_after_the_first_calls(network: Any) -> None:
    function, _, _ = network
    data = [np.ones((200, 4)), np.ones((4, 300)), np.ones(300), 2.0]
    addresses = []
    for _ in range(50):
        result = function(*data)[0]
        assert result.nbytes > POOLED_FROM
        addresses.append(result.ctypes.data)
        del result
    assert len(set(addresses)) <= KEPT_PER_OUTPUT


def test_the_source_shows_driver_and_kernels(network: Any) -> None:
    text = network[0].source()
    assert text.startswith("def call(*arguments, out=None):")
    assert text.count("\ndef kernel(") == sum(group.kind == "kernel" for group in network[0].steps)
    assert "# tanh(" in text


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "complex64"])
def test_dtypes_without_kernel_code_run_too(dtype: str) -> None:
    x = tensor("x", None, dtype=dtype)
    outputs = [op_named("add")(x, x), op_named("eq")(x, x)]
    data = np.array([0, 1, 1, 100]).astype(dtype)
    for result, wanted in zip(built([x], outputs)(data), evaluate(outputs, {x: data}), strict=True):
        assert result.dtype == wanted.dtype
        assert np.array_equal(result, wanted)


def in_place_cases() -> dict[str, tuple[list[Variable], list[Variable]]]:
    x, m = tensor("x", None), tensor("m", None, None)
    row = dimshuffle(x, ("x", 0))
    exp, mul, sub, add = (op_named(name) for name in ("exp", "mul", "sub", "add"))
    columns, rows = reduce(SUM, m, 0), reduce(MAX, m, 1, keepdims=True)
    return {
        "a vector beside a sum of rows": ([x, m], [mul(x, 2.0), add(x, columns)]),
        "a matrix and its sums": ([m], [mul(m, 2.0), columns, reduce(SUM, m, 1)]),
        "softmax along either axis": ([m], [mul(softmax(m, 1), m), softmax(m, 0)]),
        "extrema of what is overwritten": (
            [m, x],
            [mul(sub(m, row), rows), reduce(ARGMIN, m, 1), add(x, 1.0)],
        ),
        "a sum of everything first": ([m], [op_named("div")(m, reduce(SUM, m)), sub(exp(m), columns)]),
    }


@pytest.mark.parametrize("case", in_place_cases())
def test_kernels_overwrite_donated_inputs(case: str) -> None:
    inputs, outputs = in_place_cases()[case]
    permissions = Permissions(frozenset(range(len(inputs))))
    graph = FunctionGraph(inputs, outputs)
    function = assembled(graph, fuse(graph, codegen, permissions=permissions), permissions)
    assert function.overwrites
    generator = np.random.default_rng(0)
    for shape in ((3, 4), (70, 1300), (1, 5), (2500, 3)):
        data = [generator.normal(size=shape[-v.type.ndim :]) for v in inputs]  # type: ignore[attr-defined]
        expected = evaluate(outputs, dict(zip(inputs, data, strict=True)))
        for result, wanted in zip(function(*(array.copy() for array in data)), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12)


def test_functions_of_scattered_elements_are_computed_of_copies():
    x, y = esat.matrix("x"), esat.matrix("y")
    program = esat.compile(esat.Graph([x, y], esat.exp(x) * y))
    data = np.random.default_rng(4).standard_normal((40, 60))
    before = data.copy()
    wanted = np.exp(data[::2, ::3]) * data.T[:20, :20]
    np.testing.assert_allclose(program(data[::2, ::3], data.T[:20, :20]), wanted, rtol=1e-15)
    np.testing.assert_array_equal(data, before)
    large = np.broadcast_to(np.linspace(0, 1, 2000)[:, None], (2000, 1100))
    np.testing.assert_allclose(program(large, large), np.exp(large) * large, rtol=1e-15)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize("rank", [3, 4])
def test_sums_beside_their_operand(rank: int, axes: tuple[int, ...]) -> None:
    """One kernel reads an array in two loops, whose axes could be joined in one of them only."""
    x = tensor("x", *[None] * rank)
    values = np.random.default_rng(rank).normal(size=(4,) * rank)
    for array in (values, np.asfortranarray(values), values[::-1]):
        for reducer in (SUM, MAX):
            f = built([x], [reduce(reducer, x, axes, keepdims=True) + x, op_named("exp")(x)])
            summed = array.sum(axes, keepdims=True) if reducer is SUM else array.max(axes, keepdims=True)
            np.testing.assert_allclose(f(array)[0], summed + array, rtol=1e-12)
