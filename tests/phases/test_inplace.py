from typing import Any

import numpy as np
import pytest

import esat
from esat.frontend.elements import random as draws
from esat.graph import FunctionGraph, Variable
from esat.graph.op import Family
from esat.phases.memory.effects import Permissions
from esat.phases.memory.inplace import GEMM, ROWS, work_in_place


def names(graph: FunctionGraph) -> list[str]:
    return [str(node.op) for node in graph.toposort() if node.op.family is not Family.VIEW]


def test_a_chain_of_writes_is_in_place_but_for_what_would_change_the_input() -> None:
    x = esat.vector("x")
    value = esat.set_subtensor(x[1:], 0.0)
    value = esat.inc_subtensor(value[:2], 1.0)
    value = esat.inc_subtensor(value[np.array([0, 0])], 1.0)
    graph = FunctionGraph([x], [value])
    found = names(work_in_place(graph, Permissions()))
    assert ["inplace" in name for name in found] == [False, True, True]
    given = names(work_in_place(graph, Permissions(frozenset([0]))))
    assert all("inplace" in name for name in given)
    assert not any("inplace" in name for name in names(graph)), "the graph itself does not change"


def test_what_is_needed_later_is_copied() -> None:
    x = esat.vector("x")
    value = esat.exp(x)
    graph = FunctionGraph([x], [esat.set_subtensor(value[1:], 0.0) @ value])
    assert not any("inplace" in name for name in names(work_in_place(graph, Permissions())))


def test_rows_can_be_left_out() -> None:
    x = esat.vector("x")
    value = esat.inc_subtensor(esat.exp(x)[1:], 1.0)
    graph = FunctionGraph([x], [value])
    assert work_in_place(graph, Permissions(), ()) is graph
    assert any("inplace" in name for name in names(work_in_place(graph, Permissions(), ROWS)))


def test_random_states_advance_where_they_stand() -> None:
    state = draws.shared_state(3)
    after, first = draws.normal(state, size=3)
    last, second = draws.uniform(after, size=3)
    graph = FunctionGraph([], [first, second, last])
    for updated, expected in (((), [False, True]), ((state,), [True, True])):
        result = work_in_place(graph, Permissions(updated=updated))
        drawn = [node for node in result.toposort() if node.op.family is Family.RANDOM]
        assert [bool(node.op.destroy_map) for node in drawn] == expected


x, y, c = esat.matrix("x"), esat.matrix("y"), esat.matrix("c")
rate = esat.scalar("rate")
SUMS: list[tuple[Any, float, float]] = [
    (lambda: c + x @ y, 1.0, 1.0),
    (lambda: x @ y + c, 1.0, 1.0),
    (lambda: c - x @ y, -1.0, 1.0),
    (lambda: x @ y - c, 1.0, -1.0),
    (lambda: 0.5 * c - 3.0 * (x @ y), -3.0, 0.5),
    (lambda: c / 4.0 + (x @ y) * 2.0 * 3.0, 6.0, 0.25),
    (lambda: -(c) - (x @ y) / 2.0, -0.5, -1.0),
]


@pytest.mark.parametrize("place", range(len(SUMS)))
def test_a_product_added_to_what_dies_is_one_call(place: int) -> None:
    build, alpha, beta = SUMS[place]
    graph = FunctionGraph([x, y, c], [build()])
    result = work_in_place(graph, Permissions(frozenset([2])))
    (node,) = [node for node in result.toposort() if node.op.name == "gemm"]
    assert node.op.destroy_map == {0: (0,)}
    assert node.inputs[0] is result.inputs[2]
    assert [float(node.inputs[place].data) for place in (1, 4)] == [alpha, beta]  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    data = [rng.normal(size=size) for size in ((3, 4), (4, 5), (3, 5))]
    wanted = esat.evaluate(graph.outputs, dict(zip(graph.inputs, data, strict=True)))
    got = esat.evaluate(result.outputs, dict(zip(result.inputs, data, strict=True)))
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-13)


COPIED: list[tuple[Any, float, float]] = [
    *SUMS[:6],  # a kernel turns the sign of a whole sum
    (lambda: c + x @ c, 1.0, 1.0),
    (lambda: 2.0 * esat.cumsum(c, 0) + x @ y, 1.0, 2.0),
]


