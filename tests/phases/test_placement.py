"""Steps on their sides: what is copied, and that the program computes the same."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

import esat
from esat import codegen
from esat.errors import CompileError
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.gpu.profile import DeviceProfile
from esat.graph.algorithms.evaluate import evaluate
from esat.graph.identity import is_among
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.price import expected_bytes, group_seconds
from esat.phases.memory.effects import Permissions
from esat.phases.memory.memory_plan import plan_memory
from esat.phases.placement import (
    ON_HOST,
    Ends,
    Placement,
    PlanSides,
    Prices,
    choose_sides,
    verify_placement,
    with_transfers,
)
from esat.phases.shape_values import ShapeFacts

HOST = CostModel(MachineProfile())
PROFILE = DeviceProfile()
DEVICE = CostModel(PROFILE.machine())


BY_TYPES = Prices(
    lambda group: group_seconds(group, HOST),
    lambda group: group_seconds(group, DEVICE),
    lambda variable: PROFILE.link.seconds(expected_bytes(variable)),
)
"""Those of the cost model, by the types' sizes."""
EAGER = Prices(lambda group: 1.0, lambda group: 0.1, lambda variable: 0.01)
"""Everything runs on the device if it can."""


def without(name):
    """As EAGER, with an op that has no form on the device."""
    return Prices(EAGER.host, lambda group: inf if name in str(group) else 0.1, EAGER.copy)


def placed(inputs, outputs, weights, ends=ON_HOST, updates=None, rules=codegen):
    graph = esat.Graph(inputs, outputs, updates=updates or {})
    plain, permissions = graph.function_graph(), Permissions(updated=graph.updated)
    plan = fuse(plain, rules, permissions=permissions)
    choice = choose_sides(plan, plain, weights, ends, permissions)
    placement = with_transfers(plan, plain, choice, permissions, weights.on_host)
    facts = ShapeFacts(plain)
    plan_memory(placement.plan, plain, facts, permissions=permissions)  # which verifies the order
    return plain, placement


def transfers(placement):
    """The steps that copy."""
    return [group for group in placement.plan.groups if group.kind == "transfer"]


def copies(placement):
    return [(step.side, step.inputs[0].name) for step in transfers(placement)]


def chain(size, fused=True):
    x = esat.tensor("x", shape=(size,))
    y = x
    for _ in range(3):
        y = esat.tanh(y * 1.5 + 0.1)
    return placed([x], [y], BY_TYPES, rules=codegen if fused else None)


def test_a_chain_on_ten_million_elements_is_copied_in_and_out_once():
    for fused in (True, False):
        _, placement = chain(10_000_000, fused)
        assert [step.side for step in transfers(placement)] == ["device", "host"]
        assert all(step.side == "device" for step in placement.plan.groups if step.kind != "transfer")
        assert placement.choice.seconds < placement.choice.host_seconds


def test_ten_elements_stay_on_the_host():
    _, placement = chain(10)
    assert not transfers(placement)
    assert not placement.choice.uses_device
    assert placement.choice.seconds == placement.choice.host_seconds


def test_arguments_and_results_on_the_device_are_not_copied():
    x = esat.tensor("x", shape=(100_000,))
    _, placement = placed([x], [esat.tanh(x)], BY_TYPES, Ends(frozenset((0,)), "device"))
    assert not transfers(placement)
    _, placement = placed([x], [esat.tanh(x)], BY_TYPES, Ends(frozenset((0,)), "host"))
    assert [step.side for step in transfers(placement)] == ["host"]


def training():
    """A step of logistic regression: data from the host, parameters that stay on the device."""
    x, y = esat.tensor("x", shape=(4096, 512)), esat.tensor("y", shape=(4096,))
    w, b = esat.shared(np.zeros(512), "w"), esat.shared(np.zeros(()), "b")
    p = 1.0 / (1.0 + esat.exp(-(x @ w) - b))
    loss = -(y * esat.log(p) + (1.0 - y) * esat.log(1.0 - p)).mean()
    gw, gb = esat.grad(loss, [w, b])
    return [x, y], [loss], [(w, w - 0.1 * gw), (b, b - 0.1 * gb)]


def test_a_training_step_copies_data_and_loss_only():
    inputs, outputs, updates = training()
    graph, placement = placed(inputs, outputs, EAGER, updates=updates)
    assert placement.choice.homes == ("device", "device")
    to_device = [name for side, name in copies(placement) if side == "device"]
    assert sorted(to_device) == ["x", "y"]
    (back,) = [step for step in transfers(placement) if step.side == "host"]
    assert back.outputs[0] is graph.outputs[0]


def test_a_step_without_a_device_form_runs_on_the_host_between_two_copies():
    x = esat.tensor("x", shape=(3000, 3000))
    y = esat.sort(esat.tanh(esat.exp(x)), axis=1)
    z = esat.tanh(esat.exp(y * 2.0)).sum(axis=0)
    _, placement = placed([x], [z], without("sort"))
    sides = [(step.kind, step.side) for step in placement.plan.groups]
    assert sides == [
        ("transfer", "device"),
        ("kernel", "device"),
        ("transfer", "host"),
        ("library", "host"),
        ("transfer", "device"),
        ("kernel", "device"),
        ("transfer", "host"),
    ]


