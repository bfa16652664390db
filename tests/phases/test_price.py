"""Predicted seconds of fusion plans."""

import pytest

import esat
from esat import codegen
from esat.extract.prices.cost import CostModel
from esat.extract.prices.machine import MachineProfile
from esat.ops.accumulate import AccumulateProduct
from esat.ops.contraction import MatMul
from esat.ops.linalg.functions import Exponential
from esat.phases.fusing.fusion import fuse
from esat.phases.fusing.group import Group
from esat.phases.fusing.price import PYTHON_SECONDS, group_seconds, plan_seconds

MODEL = CostModel(MachineProfile())


def steps(*outputs: esat.Variable, fused: bool = True) -> tuple[Group, ...]:
    inputs = [leaf for leaf in esat.graph.inputs_of(outputs) if not isinstance(leaf, esat.Constant)]
    graph = esat.Graph(inputs, list(outputs)).function_graph()
    return fuse(graph, codegen if fused else None).groups


def test_fusion_saves_calls_and_bytes() -> None:
    x = esat.tensor("x", shape=(300, 300))
    y = esat.exp(x * 2.0 + 1.0)
    fused, apart = plan_seconds(steps(y), MODEL), plan_seconds(steps(y, fused=False), MODEL)
    assert fused < 0.7 * apart


def test_steps_add_up_to_the_call() -> None:
    x, w = esat.tensor("x", shape=(64, 100)), esat.tensor("w", shape=(100, 50))
    found = steps(esat.tanh(x @ w).sum(axis=0), esat.linalg.expm(esat.tensor("s", shape=(64, 64))))
    assert {group.kind for group in found} == {"kernel", "library"}
    (by_python,) = [group for group in found if isinstance(group.nodes[0].op, Exponential)]
    rest = [group for group in found if group is not by_python]
    alone = group_seconds(by_python, MODEL) + PYTHON_SECONDS
    assert plan_seconds(found, MODEL) == pytest.approx(plan_seconds(rest, MODEL) + alone)


def test_larger_operands_take_longer() -> None:
    times = []
    for size in (10, 100, 1000):
        x = esat.tensor("x", shape=(size, size))
        times.append(plan_seconds(steps(esat.softmax(x, axis=1) @ x + x.T), MODEL))
    assert times == sorted(times)
    assert times[2] > 100 * times[0]


def test_unknown_sizes_are_assumed() -> None:
    x, known = esat.matrix("x"), esat.tensor("x", shape=(256, 256))
    assert plan_seconds(steps(esat.exp(x)), MODEL) == plan_seconds(steps(esat.exp(known)), MODEL)


def test_a_solve_costs_its_operations() -> None:
    times = []
    for size in (500, 1000):
        a, b = esat.tensor("a", shape=(size, size)), esat.tensor("b", shape=(size, 3))
        times.append(plan_seconds(steps(esat.linalg.solve(a, b)), MODEL))
    assert 4.0 < times[1] / times[0] < 9.0


def test_a_small_factorization_costs_its_operations_at_the_rate_of_blocks() -> None:
    times = []
    for size in (40, 80, 160):
        a = esat.tensor("a", shape=(size, size))
        times.append(plan_seconds(steps(esat.linalg.cholesky(a)), MODEL) - MODEL.machine.call)
    assert 6.0e-6 < times[1] < 4.0e-5  # measured: 18 us
    assert 4.0 < times[2] / times[1] < 8.5


def test_a_native_step_that_adds_to_a_product_pays_no_call() -> None:
    a, b, c, d = (esat.tensor(name, shape=(3, 3)) for name in "abcd")
    function = esat.compile(esat.Graph([a, b, c, d], [a @ b + c @ d]))
    products = [
        group for group in function.steps if isinstance(group.nodes[0].op, MatMul | AccumulateProduct)
    ]
    assert len(products) == 2
    assert plan_seconds(function.steps, MODEL) < MODEL.machine.call + 4e-7


def test_ops_of_a_small_kernel_take_nanoseconds() -> None:
    x = esat.tensor("x", shape=(4,))
    long, short = x, x
    for step in range(20):
        long = long * (1.5 + step) + esat.abs(long)
    extra = plan_seconds(steps(long), MODEL) - plan_seconds(steps(short * 2.0), MODEL)
    assert 0.0 < extra < 3e-7