@pytest.mark.parametrize("mode", ["o3", "unsafe"])
@pytest.mark.parametrize("place", range(len(COPIED)))
def test_without_work_in_place_products_are_added_to_a_copy(mode: str, place: int) -> None:
    """As in the documents' table: gemm takes part in all modes but those that compile fast."""
    build, alpha, beta = COPIED[place]
    total = build()
    inputs = [one for one in (x, y, c) if one in set(esat.graph.inputs_of([total]))]
    function = esat.compile(esat.Graph(inputs, [total]), mode)
    (node,) = [node for node in function.graph.toposort() if node.op.name == "gemm"]
    assert not node.op.destroy_map
    assert [float(node.inputs[place].data) for place in (1, 4)] == [alpha, beta]  # type: ignore[attr-defined]
    for size in (1, 3, 40):
        data = [np.random.default_rng(size).normal(size=(size, size)) for _ in inputs]
        kept = [array.copy() for array in data]
        (wanted,) = esat.evaluate([total], dict(zip(inputs, data, strict=True)))
        for _ in range(60):  # by the driver, then as one native function
            got = function(*data)
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)
        for array, before in zip(data, kept, strict=True):
            np.testing.assert_array_equal(array, before)


def test_where_a_kernel_adds_nothing_is_copied() -> None:
    for total in (esat.tanh(c + x @ y), esat.tanh(c) + x @ y):
        inputs = [one for one in (x, y, c, rate) if one in set(esat.graph.inputs_of([total]))]
        function = esat.compile(esat.Graph(inputs, [total]), "o3")
        assert "gemm" not in names(function.graph)
    for mode in (esat.Mode("o3").excluding("gemm"), "strict", "o2"):
        assert "gemm" not in names(esat.compile(esat.Graph([x, y, c], [c + x @ y]), mode).graph)


@pytest.mark.parametrize("mode", ["o3", "unsafe"])
def test_scales_that_are_computed_are_those_of_a_product_added_to_a_copy(mode: str) -> None:
    """A scale of 0 takes nothing of infinities and NaN, as in NumPy."""
    al, be = esat.scalar("al"), esat.scalar("be")
    graph = esat.Graph([x, y, c, al, be], [esat.exp(al) * (x @ y) - be * c])
    function = esat.compile(graph, mode)
    assert "gemm" in names(function.graph)
    a, b, d = np.random.default_rng(0).normal(size=(3, 40, 40))
    a[0, 0], d[1, 1], d[2, 2] = np.inf, np.nan, -np.inf
    kept = d.copy()
    for first, second in ((2.0, 3.0), (-np.inf, 1.0), (1.0, 0.0), (np.nan, 1.0)):
        with np.errstate(all="ignore"):
            wanted = np.exp(first) * (a @ b) - second * d
        for _ in range(3):
            np.testing.assert_allclose(function(a, b, d, first, second), wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(d, kept)


def not_accumulated() -> dict[str, tuple[list[Variable], Variable, Permissions]]:
    donated, nothing = Permissions(frozenset([2])), Permissions()
    row, k = esat.vector("row"), esat.tensor("k", dtype="int64", shape=(None, None))
    return {
        "the input is not donated": ([x, y, c], c + x @ y, nothing),
        "the sum is read in a loop": ([x, y, c], esat.tanh(c + x @ y), donated),
        "a kernel makes it": ([x, y, c], esat.tanh(c) + x @ y, donated),
        "it is stretched": ([x, y, row], row + x @ y, donated),
        "the product is read elsewhere": ([x, y, c], c + (p := x @ y) + p.T @ p, donated),
        "it is an operand": ([x, y, c], c + x @ c, donated),
        "a scale is 0": ([x, y, c], c + 0.0 * (x @ y), donated),
        "the dtype has no BLAS": ([x, y, k], k + k @ k, donated),
    }


@pytest.mark.parametrize("case", not_accumulated())
def test_other_sums_stay(case: str) -> None:
    inputs, total, permissions = not_accumulated()[case]
    needed = set(esat.graph.ancestors([total]))
    used = [v for v in inputs if v in needed]
    if len(used) < 3:
        permissions = Permissions(frozenset(range(len(used))) if permissions.donated else frozenset())
    result = work_in_place(FunctionGraph(used, [total]), permissions)
    assert "gemm{inplace}" not in names(result)
    assert "gemm" not in names(result)


def test_a_column_is_added_to_a_vector() -> None:
    v, b = esat.vector("v"), esat.vector("b")
    for total in (b - 0.1 * (x @ v), 2.0 * b + v @ x):
        graph = FunctionGraph([x, v, b], [total])
        result = work_in_place(graph, Permissions(frozenset([2])))
        assert "gemm{inplace}" in names(result)
        data = [np.arange(9.0).reshape(3, 3), np.array([1.0, 2.0, 3.0]), np.ones(3)]
        wanted = esat.evaluate(graph.outputs, dict(zip(graph.inputs, data, strict=True)))
        got = esat.evaluate(result.outputs, dict(zip(result.inputs, data, strict=True)))
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-13)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_several_products_are_added_one_after_another(mode: str) -> None:
    """What gradients of recurrences are: sums of products, one for each step."""
    operands = [esat.matrix(f"m{number}") for number in range(8)]
    products = [left @ right for left, right in zip(operands[::2], operands[1::2], strict=True)]
    total = products[0] - products[1] + 2.0 * products[2] + products[3]
    function = esat.compile(esat.Graph(operands, [total]), mode)
    found = sorted(node.op.name for node in function.graph.toposort())
    assert found == ["gemm", "gemm", "gemm", "matmul"]
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(7, 3) if place % 2 == 0 else (3, 5)) for place in range(8)]
    first, second, third, fourth = (left @ right for left, right in zip(data[::2], data[1::2], strict=True))
    np.testing.assert_allclose(function(*data), first - second + 2.0 * third + fourth, rtol=1e-12)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
