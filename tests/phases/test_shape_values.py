from collections.abc import Sequence

import numpy as np
import pytest

import esat
from esat.errors import ShapeError
from esat.graph import FunctionGraph, Op, TensorType, Variable
from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.ops.arrays.creation import ALLOC, arange
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import reshape
from esat.ops.contraction import matmul
from esat.ops.reduction import SUM, reduce
from esat.phases.shape_values import ShapeFacts


def matrix(name: str) -> Variable:
    return TensorType("float64", shape=(None, None))(name)


class Unknown(Op):
    """A vector of any length."""

    name, constructor, family = "unknown", "Unknown", Family.LIBRARY

    def infer_types(self, inputs: Sequence[Variable]) -> tuple[Type, ...]:
        return (TensorType("float64", shape=(None,)),)


def facts(inputs: Sequence[Variable], *outputs: Variable) -> ShapeFacts:
    # Without a copy of the graph, the facts speak of the variables of the test.
    return ShapeFacts(FunctionGraph(inputs, outputs, clone=False))


def test_shapes_follow_through_everything_whose_type_tells_them() -> None:
    x, w = matrix("x"), matrix("w")
    product = matmul(x, w)
    outputs = [
        reduce(SUM, op_named("exp")(product), 1),
        reshape(product, (-1,)),
        reshape(product, (size_of(w, 1), -1)),
        ALLOC(0.0, size_of(x, 0), 3),
    ]
    assert set(outputs) <= facts([x, w], *outputs).early


def test_what_values_decide_is_late_and_what_depends_on_it_too() -> None:
    x = matrix("x")
    unknown = Unknown()(x)
    after = op_named("exp")(unknown)
    number = TensorType("int64")("n")
    counted = ALLOC(0.0, number)
    found = facts([x, number], after, counted, size_of(unknown, 0), reduce(SUM, after))
    assert not found.early & {unknown, after, counted}
    assert not found.values


def test_arithmetic_on_sizes_is_a_value_but_not_on_elements() -> None:
    x = matrix("x")
    count = op_named("mul")(size_of(x, 0), size_of(x, 1))
    mean = reduce(SUM, x) / count
    ramp = arange(size_of(x, 0))
    found = facts([x], mean, ramp)
    names = {node.op.name for node in found.values}
    assert {"mul", "shape_i"} <= names
    assert mean.owner not in found.values
    assert ramp.owner not in found.values, "a vector of any length is not kept"
    assert ramp in found.early


@pytest.mark.parametrize("mode", ["fast_run", "o2", "strict", "greedy", "fast_compile"])
def test_a_size_that_other_operands_tell_is_checked_where_it_is_computed(mode):
    """The type of ``x[mask]`` has two elements here; how many it really has is known when it has run."""
    x, mask, pair = esat.vector("x"), esat.vector("mask", dtype="bool"), esat.vector("pair", shape=(2,))
    chosen = x[mask]
    graph = esat.Graph([x, mask, pair], [chosen + pair, esat.exp(chosen).sum(), esat.cumsum(chosen) * 2])
    function = esat.compile(graph, mode)
    given = np.arange(3.0)
    added, total, running = function(given, np.array([True, False, True]), np.ones(2))
    assert added.tolist() == [1.0, 3.0]
    assert running.tolist() == [0.0, 4.0]
    np.testing.assert_allclose(total, np.exp([0.0, 2.0]).sum())
    for chosen_places in ([True, True, True], [True, False, False], [False, False, False]):
        with pytest.raises(ShapeError, match=r"(?s)test_shape_values.py:\d+"):
            function(given, np.array(chosen_places), np.ones(2))


@pytest.mark.parametrize("mode", ["fast_run", "o2", "strict"])
def test_a_size_that_a_mask_alone_tells(mode):
    x = esat.vector("x", shape=(3,))
    chosen = (x * 2)[np.array([True, False, True])]
    function = esat.compile(esat.Graph([x], [esat.exp(chosen) + x[:2], chosen * x[0]]), mode)
    first, second = function(np.arange(3.0))
    np.testing.assert_allclose(first, np.exp([0.0, 4.0]) + np.arange(2))
    assert second.tolist() == [0.0, 0.0]
