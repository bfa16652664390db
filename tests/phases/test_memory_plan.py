import random
from itertools import combinations
from typing import Any

import pytest

from esat.errors import CompileError
from esat.graph import FunctionGraph, TensorType, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.contraction import matmul
from esat.phases.fusing.fusion import fuse, predicted_bytes
from esat.phases.memory.memory_plan import MemoryPlan, plan_buffers, plan_memory, verify_memory
from esat.phases.memory.step_order import find_roots, order_steps, peak_bytes
from esat.phases.shape_values import ShapeFacts


def matrix(name: str) -> Variable:
    return TensorType("float64", shape=(None, None))(name)


def planned(graph: FunctionGraph, rules: Any) -> MemoryPlan:
    return plan_memory(fuse(graph, rules), graph, ShapeFacts(graph), lambda node: node.op.name == "matmul")


def test_a_chain_of_products_needs_two_buffers(rules: Any) -> None:
    x = matrix("x")
    value = x
    for _ in range(7):
        value = matmul(value, x)
    memory = planned(FunctionGraph([x], [value]), rules)
    assert len(memory.scratch) == 6
    assert len(memory.fresh) == 1
    buffers = plan_buffers(memory, [800] * 6)
    assert len(buffers.sizes) == 2
    assert buffers.peak_bytes == 2 * 832, "sizes are rounded up to cache lines"


def test_a_smaller_buffer_grows_rather_than_a_new_one_is_made(rules: Any) -> None:
    x = matrix("x")
    value = x
    for _ in range(4):
        value = matmul(value, x)
    memory = planned(FunctionGraph([x], [value]), rules)
    assert sorted(plan_buffers(memory, [64, 64, 640]).sizes) == [64, 640]


def shows(variable: Variable, memory_of: Variable) -> bool:
    """Whether a variable is another or, through any number of views, a view of it."""
    while variable is not memory_of:
        node = variable.owner
        if node is None or not node.op.view_map:
            return False
        variable = node.inputs[0]
    return True


def test_results_that_share_a_buffer_are_never_alive_together(rules: Any) -> None:
    random.seed(5)
    for _ in range(40):
        x = matrix("x")
        values = [x]
        for _ in range(20):
            one, other = random.choice(values[-6:]), random.choice(values[-6:])
            values.append(random.choice([matmul(one, other), dimshuffle(one, (1, 0)), op_named("exp")(one)]))
        graph = FunctionGraph([x], values[-2:])
        memory = planned(graph, rules)
        made = {output: step for step, group in enumerate(memory.steps) for output in group.outputs}
        lives = {
            variable: range(
                made[variable],
                1
                + max(
                    step
                    for step, group in enumerate(memory.steps)
                    if any(shows(v, variable) for v in (*group.inputs, *group.outputs))
                ),
            )
            for variable in memory.scratch
        }
        places = dict(
            zip(memory.scratch, plan_buffers(memory, [64] * len(memory.scratch)).places, strict=True)
        )
        for one, other in combinations(memory.scratch, 2):
            if places[one] == places[other]:
                assert not set(lives[one]) & set(lives[other])
        assert not any(shows(output, variable) for output in graph.outputs for variable in memory.scratch)


def test_what_the_caller_gets_a_view_of_is_no_scratch(rules: Any) -> None:
    x = matrix("x")
    memory = planned(FunctionGraph([x], [dimshuffle(op_named("exp")(x), (1, 0))]), rules)
    assert memory.scratch == ()
    product = matmul(x, x)
    memory = planned(FunctionGraph([x], [dimshuffle(product, (1, 0))]), rules)
    assert memory.scratch == ()
    assert len(memory.fresh) == 1


def test_steps_that_free_memory_run_first(rules: Any) -> None:
    x = matrix("x")
    # Written breadth first: all products, then all traces of them.
    products = [matmul(x * float(number), x) for number in range(6)]
    small = [matmul(TensorType("float64", shape=(1, None))(f"r{n}"), p) for n, p in enumerate(products)]
    inputs = [x, *(p.owner.inputs[0] for p in small if p.owner is not None)]
    graph = FunctionGraph(inputs, small)
    groups = sorted(fuse(graph, rules).groups, key=lambda group: group.outputs[0].tensor_type.shape[0] == 1)
    roots, held = find_roots(groups), frozenset(graph.outputs)
    ordered = order_steps(groups, graph.outputs, predicted_bytes)
    before, after = (peak_bytes(order, roots, held, predicted_bytes) for order in (groups, ordered))
    assert after < before / 2


def test_the_verifier_refuses_an_output_in_reused_memory(rules: Any) -> None:
    x = matrix("x")
    graph = FunctionGraph([x], [matmul(x, x)])
    memory = planned(graph, rules)
    broken = MemoryPlan(memory.steps, memory.fresh, (), memory.last_use, memory.roots)
    with pytest.raises(CompileError, match="reused memory"):
        verify_memory(broken, graph, ShapeFacts(graph))
