from dataclasses import dataclass

import numpy as np
import pytest

import esat
from esat.errors import GradientError, GraphError
from esat.graph.op import Family, Op
from esat.graph.registry import function_named, op_named, register_op


class Twice(Op):
    """An op from outside the package."""

    name = "twice"
    constructor = "Twice"
    family = Family.LIBRARY

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        return (2 * inputs[0],)


def test_an_op_from_outside():
    x = esat.vector("x")
    y = Twice()(x)
    np.testing.assert_array_equal(esat.evaluate(y, {x: [1.0, 2.0]}), [2.0, 4.0])
    assert Twice() == Twice()
    assert hash(Twice()) == hash(Twice())
    assert Twice() != esat.exp
    assert repr(Twice()) == "<library op twice>"
    work = Twice().work([(3,)], [(3,)], [8, 8])
    assert (work.flops, work.bytes, work.calls) == (3, 48, 1)
    with pytest.raises(GradientError, match=r"twice(?s:.)*no gradient(?s:.)*test_op.py"):
        esat.grad(y.sum(), x)


@dataclass(frozen=True, eq=False)
class Times(Twice):
    """An op whose class says nothing of how its instances differ."""

    factor: object

    def perform(self, inputs):
        return (self.factor * inputs[0],)


def test_dataclasses_differ_by_their_fields():
    assert Times(3.0) == Times(3.0)
    assert hash(Times(3.0)) == hash(Times(3.0))
    assert Times(3.0) != Times(4.0)
    x = esat.vector("x")
    graph = esat.Graph([x], [Times(3.0)(x), Times(4.0)(x), Times(3.0)(x)])
    for mode in ("fast_run", "greedy", "debug"):
        function = esat.compile(graph, mode)
        assert len({node.op for node in function.optimized.toposort() if isinstance(node.op, Times)}) == 2
        for result, factor in zip(function(np.ones(2)), (3.0, 4.0, 3.0), strict=True):
            np.testing.assert_array_equal(result, np.full(2, factor))


def test_parameters_that_cannot_be_hashed_are_refused():
    with pytest.raises(GraphError, match=r"twice: .*types list: .*; give the class a method `properties`"):
        hash(Times([3.0]))


def test_registry():
    assert op_named("exp") is esat.exp
    with pytest.raises(GraphError, match="did you mean exp"):
        op_named("expp")
    with pytest.raises(GraphError, match="registered already"):
        register_op(type("Other", (Twice,), {"name": "exp"})())
    with pytest.raises(GraphError, match="constructor"):
        register_op(type("Other", (Twice,), {"name": "something", "constructor": "Exp"})())
    with pytest.raises(GraphError, match="import esat"):
        function_named("no such method")
