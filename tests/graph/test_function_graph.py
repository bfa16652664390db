import numpy as np
import pytest

import esat
from esat.errors import CycleError, GraphError
from esat.graph import FunctionGraph, Variable


@pytest.fixture
def xyz():
    return esat.scalar("x"), esat.scalar("y"), esat.scalar("z")


def check_clients(graph):
    """Back pointers are exactly the uses that nodes and outputs make."""
    uses = {variable: [] for variable in graph.clients}
    for node in graph.toposort():
        for position, operand in enumerate(node.inputs):
            uses[operand].append((node, position))
    for position, output in enumerate(graph.outputs):
        uses[output].append(("output", position))
    key = lambda client: (id(client[0]), client[1])
    for variable, expected in uses.items():
        assert sorted(graph.clients[variable], key=key) == sorted(expected, key=key)
    assert set(graph.apply_nodes) == set(graph.toposort())


def test_the_users_graph_is_not_touched(xyz):
    x, y, _ = xyz
    out = x + y
    graph = FunctionGraph([x, y], [out])
    assert x.clients is None
    assert graph.inputs[0] is not x
    assert graph.inputs[0].name == "x"
    assert graph.outputs[0] is not out
    assert FunctionGraph([x, y], [out], clone=False).outputs[0] is out


def test_clients(xyz):
    x, y, _ = xyz
    graph = FunctionGraph([x, y], [(x + y) * x, x])
    new_x = graph.inputs[0]
    assert [(getattr(user, "op", user), place) for user, place in graph.clients[new_x]] == [
        (esat.mul, 1), ("output", 1), (esat.add, 0)
    ] or len(graph.clients[new_x]) == 3  # fmt: skip
    check_clients(graph)


def test_replace(xyz):
    x, y, z = xyz
    graph = FunctionGraph([x, y, z], [esat.exp(x + y) * (x + y)], clone=False)
    old = graph.outputs[0].owner.inputs[1]
    uses = graph.replace(old, z)
    assert [(user.op, place) for user, place in uses] == [(esat.mul, 1)]
    assert str(graph) == "[mul(exp(add(x, y)), z)]"
    check_clients(graph)
    graph.replace(graph.outputs[0], x)
    assert str(graph) == "[x]"
    assert len(graph) == 0
    assert set(graph.clients) == {x, y, z}
    check_clients(graph)


def test_replace_by_something_built_on_the_old(xyz):
    x, y, z = xyz
    graph = FunctionGraph([x, y], [esat.exp(x + y)], clone=False)
    inner = graph.outputs[0].owner.inputs[0]
    graph.replace(inner, esat.sin(x))
    assert str(graph) == "[exp(sin(x))]"
    check_clients(graph)
    with pytest.raises(GraphError, match="not among the inputs"):
        graph.replace(graph.outputs[0], esat.cos(x) + z)
    check_clients(graph)


def test_unused_parts_are_pruned_and_shared_ones_kept(xyz):
    x, y, z = xyz
    common = x * y
    graph = FunctionGraph([x, y, z], [esat.exp(common), esat.sin(esat.cos(common))], clone=False)
    graph.replace(graph.outputs[1], z)
    assert str(graph) == "[exp(mul(x, y)), z]"
    check_clients(graph)


def test_what_cannot_be_replaced(xyz):
    x, y, _ = xyz
    graph = FunctionGraph([x, y], [x + y], clone=False)
    with pytest.raises(GraphError, match="types differ"):
        graph.replace(graph.outputs[0], esat.eq(x, y), "a test")
    with pytest.raises(GraphError, match="not part"):
        graph.replace(esat.scalar(), x)
    assert graph.replace(x, x) == []


def test_types_may_gain_known_sizes():
    v = esat.vector("v")
    graph = FunctionGraph([v], [v + 1], clone=False)
    graph.replace(graph.outputs[0], esat.constant(np.ones(3)))
    assert graph.outputs[0].type.shape == (3,)


def test_cycles_are_found(xyz):
    x, y, _ = xyz
    first = x + y
    second = first * y
    graph = FunctionGraph([x, y], [second], clone=False)
    graph.replace(x, second)
    with pytest.raises(CycleError):
        graph.toposort()


def test_toposort_is_an_order_and_the_same_each_time(xyz):
    x, y, z = xyz
    graph = FunctionGraph([x, y, z], [(x + y) * (y + z) - esat.exp(x + y), z * z])
    order = graph.toposort()
    place = {node: number for number, node in enumerate(order)}
    for node in order:
        for operand in node.inputs:
            assert operand.owner is None or place[operand.owner] < place[node]
    assert graph.toposort() == order
    assert len(graph) == len(order)


def test_deep_graphs():
    x = esat.scalar("x")
    y = x
    for _ in range(5000):
        y = y + 1
    graph = FunctionGraph([x], [y])
    assert len(graph) == 5000
    assert str(graph).count("add") == 5000
    assert esat.evaluate(y, {x: 0.0}) == 5000
    assert esat.evaluate(esat.grad(y, x), {x: 0.0}) == 1


def test_boundaries(xyz):
    x, y, _ = xyz
    inner = x * y
    graph = FunctionGraph([inner, y], [inner + y])
    assert len(graph) == 1
    with pytest.raises(GraphError, match="Constant"):
        FunctionGraph([esat.constant(1.0)], [x])
    with pytest.raises(GraphError, match="twice"):
        FunctionGraph([x, x], [x])
    with pytest.raises(GraphError, match=r"depend on y \(scalar"):
        FunctionGraph([x], [x + y])
    with pytest.raises(GraphError, match="are Variables"):
        FunctionGraph([x], [1.0])
    with pytest.raises(GraphError, match="implicit input"):
        FunctionGraph([esat.shared(1.0)], [x])


def test_shared_variables_and_copies():
    w = esat.shared(np.ones(2), "w")
    x = esat.vector("x")
    graph = FunctionGraph([x], [x + w, w * 2])
    assert graph.shared_variables == [w]
    copy = graph.clone()
    assert str(copy) == str(graph)
    assert copy.outputs[0] is not graph.outputs[0]
    assert isinstance(copy.inputs[0], Variable)
