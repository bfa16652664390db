import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from effort import assert_near_linear

import esat
from esat.classic import OpSub, TopoOptimizer
from esat.errors import CompileError, DestroyError, GraphError
from esat.graph import Constant, FunctionGraph, Op, ReplaceValidate, TensorType, Variable
from esat.graph.op import Family
from esat.phases.fusing.fusion import fuse
from esat.phases.memory.destroy import DestroyHandler, DestroyPlan
from esat.phases.memory.effects import Effect, Permissions, effects_of_graph
from esat.phases.memory.inplace import work_in_place
from esat.phases.memory.step_order import StepOrder
from esat.phases.shape_values import ShapeFacts
from esat.phases.verify_stages import verify_destroyers


class Increment(Op):
    """Adds 1 to its first operand, where it stands."""

    name, constructor, family = "increment", "Increment", Family.LIBRARY
    destroy_map = {0: (0,)}  # noqa: RUF012 - as users write it

    def infer_types(self, inputs: Any) -> Any:
        return (inputs[0].type,)

    def perform(self, inputs: Any) -> Any:
        inputs[0] += 1.0
        return (inputs[0],)


class Plus(Increment):
    """Adds 1 to a copy of its first operand."""

    name, constructor = "plus", "Plus"
    destroy_map = {}  # noqa: RUF012

    def perform(self, inputs: Any) -> Any:
        return (inputs[0] + 1.0,)


increment, plus = Increment(), Plus()


def vector(name: str) -> Variable:
    return TensorType("float64", shape=(None,))(name)


def order_of(outputs: list[Variable], inputs: list[Variable], permissions: Permissions) -> list[str]:
    """Names of the nodes in a verified legal order."""
    graph = FunctionGraph(inputs, outputs)
    nodes, effects = effects_of_graph(graph, ShapeFacts(graph))
    plan = DestroyPlan(effects, graph.inputs, graph.outputs, permissions)
    order = plan.order.order()
    verify_destroyers([effects[number] for number in order], graph.inputs, graph.outputs, permissions)
    return [str(nodes[number].op) for number in order]


def test_readers_run_before_what_they_read_is_overwritten() -> None:
    x = vector("x")
    value = esat.exp(x)
    changed = increment(value)
    outputs = [changed, esat.sin(value), esat.cos(value[::-1])]
    order = order_of(outputs, [x], Permissions())
    assert order.index("increment") > max(order.index("sin"), order.index("cos"))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda x, v: [increment(x)], "the input x is not donated"),
        (lambda x, v: [increment(x[1:])], "the input x is not donated"),
        (lambda x, v: [increment(esat.constant(np.ones(3)))], "is a constant"),
        (lambda x, v: [increment(esat.shared(np.ones(3), name="w"))], "the shared variable w is not updated"),
        (lambda x, v: [increment(v), increment(v[::-1])], "overwrites exp.0 already"),
        (lambda x, v: [increment(v), v.T], "the output .* shows the memory of exp.0"),
        (lambda x, v: [increment(v) + v], "add .* reads and which can only run after it"),
        (
            lambda x, v: [increment(w := esat.sin(x)) * v, increment(v) * w],
            "which can only run after it|wait for each other",
        ),
    ],
)
def test_conflicts_are_named(build: Any, reason: str) -> None:
    x = vector("x")
    outputs = build(x, esat.exp(x))
    with pytest.raises(DestroyError, match=reason) as caught:
        fuse(FunctionGraph([x] if x in set(esat.graph.ancestors(outputs)) else [], outputs))
    assert "test_destroy.py" in str(caught.value)


def test_what_overwrites_what_it_reads_elsewhere_is_refused() -> None:
    class Both(Increment):
        name, constructor = "both", "Both"

    x = vector("x")
    value = esat.exp(x)
    with pytest.raises(DestroyError, match=r"its input 1 shows the memory of exp\.0 too"):
        fuse(FunctionGraph([x], [Both()(value, value[1:])]))


def test_a_donated_input_and_an_updated_variable_may_be_overwritten() -> None:
    x, w = vector("x"), esat.shared(np.ones(3), name="w")
    assert order_of([increment(x)], [x], Permissions(frozenset([0]))) == ["increment"]
    permissions = Permissions(frozenset(), (w,))
    order = order_of([esat.exp(w), increment(w)], [], permissions)
    assert order == ["exp", "increment"]
    again = order_of([esat.exp(increment(increment(x)))], [x], Permissions(frozenset([0])))
    assert again == ["increment", "increment", "exp"]


def test_the_verifier_finds_a_reader_that_comes_too_late() -> None:
    x = vector("x")
    value = esat.exp(x)
    graph = FunctionGraph([x], [increment(value), esat.sin(value)])
    _, effects = effects_of_graph(graph, ShapeFacts(graph))
    by_name = {effect.label: effect for effect in effects}
    late = [by_name["exp"], by_name["increment"], by_name["sin"]]
    with pytest.raises(CompileError, match=r"sin .* reads exp.0 after exp.0 was overwritten"):
        verify_destroyers(late, graph.inputs, graph.outputs, Permissions())
    with pytest.raises(CompileError, match="is not donated"):
        verify_destroyers([Effect("i", None, (x,), (value,), ((),), ((0,),))], [x], [], Permissions())


