import pytest

import esat
from esat.classic import (
    FromFunctionLocalOptimizer,
    LocalOptimizer,
    OpRemove,
    OpSub,
    TopoOptimizer,
    in_to_out,
    local_optimizer,
    out_to_in,
    random_order,
)
from esat.errors import OptimizerError
from esat.graph import Family, FunctionGraph, Op, TensorType


class Halves(Op):
    """Two outputs: the operand's first and second half."""

    name = "halves"
    constructor = "Halves"
    family = Family.LIBRARY

    def infer_types(self, inputs):
        return (inputs[0].type, inputs[0].type)


@pytest.fixture
def x():
    return esat.vector("x")


def optimize(outputs, inputs, local, order="in_to_out"):
    graph = FunctionGraph(inputs, outputs)
    TopoOptimizer(local, order).optimize(graph)
    return str(graph)


def test_the_decorator_makes_a_local_optimizer(x):
    @local_optimizer([esat.sin])
    def sin_to_cos(node):
        """Not true."""
        return [esat.cos(node.inputs[0])]

    assert isinstance(sin_to_cos, LocalOptimizer)
    assert sin_to_cos.label == "sin_to_cos"
    assert sin_to_cos.__doc__ == "Not true."
    assert optimize([esat.sin(esat.exp(x))], [x], sin_to_cos) == "[cos(exp(x))]"


def test_tracks_limits_what_is_seen(x):
    seen = []
    look = FromFunctionLocalOptimizer(lambda node: bool(seen.append(node.op.name)), [esat.exp], "look")
    optimize([esat.sin(esat.exp(x)), esat.exp(esat.cos(x))], [x], look)
    assert seen == ["exp", "exp"]
    seen.clear()
    look = FromFunctionLocalOptimizer(lambda node: bool(seen.append(node.op.name)), [type(esat.exp)], "look")
    optimize([esat.sin(esat.exp(x))], [x], look)
    assert sorted(seen) == ["exp", "sin"]


@pytest.mark.parametrize(
    ("order", "expected"), [("in_to_out", ["cos", "exp", "sin"]), ("out_to_in", ["sin", "exp", "cos"])]
)
def test_orders(x, order, expected):
    seen = []
    look = FromFunctionLocalOptimizer(lambda node: bool(seen.append(node.op.name)), None, "look")
    optimize([esat.sin(esat.exp(esat.cos(x)))], [x], look, order)
    assert seen == expected


def test_random_order_is_determined_by_its_seed(x):
    def visited(seed):
        seen = []
        look = FromFunctionLocalOptimizer(lambda node: bool(seen.append(node.op.name)), None, "look")
        ops = [esat.sin, esat.cos, esat.tan, esat.exp, esat.tanh, esat.sqrt]
        random_order(look, seed=seed).optimize(FunctionGraph([x], [op(x) for op in ops]))
        return seen

    assert visited(1) == visited(1)
    assert len({tuple(visited(seed)) for seed in range(5)}) > 1


def test_navigators_of_several(x):
    locals = [OpSub(esat.sin, esat.cos), OpSub(esat.cos, esat.tan)]
    for navigator in (in_to_out, out_to_in):
        graph = FunctionGraph([x], [esat.sin(x)])
        navigator(*locals).optimize(graph)
        assert str(graph) == "[tan(x)]"


def test_none_stands_for_an_unused_output(x):
    first, second = Halves()(x)

    @local_optimizer([Halves()])
    def drop(node):
        return [esat.exp(node.inputs[0]), None]

    assert optimize([first], [x], drop) == "[exp(x)]"
    with pytest.raises(OptimizerError, match=r"None for .* which is used"):
        optimize([first, second], [x], drop)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([], "0 replacements for the 1 outputs"),
        ([1.0], "not a Variable"),
        (lambda x: [esat.cast(x, "int64")], "of type"),
        (lambda x: [x.sum()], "of type"),
    ],
)
def test_wrong_answers_are_refused(x, answer, reason):
    wrong = FromFunctionLocalOptimizer(lambda node: answer(x) if callable(answer) else answer, None, "wrong")
    graph = FunctionGraph([x], [esat.exp(x)], clone=False)
    with pytest.raises(OptimizerError, match=reason):
        TopoOptimizer(wrong).optimize(graph)
    assert str(graph) == "[exp(x)]"


def test_op_remove_needs_as_many_inputs_as_outputs(x):
    with pytest.raises(OptimizerError, match="2 inputs cannot stand for 1 outputs"):
        optimize([x + x], [x], OpRemove(esat.add))


def test_a_navigator_takes_local_optimizers_and_known_orders():
    with pytest.raises(OptimizerError, match="LocalOptimizer"):
        TopoOptimizer(esat.exp)
    with pytest.raises(OptimizerError, match="order is one of"):
        TopoOptimizer(OpRemove(esat.neg), "sideways")


def test_a_replacement_a_feature_refuses_counts_as_none(x):
    class NoCos(esat.Feature):
        def validate(self, graph):
            if any(node.op == esat.cos for node in graph.apply_nodes):
                raise esat.GraphError("no cos")

    graph = FunctionGraph([x], [esat.sin(x)], features=[NoCos()])
    profile = TopoOptimizer(OpSub(esat.sin, esat.cos)).optimize(graph)
    assert profile.changes == 0
    assert str(graph) == "[sin(x)]"


def test_more_is_allowed_to_be_known_of_sizes(x):
    known = TensorType("float64", shape=(3,))

    y = known.make_variable("y")
    graph = FunctionGraph([x, y], [esat.exp(x) + esat.exp(y)])

    @local_optimizer([esat.exp])
    def use_y(node):
        return [graph.inputs[1]]

    TopoOptimizer(use_y).optimize(graph)
    assert str(graph) == "[add(y, y)]"


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (lambda node: True, "True"),
        (lambda node: node.inputs[0], "x"),
        (lambda node: 3, "3"),
        (lambda node: "xy", "'xy'"),
        (lambda node: object, "object"),
        (lambda node: {node.inputs[0]}, "{x}"),
        (lambda node: {node.outputs[0]: 1.0}, "1.0, which is not a Variable"),
        (lambda node: {"x": node.inputs[0]}, "'x', which is not a Variable"),
        (lambda node: [1.0], "1.0, which is not a Variable"),
        (lambda node: [], "0 replacements for the 1 outputs"),
    ],
)
def test_answers_that_mean_nothing_name_the_optimizer(answer, shown, mode):
    local = FromFunctionLocalOptimizer(answer, [esat.erf], "odd_one")
    esat.optdb["canonicalize"].register("odd_one", local, "fast_run")
    x = esat.vector("x")
    try:
        with pytest.raises(OptimizerError, match=f"^odd_one gives .*{shown}"):
            esat.compile(esat.Graph([x], esat.erf(x)), mode)
    finally:
        esat.optdb["canonicalize"].remove("odd_one")
    assert esat.compile(esat.Graph([x], esat.erf(x)), mode)([0.0]) == [0.0]
