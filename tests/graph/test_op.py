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
