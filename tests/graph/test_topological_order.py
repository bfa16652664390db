import random

import pytest
from effort import assert_near_linear

import esat
from esat.errors import CycleError
from esat.graph import FunctionGraph, ReplaceValidate, TopologicalOrder


def random_graph(source: random.Random, size: int) -> FunctionGraph:
    x = esat.vector("x")
    values = [x, esat.exp(x)]
    for _ in range(size):
        values.append(source.choice([esat.add, esat.mul])(*source.choices(values, k=2)))
    return FunctionGraph([x], [values[-1], values[-2]])


def is_cyclic(graph: FunctionGraph) -> bool:
    try:
        graph.toposort()
    except CycleError:
        return True
    return False


@pytest.mark.parametrize("seed", range(20))
def test_refuses_exactly_the_replacements_that_make_cycles(seed):
    source = random.Random(seed)
    graph = random_graph(source, 30)
    graph.attach_feature(ReplaceValidate())
    refused = 0
    for _ in range(60):
        old, new = source.choices(list(graph.clients), k=2)
        if source.random() < 0.5:
            new = esat.tanh(new)
        trial = FunctionGraph(graph.inputs, graph.outputs)
        names = dict(zip(graph.toposort(), trial.toposort(), strict=True))
        old_copy, new_copy = copy_of(old, names, graph, trial), copy_of(new, names, graph, trial)
        trial.replace(old_copy, new_copy)
        try:
            graph.replace_validate(old, new)
        except CycleError:
            refused += 1
            assert is_cyclic(trial)
        else:
            assert not is_cyclic(trial)
        assert not is_cyclic(graph)
    assert refused


def copy_of(variable, names, graph, trial):
    if variable is graph.inputs[0]:
        return trial.inputs[0]
    if variable.owner in names:
        return names[variable.owner].outputs[0]
    return esat.tanh(copy_of(variable.owner.inputs[0], names, graph, trial))


def test_a_cycle_made_without_asking_is_found_and_can_be_undone():
    x = esat.vector("x")
    inner = esat.exp(x)
    outer = esat.tanh(inner)
    graph = FunctionGraph([x], [outer], clone=False)
    graph.attach_feature(TopologicalOrder())
    (client,) = graph.clients[x]
    graph.change_input(client, outer)
    with pytest.raises(CycleError):
        graph.validate()
    graph.change_input(client, x)
    graph.validate()
    assert str(graph) == "[tanh(exp(x))]"


def test_the_work_of_replacements_grows_with_their_number():
    def replacements(count):
        x = esat.vector("x")
        value = x
        for _ in range(count):
            value = esat.tanh(value)
        graph = FunctionGraph([x], [value])
        graph.attach_feature(ReplaceValidate())

        def replace():
            for node in graph.toposort():
                graph.replace_validate(node.outputs[0], esat.sin(esat.cos(node.inputs[0])))
            assert len(graph) == 2 * count

        return replace

    assert_near_linear(replacements, 500)
