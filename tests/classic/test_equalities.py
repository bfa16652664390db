import numpy as np
import pytest

import esat
from esat.classic import OpSub, OscillationWarning, PatternSub, local_optimizer
from esat.classic.equalities import CollectEqualities
from esat.egraph.language.encode import encode
from esat.errors import EsatWarning
from esat.graph import FunctionGraph, TensorType


@pytest.fixture
def x():
    return esat.vector("x")


def collect(graph, *locals):
    collector = CollectEqualities(locals)
    profile = collector.optimize(graph)
    return [
        f"{FunctionGraph(graph.inputs, [one.left])} = {FunctionGraph(graph.inputs, [one.right])}"
        for one in collector.found
    ], profile


def test_the_graph_stays_and_answers_are_asked_about(x):
    graph = FunctionGraph([x], [esat.exp(esat.sin(x))])
    found, profile = collect(graph, OpSub(esat.sin, esat.cos), OpSub(esat.cos, esat.tan))
    assert found == ["[sin(x)] = [cos(x)]", "[cos(x)] = [tan(x)]"]
    assert str(graph) == "[exp(sin(x))]"
    assert len(graph) == 2
    assert profile.applied == {"sin -> cos": 1, "cos -> tan": 1}


def test_what_leads_back_ends(x):
    y = esat.vector("y")
    graph = FunctionGraph([x, y], [x + y])
    commute = PatternSub((esat.add, "a", "b"), (esat.add, "b", "a"))
    found, _ = collect(graph, commute)
    assert found == ["[add(x, y)] = [add(y, x)]"]


def test_growth_without_end_ends(x):
    @local_optimizer([esat.exp])
    def more(node):
        return [esat.exp(esat.neg(esat.neg(node.inputs[0])))]

    with pytest.warns(OscillationWarning, match="more found something to do 10 times"):
        found, _ = collect(FunctionGraph([x], [esat.exp(x)]), more)
    assert len(found) == 10


def test_optimizers_may_ask_who_uses_new_nodes(x):
    asked = []

    @local_optimizer([esat.cos])
    def ask(node):
        asked.append([str(user) for user, _ in node.outputs[0].clients])
        return False

    collect(FunctionGraph([x], [esat.exp(esat.sin(x))]), OpSub(esat.sin, esat.cos), ask)
    assert len(asked) == 1
    assert "exp" in asked[0][0]


def test_a_mapping_equates_what_it_maps(x):
    @local_optimizer([esat.sin])
    def lift(node):
        user, _ = node.outputs[0].clients[0]
        return {user.outputs[0]: esat.tanh(node.inputs[0])}

    found, _ = collect(FunctionGraph([x], [esat.exp(esat.sin(x))]), lift)
    assert found == ["[exp(sin(x))] = [tanh(x)]"]


def test_what_an_e_graph_cannot_hold_is_told_of(x):
    one = TensorType("float64", shape=(1,)).make_variable("one")
    graph = FunctionGraph([x, one], [esat.sin(x), esat.exp(one)], clone=False)

    @local_optimizer([esat.sin])
    def claim(node):
        return [one]

    with pytest.warns(EsatWarning, match="claim .* cannot hold both"):
        found, _ = collect(graph, claim)
    assert found == []


def test_encoded_pairs(x):
    w = esat.shared(np.ones(3), name="w")
    graph = FunctionGraph([x], [esat.exp(esat.sin(x))], clone=False)
    sine = graph.outputs[0].owner.inputs[0]
    terms = encode(graph, [(sine, esat.cos(x) * w)])
    (left, right) = terms.equal[0]
    assert terms.terms[left].constructor == "Sin"
    assert terms.terms[right].constructor == "Mul"
    assert w in set(terms.inputs)
    assert encode(graph).equal == ()


@pytest.mark.parametrize("mode", ["fast_run", "unsafe"])
def test_claims_may_be_told_of_copies_of_several_graphs(mode):
    """What is asked about for the third time meets expressions of what was asked about second."""
    x, c = esat.tensor3("x"), esat.TensorType("float64", shape=(1,))("c")
    output = esat.median(esat.clip(c, -1, x), axis=0, keepdims=True)[..., -1]
    values, bound = np.random.default_rng(4).normal(size=(2, 3, 4)), np.array([0.5])
    wanted = np.median(np.clip(bound, -1, values), axis=0, keepdims=True)[..., -1]
    function = esat.compile(esat.Graph([x, c], output), mode)
    np.testing.assert_allclose(function(values, bound), wanted)
