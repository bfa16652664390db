import pytest

import esat
from esat.classic import (
    EquilibriumOptimizer,
    MergeOptimizer,
    OpRemove,
    OpSub,
    OscillationWarning,
    PatternSub,
    local_optimizer,
)
from esat.errors import OptimizerError
from esat.graph import FunctionGraph


@pytest.fixture
def x():
    return esat.vector("x")


def test_applies_until_nothing_changes(x):
    steps = [OpSub(esat.sin, esat.cos), OpSub(esat.cos, esat.tan), OpRemove(esat.tan)]
    for order in (steps, steps[::-1]):
        graph = FunctionGraph([x], [esat.exp(esat.sin(esat.cos(x)))])
        profile = EquilibriumOptimizer(order).optimize(graph)
        assert str(graph) == "[exp(x)]"
        assert profile.applied == {"sin -> cos": 1, "cos -> tan": 2, "tan(x) -> x": 2}
        assert not profile.passes[-1].applied


def test_global_optimizers_take_part(x):
    graph = FunctionGraph([x], [esat.sin(x) / esat.cos(x)])
    same = PatternSub((esat.div, "a", "a"), esat.constant([1.0]))
    EquilibriumOptimizer([MergeOptimizer(), OpSub(esat.sin, esat.cos)]).optimize(graph)
    assert str(graph) == "[div(*1 -> cos(x), *1)]"
    assert same.tracks() == [esat.div]


@pytest.mark.parametrize(
    ("optimizers", "named"),
    [
        ([OpSub(esat.sin, esat.cos), OpSub(esat.cos, esat.sin)], "undo each other: cos -> sin, sin -> cos"),
        (
            [OpSub(esat.sin, esat.cos), OpSub(esat.cos, esat.tan), OpSub(esat.tan, esat.sin)],
            "undo each other: cos -> tan, sin -> cos, tan -> sin",
        ),
        (
            [PatternSub((esat.add, "a", "b"), (esat.add, "b", "a"), name="commute")],
            "always find something to do: commute",
        ),
    ],
)
def test_oscillation_is_detected_and_named(x, optimizers, named):
    innocent = OpSub(esat.exp, esat.exp2)
    graph = FunctionGraph([x], [esat.add(esat.sin(x), esat.exp(x))])
    with pytest.warns(OscillationWarning, match=named) as warned:
        profile = EquilibriumOptimizer([*optimizers, innocent], name="mine").optimize(graph)
    assert "mine does not come to rest" in str(warned[0].message)
    assert "exp -> exp2" not in str(warned[0].message)
    assert profile.note == str(warned[0].message).partition("; ")[2]


def test_growth_without_end_ends(x):
    @local_optimizer([esat.exp])
    def more(node):
        return [esat.exp(esat.neg(esat.neg(node.inputs[0])))]

    graph = FunctionGraph([x], [esat.exp(x)])
    with pytest.warns(OscillationWarning, match="more"):
        EquilibriumOptimizer([more]).optimize(graph)
    assert len(graph) < 1000


def test_takes_optimizers_only():
    with pytest.raises(OptimizerError, match="local and global"):
        EquilibriumOptimizer([esat.exp])
