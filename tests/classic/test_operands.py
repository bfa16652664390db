"""Operands of matrix products: transposes behind elementwise work, scalars on results."""

import numpy as np
import pytest

import esat
from esat.classic.operands import lift_transposes, scale_products
from esat.graph import FunctionGraph
from esat.graph.algorithms.evaluate import evaluate
from esat.ops.arrays.dimshuffle import DimShuffle
from esat.ops.contraction import MatMul


def products(graph):
    return [node for node in graph.toposort() if isinstance(node.op, MatMul)]


def ops_before(variable):
    return [] if variable.owner is None else [variable.owner.op.name, *ops_before(variable.owner.inputs[0])]


def assert_same_values(graph, inputs, outputs):
    rng = np.random.default_rng(3)
    data = [rng.standard_normal((5, 5)) for _ in inputs]
    found = evaluate(graph.outputs, dict(zip(graph.inputs, data, strict=True)))
    wanted = evaluate(outputs, dict(zip(inputs, data, strict=True)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("build", "before"),
    [
        (lambda x, y: esat.tanh(x.T) @ y, ["dimshuffle", "tanh"]),
        (lambda x, y: y @ esat.exp(2.0 * x.T), ["dimshuffle", "exp"]),
        (lambda x, y: (x.T * y.T) @ y, ["dimshuffle", "mul"]),
        (lambda x, y: x.T @ y, ["dimshuffle"]),
    ],
)
def test_a_transpose_moves_behind_elementwise_work(build, before):
    x, y = esat.matrix("x"), esat.matrix("y")
    result = build(x, y)
    graph = FunctionGraph([x, y], [result])
    lift_transposes(graph)
    (product,) = products(graph)
    transposed = next(v for v in product.inputs if v.owner is not None)
    assert ops_before(transposed)[: len(before)] == before
    assert isinstance(transposed.owner.op, DimShuffle)
    assert_same_values(graph, [x, y], [result])


def test_a_transpose_stays_where_others_read_what_is_computed_of_it():
    x, y = esat.matrix("x"), esat.matrix("y")
    shifted = esat.tanh(x.T)
    graph = FunctionGraph([x, y], [shifted @ y, shifted])
    lift_transposes(graph)
    assert products(graph)[0].inputs[0].owner.op.name == "tanh"


def test_transposes_of_several_orders_stay():
    x, y = esat.matrix("x"), esat.matrix("y")
    result = (x.T + y) @ y
    graph = FunctionGraph([x, y], [result])
    lift_transposes(graph)
    assert products(graph)[0].inputs[0].owner.op.name == "add"


@pytest.mark.parametrize(
    "build",
    [
        lambda x, y: y - (2.0 * x.T) @ y,
        lambda x, y: y - x @ (2.0 * y),
        lambda x, y: y - (2.0 * x).T @ y,
        lambda x, y: y - (x / 0.5) @ y,
    ],
)
def test_a_scalar_moves_to_a_result_that_a_kernel_reads(build):
    x, y = esat.matrix("x"), esat.matrix("y")
    result = build(x, y)
    graph = FunctionGraph([x, y], [result])
    lift_transposes(graph)
    scale_products(graph)
    (product,) = products(graph)
    for operand in product.inputs:
        assert "mul" not in ops_before(operand)
        assert "div" not in ops_before(operand)
    assert_same_values(graph, [x, y], [result])


def test_a_scalar_stays_where_the_operand_is_computed_for_the_product_alone():
    x, y = esat.matrix("x"), esat.matrix("y")
    graph = FunctionGraph([x, y], [y - (0.5 * esat.tanh(x)) @ y])
    scale_products(graph)
    assert products(graph)[0].inputs[0].owner.op.name == "mul"


def test_a_scalar_stays_where_no_kernel_reads_the_result():
    x, y = esat.matrix("x"), esat.matrix("y")
    graph = FunctionGraph([x, y], [(0.5 * x) @ y])
    scale_products(graph)
    assert products(graph)[0].inputs[0].owner.op.name == "mul"


def test_no_kernel_of_a_training_step_writes_against_the_order_of_memory():
    x, w, hidden = esat.matrix("x"), esat.matrix("w"), esat.matrix("hidden")
    active = esat.tanh(x @ hidden)
    slope = active @ w - 1.0
    result = [w - 1e-3 * (active.T @ slope), hidden - 1e-3 * (x.T @ ((slope @ w.T) * (1 - active * active)))]
    program = esat.compile(esat.Graph([x, w, hidden], result))
    kernels = [group for group in program.steps if group.kind == "kernel"]
    assert not any(isinstance(node.op, DimShuffle) for group in kernels for node in group.nodes)


def test_exact_modes_leave_scalars_where_they_are():
    x, y = esat.matrix("x"), esat.matrix("y")
    program = esat.compile(esat.Graph([x, y], y - (0.1 * x) @ y), mode="strict")
    assert products(program.optimized)[0].inputs[0].owner.op.name == "mul"
