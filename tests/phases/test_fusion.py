from collections.abc import Callable, Sequence
from typing import Any

import pytest
from effort import assert_near_linear

from esat.errors import CompileError
from esat.gpu.rules import DeviceRules
from esat.graph import Apply, Family, FunctionGraph, TensorType, Variable
from esat.graph.registry import op_named
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.contraction import matmul
from esat.ops.reduction import MAX, SUM, reduce
from esat.phases.fusing.fusion import Limits, fuse
from esat.phases.fusing.group import FusionPlan, Group
from esat.phases.verify_stages import verify_fusion


def matrix(name: str) -> Variable:
    return TensorType("float64", shape=(None, None))(name)


def vector(name: str) -> Variable:
    return TensorType("float64", shape=(None,))(name)


def ops_of(
    inputs: Sequence[Variable], outputs: Sequence[Variable], rules: Any
) -> list[tuple[str, list[str]]]:
    """Kind and ops of each group; axes that kernels insert or permute on the way are left out."""
    plan = fuse(FunctionGraph(inputs, outputs), rules)
    shown = [
        [node.op.name for node in group.nodes if group.kind != "kernel" or node.op.family is not Family.VIEW]
        for group in plan.groups
    ]
    return [(group.kind, ops) for group, ops in zip(plan.groups, shown, strict=True)]


def exp(x: Any) -> Any:
    return op_named("exp")(x)


def test_without_rules_every_node_is_a_step_of_its_own() -> None:
    x = matrix("x")
    assert ops_of([x], [exp(dimshuffle(x, (1, 0)))], None) == [("view", ["dimshuffle"]), ("library", ["exp"])]


def test_a_softmax_is_one_kernel(rules: Any) -> None:
    x = matrix("x")
    shifted = exp(x - reduce(MAX, x, 1, keepdims=True))
    softmax = shifted / reduce(SUM, shifted, 1, keepdims=True)
    assert ops_of([x], [softmax], rules) == [("kernel", ["max", "sub", "exp", "sum", "div"])]


def test_what_reads_an_array_twice_comes_before_what_reads_its_result_elsewhere() -> None:
    """A device gathers rows and columns apart: the quotient is part of the kernel that has the row."""
    x = matrix("x")
    y = exp(x)
    quotient = y / reduce(SUM, y, 1, keepdims=True)
    groups = ops_of([x], [quotient - reduce(SUM, quotient, 0, keepdims=True)], DeviceRules())
    assert groups == [("kernel", ["exp", "sum", "div"]), ("kernel", ["sum", "sub"])]


def test_what_lies_between_stays_apart_where_it_is_no_kernel(rules: Any) -> None:
    x, w = matrix("x"), matrix("w")
    y = exp(x)
    groups = ops_of([x, w], [y + matmul(y, w)], rules)
    assert groups == [("kernel", ["exp"]), ("library", ["matmul"]), ("kernel", ["add"])]


def test_reductions_of_one_operand_share_a_kernel(rules: Any) -> None:
    x = matrix("x")
    groups = ops_of([x], [reduce(SUM, x), reduce(SUM, x * x)], rules)
    assert groups == [("kernel", ["sum", "mul", "sum"])]


def test_several_outputs_in_one_kernel(rules: Any) -> None:
    x, y = matrix("x"), matrix("y")
    total = x + y
    assert ops_of([x, y], [total * 2.0, total * 3.0], rules) == [("kernel", ["add", "mul", "mul"])]


def test_contractions_part_kernels_and_views_before_them_stay_views(rules: Any) -> None:
    x, w, b = matrix("x"), matrix("w"), vector("b")
    hidden = op_named("tanh")(matmul(x, w) + b)
    assert ops_of([x, w, b], [matmul(dimshuffle(hidden, (1, 0)), x)], rules) == [
        ("library", ["matmul"]),
        ("kernel", ["add", "tanh"]),
        ("view", ["dimshuffle"]),
        ("library", ["matmul"]),
    ]


def test_what_is_expensive_is_not_computed_once_a_row(rules: Any) -> None:
    x, b = matrix("x"), vector("b")
    assert [ops for _, ops in ops_of([x, b], [x * exp(b)], rules)] == [["exp"], ["mul"]]
    assert len(ops_of([x, b], [x * (b + 1.0)], rules)) == 1
    # Nor is it by way of other results, which loops over rows may read, or by what else reads their operands.
    e = exp(b)
    for rows in ([reduce(SUM, e, 0) * x + x * (e * b)], [(x - b) * reduce(SUM, e, 0), e * (x * x)]):
        groups = [ops for _, ops in ops_of([x, b], rows, rules)]
        assert len(groups) == 2
        assert groups[0][0] == "exp"
        assert "exp" not in groups[1]
    column = dimshuffle(exp(b), (0, "x"))
    assert len(ops_of([x, b], [x * column], rules)) == 1, "one value a row can be computed at its row"


