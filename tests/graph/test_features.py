import pytest

import esat
from esat.errors import CycleError, GraphError
from esat.graph import Feature, FunctionGraph, NodeFinder, ReplaceValidate


@pytest.fixture
def graph():
    x, y = esat.scalar("x"), esat.scalar("y")
    return FunctionGraph([x, y], [esat.exp(x + y) + x], clone=False)


class Diary(Feature):
    def __init__(self):
        self.lines = []

    def on_attach(self, graph):
        self.lines.append("attach")

    def on_detach(self, graph):
        self.lines.append("detach")

    def on_import(self, graph, node):
        self.lines.append(f"import {node.op}")

    def on_prune(self, graph, node):
        self.lines.append(f"prune {node.op}")

    def on_change_input(self, graph, client, old, new, reason):
        self.lines.append(f"change {reason}")


def test_features_hear_of_every_change(graph):
    diary = Diary()
    graph.attach_feature(diary)
    x = graph.inputs[0]
    graph.replace(graph.outputs[0].owner.inputs[0], esat.sin(x), "rule")
    graph.remove_feature(diary)
    graph.replace(graph.outputs[0], x)
    assert diary.lines == ["attach", "import sin", "change rule", "prune exp", "prune add", "detach"]


def test_validate_undoes_what_is_refused(graph):
    class NoSin(Feature):
        def validate(self, graph):
            if any(node.op == esat.sin for node in graph.toposort()):
                raise GraphError("no sin")

    graph.attach_feature(ReplaceValidate())
    graph.attach_feature(NoSin())
    before, nodes = str(graph), set(graph.apply_nodes)
    x = graph.inputs[0]
    inner = graph.outputs[0].owner.inputs[0]
    with pytest.raises(GraphError, match="no sin"):
        graph.replace_validate(inner, esat.sin(x), "rule")
    assert str(graph) == before
    assert set(graph.apply_nodes) == nodes
    graph.replace_validate(inner, esat.cos(x))
    assert str(graph) == "[add(cos(x), x)]"


def test_all_or_nothing(graph):
    graph.attach_feature(ReplaceValidate())
    before = str(graph)
    x, y = graph.inputs
    top = graph.outputs[0]
    with pytest.raises(CycleError):
        graph.replace_all_validate([(y, esat.cos(x)), (x, top)])
    assert str(graph) == before
    with pytest.raises(GraphError, match="types differ"):
        graph.replace_all_validate([(y, x), (top, esat.vector())])
    assert str(graph) == before


@pytest.mark.parametrize("event", ["validate", "on_change_input", "on_import", "on_prune"])
@pytest.mark.parametrize("kind", [ValueError, KeyError, GraphError, ZeroDivisionError])
def test_whatever_a_feature_raises_leaves_the_graph_as_it_was(graph, event, kind):
    def refuse(self, *details):
        raise kind("mine")

    graph.attach_feature(ReplaceValidate())
    graph.attach_feature(type("Refusing", (Feature,), {event: refuse})())
    before, nodes = str(graph), set(graph.apply_nodes)
    clients = {variable: set(uses) for variable, uses in graph.clients.items()}
    x = graph.inputs[0]
    inner = graph.outputs[0].owner.inputs[0]
    for new in (esat.sin(x), esat.sin(esat.cos(inner))):
        with pytest.raises(kind, match="mine"):
            graph.replace_all_validate([(inner, new), (graph.outputs[0], x)], "rule")
        assert str(graph) == before
        assert set(graph.apply_nodes) == nodes
        assert {variable: set(uses) for variable, uses in graph.clients.items()} == clients


def test_attaching_twice_does_nothing(graph):
    graph.attach_feature(ReplaceValidate())
    graph.attach_feature(ReplaceValidate())
    graph.replace_validate(graph.outputs[0], graph.inputs[0])
    finder = ReplaceValidate()
    other = FunctionGraph([graph.inputs[0].clone()], [], features=[finder])
    other.remove_feature(finder)
    assert not hasattr(other, "replace_validate")


def test_node_finder_follows_changes(graph):
    graph.attach_feature(NodeFinder())
    assert len(graph.get_nodes(esat.add)) == 2
    assert graph.get_nodes(esat.mul) == []
    x = graph.inputs[0]
    graph.replace(graph.outputs[0].owner.inputs[0], x * x)
    assert [node.op for node in graph.get_nodes(esat.mul)] == [esat.mul]
    assert len(graph.get_nodes(esat.add)) == 1
    assert graph.get_nodes(esat.exp) == []