def test_the_feature_undoes_replacements_that_are_not_safe() -> None:
    x = vector("x")
    graph = FunctionGraph([x], [plus(esat.exp(x)), plus(x)], features=[ReplaceValidate(), DestroyHandler()])
    first, second = graph.outputs
    assert first.owner is not None
    assert second.owner is not None
    graph.replace_validate(first, increment(first.owner.inputs[0]), "in place")
    with pytest.raises(GraphError, match="is not donated"):
        graph.replace_validate(second, increment(second.owner.inputs[0]), "in place")
    assert [str(output.owner.op) for output in graph.outputs if output.owner] == ["increment", "plus"]


def test_the_feature_decides_as_a_new_plan_would() -> None:
    """Nodes in place one by one: whatever is allowed is safe, and hardly anything safe is refused."""
    allowed = refused = needless = 0
    for seed in range(60):
        rng = random.Random(seed)
        x = esat.matrix("x")
        values = [x]
        for _ in range(rng.randint(3, 16)):
            one, other = rng.choice(values[-4:]), rng.choice(values[-4:])
            make = [lambda o=one: plus(o), lambda o=one: plus(o.T), lambda o=one, p=other: o + p]
            values.append(rng.choice(make)())
        outputs = rng.sample(values[1:], 2)
        graph = FunctionGraph([x], outputs, features=[ReplaceValidate(), DestroyHandler()])
        nodes = [node for node in graph.toposort() if node.op is plus]
        rng.shuffle(nodes)
        for node in nodes:
            before = repr(graph)
            if rng.random() < 0.2:  # another change in between
                graph.replace_validate(node.outputs[0], plus(node.inputs[0]))
                continue
            trial = graph.clone()
            twin = trial.toposort()[graph.toposort().index(node)]
            trial.replace(twin.outputs[0], increment(twin.inputs[0]))
            try:
                trial.attach_feature(DestroyHandler())
                safe = True
            except DestroyError:
                safe = False
            try:
                graph.replace_validate(node.outputs[0], increment(node.inputs[0]))
            except DestroyError:
                assert repr(graph) == before
                refused += 1
                needless += safe
            else:
                assert safe
                allowed += 1
    assert min(allowed, refused) > 50
    assert needless == 0


def test_the_work_of_a_users_optimizer_in_place_grows_with_the_graph() -> None:
    def replacing(count: int) -> Callable[[], None]:
        x = vector("x")
        value = x
        for _ in range(count):
            value = plus(value)
        graph = FunctionGraph([x], [value, *(value[::-1].sum() for _ in range(3))])
        graph.attach_feature(DestroyHandler())

        def replace() -> None:
            profile = TopoOptimizer(OpSub(plus, increment)).optimize(graph)
            assert profile.changes == count - 1, "all but the first, which reads the input"

        return replace

    assert_near_linear(replacing, 300)


def test_random_graphs_have_legal_orders_and_keep_their_meaning() -> None:
    random.seed(4)
    in_place = 0
    for _ in range(150):
        x = esat.matrix("x")
        values = [x]
        for _ in range(random.randint(2, 14)):
            one = random.choice(values[-4:])
            part = random.choice([one[1:], one[:, 0], one[::-1]])
            make = [
                lambda o=one: o * 2.0,
                lambda o=one: o.T,
                lambda p=part: esat.set_subtensor(p, 3.0),
                lambda p=part: esat.inc_subtensor(p, 1.0),
                lambda o=one: o + o[::-1],
            ]
            values.append(random.choice(make)())
        graph = FunctionGraph([x], [values[-1], random.choice(values[1:])])
        result = work_in_place(graph, Permissions())
        in_place += sum(bool(node.op.destroy_map) for node in result.apply_nodes)
        nodes, effects = effects_of_graph(result, ShapeFacts(result))
        plan = DestroyPlan(effects, result.inputs, result.outputs, Permissions())
        order = plan.order.order()
        verify_destroyers([effects[n] for n in order], result.inputs, result.outputs, Permissions())
        data = np.arange(9.0).reshape(3, 3)
        known = {result.inputs[0]: data.copy()}
        for number in order:  # without any copies, as the program runs them
            node = nodes[number]
            operands = [v.data if isinstance(v, Constant) else known[v] for v in node.inputs]
            known.update(zip(node.outputs, node.op.perform(operands), strict=True))
        for output, wanted in zip(
            result.outputs, esat.evaluate(graph.outputs, {graph.inputs[0]: data}), strict=True
        ):
            assert np.array_equal(known[output], wanted)
    assert in_place > 100


def test_the_work_of_working_in_place_grows_with_the_graph() -> None:
    def overwriting(count: int) -> Callable[[], None]:
        random.seed(0)
        x = esat.vector("x")
        chain = [x]
        for number in range(count):
            chain.append(esat.inc_subtensor(chain[-1][number % 7 :], 1.0))
        outputs = [chain[-1], *(random.choice(chain[1:-1]).sum() for _ in range(count // 2))]
        graph = FunctionGraph([x], outputs)

        def overwrite() -> None:
            result = work_in_place(graph, Permissions())
            # All but the first, which would overwrite the input.
            assert sum(bool(node.op.destroy_map) for node in result.apply_nodes) == count - 1

        return overwrite

    assert_near_linear(overwriting, 300)


def test_an_order_takes_constraints_until_they_close_a_circle() -> None:
    order = StepOrder([[], [], [], [1]])
    assert order.add([2, 3], 0)
    assert order.order().index(0) > order.order().index(3)
    assert not order.add([0], 1), "1 leads to 3, and 3 to 0"
    assert not order.add([2], 2)
    assert order.path(1, 0) == [1, 3, 0]
    assert order.add([1], 2)
    found = order.order()
    assert found.index(1) < found.index(2) < found.index(0)
    assert StepOrder([[1], [0], []]).circular == [0, 1]