@pytest.mark.parametrize("kept", [1.0, 0.9])
def test_a_gradient_step_with_a_given_rate_overwrites_the_weights(mode: str, kept: float) -> None:
    weights = esat.shared(np.ones((4, 5)), name="weights")
    following = kept * weights - rate * (x.T @ y)
    function = esat.compile(esat.Graph([x, y, rate], [], updates={weights: following}), mode)
    assert "gemm{inplace}" in names(function.graph)
    place, rng = weights.get_value(borrow=True), np.random.default_rng(0)
    left, right = rng.normal(size=(3, 4)), rng.normal(size=(3, 5))
    expected = np.ones((4, 5))
    for step in (0.5, 0.0, -2.0):
        function(left, right, step)
        expected = kept * expected - step * (left.T @ right)
    assert weights.get_value(borrow=True) is place
    np.testing.assert_allclose(place, expected, rtol=1e-12)


def test_products_without_blas_are_left_to_kernels() -> None:
    graph = FunctionGraph([x, y, c], [c + x @ y])
    assert "gemm" not in names(work_in_place(graph, Permissions(frozenset([2])), set(ROWS) - {GEMM}))


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
def test_increments_of_zeros_become_one_chain_in_place(mode: str) -> None:
    """The documents' inc_subtensor serialization, as gradients have it: sums of increments of zeros."""
    b, c = esat.matrix("b"), esat.matrix("c")
    table = esat.shared(np.arange(24.0).reshape(6, 4), name="table")
    zeros = esat.zeros_like(table)
    steps = [esat.inc_subtensor(zeros[0:2], b), esat.inc_subtensor(zeros[1:3], c)]
    steps += [esat.inc_subtensor(zeros[4:6], b * c)]
    function = esat.compile(
        esat.Graph([b, c], [], updates={table: table + steps[0] + steps[1] + steps[2]}), mode
    )
    written = [node for node in function.graph.toposort() if node.op.name == "inc_subtensor"]
    assert len(written) == 3
    assert all(node.op.destroy_map for node in written)
    place, ones = table.get_value(borrow=True), np.ones((2, 4))
    expected = place.copy()
    function(ones, 2.0 * ones)
    for rows, added in [(slice(0, 2), 1.0), (slice(1, 3), 2.0), (slice(4, 6), 2.0)]:
        expected[rows] += added
    assert table.get_value(borrow=True) is place
    np.testing.assert_array_equal(place, expected)


@pytest.mark.parametrize("mode", ["fast_run", "greedy"])
@pytest.mark.parametrize(("kept", "scale"), [(1.0, 1.0), (0.9, 0.1), (1.0, -0.5)])
def test_a_rank_one_update_is_one_kernel_over_the_old_value(mode: str, kept: float, scale: float) -> None:
    """What BLAS calls ger: the product of the vectors is never stored; a call of BLAS would save nothing."""
    x, y = esat.vector("x"), esat.vector("y")
    a = esat.shared(np.ones((5, 3)), name="a")
    function = esat.compile(esat.Graph([x, y], [], updates={a: kept * a + scale * esat.outer(x, y)}), mode)
    assert [step.kind for step in function.steps] == ["kernel"]
    assert list(function.overwrites.values()) == [a]
    place = a.get_value(borrow=True)
    function(np.arange(5.0), np.arange(3.0))
    assert a.get_value(borrow=True) is place
    np.testing.assert_allclose(place, kept + scale * np.outer(np.arange(5.0), np.arange(3.0)), rtol=1e-14)
