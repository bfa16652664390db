from collections.abc import Sequence

from esat.graph import FunctionGraph, Op, TensorType, Variable
from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.graph.types import Type
from esat.ops.contraction import matmul
from esat.ops.creation import ALLOC, arange
from esat.ops.reduction import SUM, reduce
from esat.ops.shape import size_of
from esat.ops.view import reshape
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