def test_a_path_through_a_library_call_is_not_closed_to_a_circle(rules: Any) -> None:
    x = matrix("x")
    e = exp(x)
    groups = ops_of([x], [e + matmul(e, e)], rules)
    assert [kind for kind, _ in groups] == ["kernel", "library", "kernel"]


def test_sizes_are_computed_outside_of_the_steps(rules: Any) -> None:
    x = matrix("x")
    mean = reduce(SUM, x) / op_named("mul")(size_of(x, 0), size_of(x, 1))
    assert ops_of([x], [mean], rules) == [("kernel", ["sum", "div"])]


def test_what_is_read_for_its_shape_alone_does_not_run(rules: Any) -> None:
    x, y = matrix("x"), matrix("y")
    product = exp(matmul(x, y))
    # The mean of the squares: the kernel need not write the squares for their size to be known.
    squares = product * product
    mean = reduce(SUM, squares) / size_of(squares, 0)
    graph = FunctionGraph([x, y], [mean])
    groups = fuse(graph, rules).groups
    assert [group.kind for group in groups] == ["library", "kernel"]
    assert len(groups[1].outputs) == 1
    assert ops_of([x, y], [size_of(product, 1)], rules) == []


def test_the_rules_of_kernels_have_the_last_word(rules: Any) -> None:
    class NoThree(type(rules)):
        def can_fuse(self, nodes: Sequence[Apply]) -> bool:
            return len(nodes) < 3

    x = vector("x")
    sizes = [len(ops) for _, ops in ops_of([x], [exp(exp(exp(exp(x))))], NoThree())]
    assert sizes == [2, 2]


def test_the_rules_of_kernels_say_how_large_they_become(rules: Any) -> None:
    class Small(type(rules)):
        limits = Limits(nodes=2)

    class Narrow(type(rules)):
        limits = Limits(arrays=3)

    x, y, z = vector("x"), vector("y"), vector("z")
    assert [len(ops) for _, ops in ops_of([x], [exp(exp(exp(exp(x))))], Small())] == [2, 2]
    assert [len(ops) for _, ops in ops_of([x, y, z], [x * y * z], Narrow())] == [1, 1]
    assert [len(ops) for _, ops in ops_of([x, y, z], [x * y * z], rules)] == [2]


@pytest.mark.parametrize("shape", ["chain", "layers"])
def test_the_work_of_fusion_grows_with_the_graph(shape: str, rules: Any) -> None:
    def fusing(count: int) -> Callable[[], None]:
        graph = chain(count) if shape == "chain" else layers(count // 8)

        def work() -> None:
            plan = fuse(graph, rules)
            for group in plan.groups:
                assert len(group.nodes) <= rules.limits.nodes
                assert len(group.nodes) == 1 or sum(flops(node) for node in group.nodes) <= rules.limits.flops

        return work

    assert_near_linear(fusing, 640)  # groups of layers reach their full size only beyond 600 nodes


def flops(node: Apply) -> float:
    return float(getattr(node.op, "flops", 0.0))


def chain(count: int) -> FunctionGraph:
    """As many sums and functions, each of the one before."""
    value = b = vector("b")
    for _ in range(count):
        value = op_named("tanh")(value) + b
    return FunctionGraph([b], [value])


def layers(count: int) -> FunctionGraph:
    """A network of so many layers, and what a step of its training makes of their weights."""
    b, value = vector("b"), matrix("x")
    inputs, outputs, kept = [b, value], [], []
    for number in range(count):
        inputs.append(matrix(f"w{number}"))
        kept.append(value)
        value = op_named("tanh")(matmul(value, inputs[-1]) + b)
    slope = value
    for weight, before in zip(inputs[:1:-1], kept[::-1], strict=True):
        slope = slope * (1.0 - value * value)
        outputs.append(weight - 0.1 * matmul(dimshuffle(before, (1, 0)), slope))
        slope, value = matmul(slope, dimshuffle(weight, (1, 0))), before
    return FunctionGraph(inputs, outputs)


def test_the_verifier_refuses_plans_that_do_not_compute_the_graph(rules: Any) -> None:
    x = matrix("x")
    graph = FunctionGraph([x], [matmul(exp(x), x)])
    first, second = fuse(graph, rules).groups
    verify_fusion(FusionPlan((first, second)), graph)
    broken = [
        (second, first),
        (first,),
        (first, first, second),
        (Group("kernel", first.nodes, first.inputs, ()), second),
        (Group("library", first.nodes + second.nodes, first.inputs, second.outputs),),
        (Group("kernel", first.nodes, (), first.outputs), second),
        (Group("kernel", first.nodes, first.inputs, (*first.outputs, *second.outputs)), second),
    ]
    for groups in broken:
        with pytest.raises(CompileError):
            verify_fusion(FusionPlan(groups), graph)
