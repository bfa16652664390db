import numpy as np
import pytest

import esat
from esat.errors import DtypeError, GraphError


def test_outputs_and_updates():
    x, w = esat.vector("x"), esat.shared(np.ones(2), "w")
    graph = esat.Graph([x], [x * w], updates={w: w + x})
    function_graph = graph.function_graph()
    assert graph.updated == (w,)
    assert not graph.single_output
    assert [str(v) for v in function_graph.inputs] == ["x"]
    assert str(function_graph) == "[mul(x, w), add(w, x)]"
    assert function_graph.shared_variables == [w]
    assert esat.Graph(x, x + 1).single_output
    assert esat.Graph([], 3.0).function_graph().outputs[0].data == 3
    assert esat.Graph([x], [], updates=[(w, x)]).updates == ((w, x),)


def test_the_graph_is_immutable():
    x = esat.vector("x")
    with pytest.raises(AttributeError):
        esat.Graph([x], x).inputs = ()


def test_givens():
    x, y, w = esat.vector("x"), esat.vector("y"), esat.shared(np.ones(2), "w")
    graph = esat.Graph([y], esat.exp(x) * w, givens={x: y * 2, w: y}, updates={w: x + w})
    assert str(graph.function_graph()) == "[mul(exp(*1 -> mul(y, dimshuffle{x}(2.0))), y), add(*1, y)]"
    assert str(esat.Graph([x], esat.exp(x), givens=[(x, x + x)]).function_graph()) == "[exp(add(x, x))]"


def test_updates_are_cast_where_nothing_is_lost():
    w = esat.shared(np.ones(2), "w")
    narrow = esat.vector("n", dtype="float32")
    assert esat.Graph([narrow], [], updates={w: narrow}).updates[0][1].dtype == "float64"
    half = esat.shared(np.ones(2, "float32"), "half")
    with pytest.raises(GraphError, match="update of half"):
        esat.Graph([], [], updates={half: w})


def test_errors():
    x, y, w = esat.vector("x"), esat.vector("y"), esat.shared(np.ones(2), "w")
    cases = {
        "Constant": lambda: esat.Graph([esat.constant(1.0)], x),
        "twice among": lambda: esat.Graph([x, x], x),
        "nothing depends on the input y": lambda: esat.Graph([x, y], x),
        "which is not among the inputs": lambda: esat.Graph([x], x + y),
        "only shared variables": lambda: esat.Graph([x], x, updates={y: x}),
        "updated twice": lambda: esat.Graph([x], x, updates=[(w, x), (w, x)]),
        "given twice": lambda: esat.Graph([y], x, givens=[(x, y), (x, y)]),
        "update of w": lambda: esat.Graph([x], x, updates={w: x.sum()}),
        "given for x": lambda: esat.Graph([y], x, givens={x: y.sum()}),
        "only Variables can be given": lambda: esat.Graph([y], y, givens={"x": y}),
        "implicit input": lambda: esat.Graph([w], w),
        "on_unused_input": lambda: esat.Graph([x], x, on_unused_input="shrug"),
    }
    for message, build in cases.items():
        with pytest.raises(GraphError, match=message):
            build()
    assert len(esat.Graph([x, y], x, on_unused_input="ignore").function_graph().inputs) == 2


def test_what_givens_replace_is_not_needed():
    x, y = esat.vector("x"), esat.vector("y")
    esat.Graph([y], x + 1, givens={x: y})
    with pytest.raises(GraphError, match="nothing depends on the input x"):
        esat.Graph([x, y], x + 1, givens={x: y})


def test_shared_variables():
    w = esat.shared([[1, 2]], "w")
    assert w.dtype == "int64"
    assert w.type.shape == (None, None)
    assert esat.shared(np.ones((1, 3)), shape=(1, None)).type.shape == (1, None)
    assert esat.shared(1, dtype="float32").get_value().dtype == np.float32
    assert str(esat.shared(2.0, "s")) == "s"
    array = np.ones(3)
    held = esat.shared(array)
    array[0] = 7
    assert held.get_value()[0] == 1


def test_what_is_no_variable_is_told_by_its_place():
    x = esat.vector("x")
    for inputs, place in (([x, 3.0], 1), ([np.ones(2)], 0), (2, 0)):
        with pytest.raises(GraphError, match=rf"input {place} is .*esat\.vector"):
            esat.Graph(inputs, x * 2)
    with pytest.raises(DtypeError, match="output 1 is no Variable"):
        esat.Graph([x], [x, "x"])
    with pytest.raises(esat.errors.GradientError, match="differentiate by Variables"):
        esat.grad(x.sum(), 3.0)
    rows = [esat.tensor(dtype="float64", shape=(size,)) for size in (2, 3)]
    with pytest.raises(esat.errors.ShapeError, match=r"stack.*different shapes: \(2,\), \(3,\)"):
        esat.stack(rows)