def test_an_array_is_copied_once_for_all_that_read_it():
    x = esat.tensor("x", shape=(100, 100))
    outputs = [x @ x, esat.exp(x) @ x, esat.tanh(x).sum(axis=0)]
    _, placement = placed([x], outputs, EAGER)
    assert copies(placement).count(("device", "x")) == 1


def test_sizes_and_constants_are_on_both_sides():
    x = esat.matrix("x")
    mean = x.sum() / esat.cast(x.size, "float64") + np.arange(5.0)
    _, placement = placed([x], [mean, x.shape[0]], EAGER)
    assert copies(placement) == [("device", "x"), ("host", None)]


def test_conditions_and_choices_are_read_by_the_host():
    x, y = esat.matrix("x"), esat.matrix("y")
    condition = esat.gt(x.sum(), 0.0)
    result = esat.ifelse(condition, esat.exp(x) @ y, esat.tanh(y) @ x)
    _, placement = placed([x, y], [result], EAGER)
    (choice,) = [step for step in placement.plan.groups if "ifelse" in str(step)]
    assert placement.sides[choice.nodes[0].inputs[0]] == "host"
    guarded = [step for step in placement.plan.groups if step.guard]
    assert {step.kind for step in guarded} >= {"kernel", "library"}
    for step in guarded:
        for path in step.guard:
            assert all(placement.sides[one.scalar] == "host" for one in path)
    # Copies that only one branch needs are made where it is taken.
    for step in transfers(placement):
        readers = [one for one in placement.plan.groups if is_among(step.outputs[0], one.inputs)]
        if readers and all(one.guard for one in readers) and len({one.guard for one in readers}) == 1:
            assert step.guard == readers[0].guard


def test_what_is_no_array_stays_on_the_host():
    stream = esat.random.RandomStream(1)
    x = esat.tensor("x", shape=(50, 50))
    _, placement = placed([x], [x + stream.normal(size=(50, 50))], EAGER, updates=stream.updates())
    (draw,) = [step for step in placement.plan.groups if "normal" in str(step)]
    assert draw.side == "host"
    assert placement.choice.homes == ("host",)


BUILDS = (
    lambda one, other: one @ other.T,
    lambda one, other: esat.tanh(one),
    lambda one, other: one + other,
    lambda one, other: one.T,
    lambda one, other: esat.sort(one, axis=0),
    lambda one, other: one.sum(axis=0, keepdims=True) * other,
)


@pytest.mark.parametrize("seed", range(20))
def test_random_placements_compute_the_same(seed):
    """Whatever the prices, the graph with its transfers has the values of the graph without."""
    rng = np.random.default_rng(seed)
    x, y = esat.matrix("x"), esat.matrix("y")
    pool = [x, y]
    for _ in range(12):
        one, other = (pool[int(index)] for index in rng.integers(0, len(pool), 2))
        pool.append(BUILDS[int(rng.integers(0, len(BUILDS)))](one, other))
    outputs = pool[-3:]

    def weight(group):
        return inf if rng.random() < 0.2 else float(rng.uniform(0.0, 2.0))

    weights = Prices(lambda _: float(rng.uniform(0.0, 2.0)), weight, lambda _: float(rng.uniform(0.0, 0.5)))
    ends = [ON_HOST, Ends(frozenset((0,))), Ends(frozenset((0,)), "device"), Ends(results="device")][seed % 4]
    used = [variable for variable in (x, y) if variable in set(esat.graph.ancestors(outputs))]
    graph, placement = placed(used, outputs, weights, ends)
    values = [rng.normal(size=(4, 4)) for _ in used]
    expected = evaluate(outputs, dict(zip(used, values, strict=True)))
    found = evaluate(graph.outputs, dict(zip(graph.inputs, values, strict=True)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    directions = [(step.inputs[0], step.side) for step in transfers(placement)]
    assert len(directions) == len(set(directions))


def test_equal_plans_with_equal_choices_are_placed_alike():
    x = esat.tensor("x", shape=(300, 300))
    graph = esat.Graph([x], [esat.sort(esat.exp(x) @ x)]).function_graph()
    plan = fuse(graph, codegen)
    choice = choose_sides(plan, graph, EAGER)
    again = graph.clone()
    one, other = with_transfers(plan, graph, choice), with_transfers(fuse(again, codegen), again, choice)
    assert [str(step) for step in one.plan.groups] == [str(step) for step in other.plan.groups]


def test_the_verifier_refuses_a_step_that_reads_the_other_side():
    x = esat.tensor("x", shape=(300, 300))
    graph = esat.Graph([x], [esat.exp(x)]).function_graph()
    plan = fuse(graph, codegen)
    placement = with_transfers(plan, graph, PlanSides(("device",)))
    wrong = Placement(placement.plan, dict.fromkeys(placement.sides, "host"), placement.choice)
    with pytest.raises(CompileError, match="on the device reads"):
        verify_placement(wrong, graph, ())
