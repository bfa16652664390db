"""Encoding and decoding without any rule in between give a graph that computes the same."""

import numpy as np
import pytest

from esat.egraph.language.encode import encode
from esat.extract.decode import decode
from esat.extract.prices.class_values import term_value
from esat.extract.prices.value import Value
from esat.graph import FunctionGraph, TensorType, Variable
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.constants import constant
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.cast import cast
from esat.ops.normalization import softmax
from esat.ops.reduction import ARGMAX, MAX, SUM, reduce
from esat.ops.table import register_all

register_all()


def tensor(*shape: int | None, dtype: str = "float64") -> Variable:
    return TensorType(dtype, shape=shape)("x")


def round_trip(inputs: list[Variable], outputs: list[Variable]) -> FunctionGraph:
    graph = FunctionGraph(inputs, outputs)
    terms = encode(graph)
    shapes = [term_value(type).shape for type in terms.types]
    return decode(terms, graph, shapes)


def assert_same(inputs: list[Variable], outputs: list[Variable], values: list[np.ndarray]) -> FunctionGraph:
    result = round_trip(inputs, outputs)
    wanted = evaluate(outputs, dict(zip(inputs, values, strict=True)))
    got = evaluate(result.outputs, dict(zip(result.inputs, values, strict=True)))
    for new, old, variable in zip(got, wanted, outputs, strict=True):
        assert new.dtype == old.dtype == variable.tensor_type.dtype
        assert new.shape == old.shape
        np.testing.assert_array_equal(new, old)
    return result


RNG = np.random.default_rng(0)


def test_equal_expressions_become_one_node() -> None:
    x, y = tensor(None), tensor(None)
    result = assert_same([x, y], [(x + y) * 2.0, (x + y) * 3.0], [RNG.normal(size=5), RNG.normal(size=5)])
    assert [str(node.op) for node in result.toposort()].count("add") == 1


def test_a_constant_sub_graph_is_folded() -> None:
    x = tensor(None)
    two = constant(2.0)
    result = assert_same([x], [x * op_named("exp")(two * 3.0)], [RNG.normal(size=5)])
    assert "exp" not in [str(node.op) for node in result.toposort()]


def test_scalars_get_back_the_rank_their_users_need() -> None:
    x, s = tensor(None, None), tensor()
    one = tensor(1, 1)
    values = [RNG.normal(size=(3, 4)), np.array(2.5), RNG.normal(size=(1, 1))]
    assert_same([x, s, one], [x * s + one, dimshuffle(one, ()) * s, one + s], values)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axes: tuple[int, ...], keepdims: bool) -> None:
    x = tensor(None, 3, None)
    outputs = [reduce(kind, x, axes, keepdims=keepdims) for kind in (SUM, MAX)]
    assert_same([x], outputs, [RNG.normal(size=(2, 3, 4))])


def test_reductions_over_axes_of_size_one_and_of_scalars() -> None:
    x, s = tensor(None, 1), tensor()
    outputs = [reduce(SUM, x, 1), reduce(SUM, s), reduce(ARGMAX, s), reduce(ARGMAX, x, 0), softmax(x, 1)]
    assert_same([x, s], outputs, [RNG.normal(size=(4, 1)), np.array(3.0)])


def test_a_reduction_that_drops_axes_stays_one_node() -> None:
    x = tensor(None, None)
    result = assert_same([x], [reduce(SUM, x + 1.0, 1)], [RNG.normal(size=(3, 2))])
    assert [str(node.op) for node in result.toposort()] == ["add", "sum{1}"] or len(result) <= 3


def test_matrix_products_of_vectors_and_matrices() -> None:
    a, b = tensor(None, None), tensor(None, 5)
    matmul = op_named("matmul")
    batch = tensor(2, None, None)
    values = [RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5)), RNG.normal(size=(2, 5, 3))]
    assert_same([a, b, batch], [matmul(a, b), matmul(dimshuffle(b, ("x", 0, 1)), batch)], values)


def test_dtypes_and_uniform_constants() -> None:
    x = tensor(None, dtype="int32")
    ones = constant(np.ones((3, 4), dtype="float32"))
    outputs = [
        cast(x, "float32") * 2,
        x + 7,
        ones + dimshuffle(cast(x, "float32"), (0, "x")),
        x / 0,
        -0.0 * cast(x, "float64"),
    ]
    assert_same([x], outputs, [np.array([1, -2, 3], dtype="int32")])


def test_expected_sizes_of_terms() -> None:
    x, y = tensor(None, 7), tensor(None, 7)
    terms = encode(FunctionGraph([x, y], [x + y]))
    assert term_value(terms.types[terms.roots[0]], {(0, 0): 11.0}) == Value((11.0, 7.0), 11)


def test_rebuilt_nodes_keep_the_line_that_built_them() -> None:
    x = tensor(None)
    y = op_named("exp")(x)
    assert y.owner is not None
    result = round_trip([x], [y * 2.0])
    wheres = {node.op.name: node.where for node in result.toposort()}
    assert wheres["exp"] == y.owner.where
