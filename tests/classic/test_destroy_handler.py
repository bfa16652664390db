"""Users' optimizers that work in place: checked at each replacement, once add_destroy_handler has run."""

from types import MappingProxyType

import numpy as np
import pytest

import esat
from esat import FunctionGraph, Op, ReplaceValidate, optdb
from esat.classic import MergeOptimizer, OpSub, Optimizer, TopoOptimizer
from esat.errors import DestroyError
from esat.graph.op import Family
from esat.phases.memory.destroy import DestroyHandler, Supervisor
from esat.phases.memory.effects import Permissions

MODES = ["fast_run", "greedy", "debug"]


class Plus(Op):
    """Adds 1 to a copy of its operand."""

    name, constructor, family = "plus", "Plus", Family.LIBRARY

    def infer_types(self, inputs):
        return (inputs[0].type,)

    def perform(self, inputs):
        return (inputs[0] + 1.0,)


class Increment(Plus):
    """Adds 1 to its operand, where it stands."""

    name, constructor = "increment", "Increment"
    destroy_map = MappingProxyType({0: (0,)})

    def perform(self, inputs):
        (value,) = inputs
        value += 1.0
        return (value,)


plus, increment = Plus(), Increment()


@pytest.fixture
def registered():
    known = {entry.name for entry in optdb}
    yield optdb
    for entry in optdb:
        if entry.name not in known:
            optdb.remove(entry.name)


def names(function):
    return sorted(str(node.op) for node in function.optimized.toposort() if node.op in (plus, increment))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_safe_is_declined_and_the_rest_is_done(registered, mode):
    registered.register("in_place", TopoOptimizer(OpSub(plus, increment)), 60, "fast_run", "inplace")
    x = esat.vector("x")
    value = esat.erf(x)
    # The input is not ours; value is read by two that want to overwrite it; the last has its operand alone.
    outputs = [plus(x), plus(value), plus(value[::-1]) * value, plus(esat.cumsum(x))]
    function = esat.compile(esat.Graph([x], outputs), mode)
    assert names(function) == ["increment", "increment", "plus", "plus"]
    data = np.linspace(-1, 1, 5)
    kept = data.copy()
    for result, wanted in zip(function(data), esat.evaluate(outputs, {x: data.copy()}), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12)
    np.testing.assert_array_equal(data, kept)
    without = esat.compile(esat.Graph([x], outputs), esat.Mode(mode).excluding("inplace"))
    assert names(without) == ["plus"] * 4


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_donated_inputs_and_updated_variables_may_be_overwritten(registered, mode):
    registered.register("in_place", TopoOptimizer(OpSub(plus, increment)), 60, "fast_run", "inplace")
    x, y = esat.vector("x"), esat.vector("y")
    kept, updated = esat.shared(np.zeros(3), name="kept"), esat.shared(np.zeros(3), name="updated")
    graph = esat.Graph([x, y], [plus(x), plus(y), plus(kept)], updates={updated: plus(updated)})
    function = esat.compile(graph, mode, donate=[y])
    assert names(function) == ["increment", "increment", "plus", "plus"]
    storage = updated.get_value(borrow=True)
    for _ in range(3):
        for result in function(np.zeros(3), np.zeros(3)):
            np.testing.assert_array_equal(result, np.ones(3))
    assert updated.get_value(borrow=True) is storage
    np.testing.assert_array_equal(storage, np.full(3, 3.0))
    np.testing.assert_array_equal(kept.get_value(), np.zeros(3))


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
@pytest.mark.parametrize(("position", "checked"), [(0.5, False), (49.2, False), (50, True), (99, True)])
def test_the_handler_is_there_from_its_position_on(registered, mode, position, checked):
    answers = []

    class Look(Optimizer):
        def add_requirements(self, fgraph):
            fgraph.attach_feature(ReplaceValidate())

        def apply(self, fgraph):
            answers.append(fgraph.feature_of(DestroyHandler) is not None)
            if checked:
                before = repr(fgraph)
                (old,) = fgraph.outputs
                with pytest.raises(DestroyError, match="the input x is not donated"):
                    fgraph.replace_validate(old, increment(fgraph.inputs[0]), "look")
                assert repr(fgraph) == before

    registered.register("look", Look(), position, "fast_run")
    x = esat.vector("x")
    function = esat.compile(esat.Graph([x], plus(x)), mode)
    assert answers == [checked]
    assert names(function) == ["plus"]


def test_the_database_by_itself_checks_as_well():
    """As the documents use it: a query's optimizer on a FunctionGraph, without a function."""
    x = esat.vector("x")
    graph = FunctionGraph([x], [plus(x)])
    optdb.query(esat.Query(["fast_run"])).optimize(graph)
    with pytest.raises(DestroyError, match="not donated"):
        graph.replace_validate(graph.outputs[0], increment(graph.inputs[0]))


def test_merging_keeps_apart_what_is_overwritten():
    """One of two equal values is overwritten before the other is read: they must not become one."""
    x = esat.vector("x")
    one, other = esat.exp(x), esat.exp(x)
    changed = increment(one)
    outputs = [changed, esat.sin(other) * changed, esat.cos(x), esat.cos(x)]
    late = [*outputs, increment(other)]
    for results, count in [(outputs, 1), (late, 2)]:
        graph = FunctionGraph([x], results, features=[DestroyHandler()])
        MergeOptimizer().optimize(graph)
        ops = [node.op.name for node in graph.toposort()]
        assert ops.count("exp") == count
        assert ops.count("cos") == 1
        graph.validate()


def test_a_supervisor_holds_for_the_graph_it_is_attached_to():
    x = esat.vector("x")
    graph = FunctionGraph(
        [x], [plus(x)], features=[Supervisor(Permissions(frozenset([0]))), DestroyHandler()]
    )
    graph.replace_validate(graph.outputs[0], increment(graph.inputs[0]))
    assert repr(graph) == "[increment(x)]"
