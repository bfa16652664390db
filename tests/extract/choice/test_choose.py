"""Choosing a DAG: tree, area flow and local search."""

from math import exp, inf, log
from typing import Any

import numpy as np
import pytest
from extract.checked_loops import CHECKED
from extract.random_egraphs import cheapest_by_enumeration, egraph, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from esat.errors import CompileError, ModeError
from esat.extract.choice.choose import choose
from esat.extract.choice.selection import Selection
from esat.extract.verify import verify_selection


def chosen_operators(arrays: Any, selection: Selection) -> list[str]:
    return [arrays.operator_of(node) for node in selection.chosen if node >= 0]


@given(seed=st.integers(0, 10_000), size=st.integers(6, 9), cyclic=st.sampled_from([0.0, 0.3, 0.8]))
@settings(max_examples=60, deadline=None)
def test_against_enumeration(seed: int, size: int, cyclic: float) -> None:
    arrays, costs, roots = random_problem(seed, size, cyclic)
    optimum = cheapest_by_enumeration(arrays, costs, roots)
    tree = choose(arrays, costs, roots, method="tree")
    area = choose(arrays, costs, roots)
    optimal = choose(arrays, costs, roots, method="optimal")
    for selection in (tree, area, optimal):
        verify_selection(arrays, costs, roots, selection)
        assert selection.lower_bound <= optimum * (1 + 1e-9)
    assert optimum * (1 - 1e-12) <= area.cost <= tree.cost
    assert optimal.cost == pytest.approx(optimum, rel=1e-9, abs=1e-18)
    assert optimal.gap == 0.0


@given(
    seed=st.integers(0, 10_000),
    size=st.sampled_from([6, 9, 40, 120]),
    cyclic=st.sampled_from([0.0, 0.3, 0.8]),
)
@settings(max_examples=40, deadline=None)
def test_compiled_and_interpreted_loops_choose_the_same(seed: int, size: int, cyclic: float) -> None:
    arrays, costs, roots = random_problem(seed, size, cyclic)
    for method in ("tree", "area"):
        interpreted = choose(arrays, costs, roots, method=method, backend=CHECKED)
        compiled = choose(arrays, costs, roots, method=method)
        assert interpreted.chosen.tolist() == compiled.chosen.tolist()
        assert interpreted.cost == compiled.cost


def test_area_is_close_to_the_optimum() -> None:
    ratios = []
    for seed in range(24):
        arrays, costs, roots = random_problem(seed, 80)
        area = choose(arrays, costs, roots)
        optimal = choose(arrays, costs, roots, method="optimal", time_limit=20.0)
        verify_selection(arrays, costs, roots, optimal)
        assert optimal.gap == 0.0
        assert optimal.cost <= area.cost
        ratios.append(log(area.cost / optimal.cost) if optimal.cost else 0.0)
    assert exp(sum(ratios) / len(ratios)) < 1.01


@pytest.mark.parametrize("seed", range(30))
def test_never_worse_than_the_initial_selection(seed: int) -> None:
    arrays, costs, roots = random_problem(seed, 70)
    # Initial selections that are good, bad, and good for other costs.
    others = np.random.default_rng(seed).permutation(costs)
    for initial_costs in (costs, np.where(costs > 0, costs.max() - costs + 1e-7, 0.0), others):
        initial = choose(arrays, initial_costs, roots, method="optimal" if seed % 5 == 0 else "area")
        improved = choose(arrays, costs, roots, initial=initial.chosen)
        verify_selection(arrays, costs, roots, improved)
        assert improved.cost <= sum(costs[initial.chosen[initial.live_classes]]) * (1 + 1e-12)


def test_the_initial_selection_wins_ties() -> None:
    arrays = egraph([("In", (0,), (), 0), ("Exp", (), (0,), 1), ("Log", (), (0,), 1)], 2)
    for node in arrays.nodes_of(1):
        initial = np.array([0, node])
        assert choose(arrays, [0.0, 1.0, 1.0], [1], initial=initial).chosen[1] == node


def test_shared_operands_are_paid_once() -> None:
    # Two roots: each alone is cheaper by its own e-node (6), together they share class 1 (5 + 2 * 2).
    nodes = [("In", (0,), (), 0), ("Shared", (), (0,), 1)]
    nodes += [("Own", (root,), (0,), root) for root in (2, 3)] + [
        ("Use", (root,), (1,), root) for root in (2, 3)
    ]
    arrays = egraph(nodes, 4)
    price = {"In": 0.0, "Shared": 5.0, "Own": 6.0, "Use": 2.0}
    costs = [price[arrays.operator_of(node)] for node in range(arrays.node_count)]
    assert choose(arrays, costs, [2], method="tree").cost == 6.0
    assert choose(arrays, costs, [2]).cost == 6.0
    both = choose(arrays, costs, [2, 3])
    assert both.cost == 9.0
    assert sorted(chosen_operators(arrays, both)) == ["In", "Shared", "Use", "Use"]


def test_sharing_through_a_class_in_between() -> None:
    # Three roots gain by the class 1 only if the dead classes between take it, too.
    roots = [5, 6, 7]
    nodes = [("In", (0,), (), 0), ("Shared", (), (0,), 1)]
    for root in roots:
        between = root - 3
        nodes += [("Direct", (between,), (0,), between), ("Through", (between,), (1,), between)]
        nodes += [("Own", (root,), (0,), root), ("Use", (root,), (between,), root)]
    arrays = egraph(nodes, 8)
    price = {"In": 0.0, "Shared": 6.0, "Direct": 6.0, "Through": 1.0, "Own": 6.0, "Use": 1.0}
    costs = [price[arrays.operator_of(node)] for node in range(arrays.node_count)]
    selection = choose(arrays, costs, roots)
    assert selection.cost == 12.0
    verify_selection(arrays, costs, roots, selection)


def test_cycles_are_never_chosen() -> None:
    # Classes 1 and 2 compute each other for almost nothing, but one of them has to be made from the input.
    nodes = [("In", (0,), (), 0), ("Neg", (1,), (2,), 1), ("Neg", (2,), (1,), 2)]
    nodes += [("Slow", (), (0,), 1), ("Slower", (), (0,), 2), ("Itself", (), (1, 0), 1)]
    arrays = egraph(nodes, 3)
    price = {"In": 0.0, "Neg": 0.0, "Slow": 5.0, "Slower": 7.0, "Itself": 0.0}
    costs = [price[arrays.operator_of(node)] for node in range(arrays.node_count)]
    for method in ("tree", "area", "optimal"):
        selection = choose(arrays, costs, [1, 2], method=method)
        verify_selection(arrays, costs, [1, 2], selection)
        assert selection.cost == 5.0


def test_a_tree_cost_beyond_the_range_of_floats() -> None:
    depth = 1500
    nodes = [("In", (0,), (), 0)] + [("Mul", (), (k - 1, k - 1), k) for k in range(1, depth)]
    nodes += [("Add", (k,), (k - 1, max(k - 2, 0)), k) for k in range(1, depth)]
    arrays = egraph(nodes, depth)
    costs = np.where(arrays.arity == 0, 0.0, 1e-6)
    selection = choose(arrays, costs, [depth - 1])
    verify_selection(arrays, costs, [depth - 1], selection)
    assert selection.cost == pytest.approx((depth - 1) * 1e-6)


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**40])
def test_the_unit_of_cost_does_not_matter(scale: float) -> None:
    arrays, costs, roots = random_problem(7, 120)
    assert (
        choose(arrays, costs, roots).chosen.tolist() == choose(arrays, costs * scale, roots).chosen.tolist()
    )


def test_one_exorbitant_e_node_does_not_blur_the_others() -> None:
    arrays, costs, roots = random_problem(8, 120)
    selection = choose(arrays, costs, roots)
    unused = next(n for n in range(arrays.node_count) if n not in set(selection.chosen) and costs[n] > 0)
    costs[unused] = 1e30
    assert choose(arrays, costs, roots).cost <= selection.cost


def test_free_e_graphs_and_no_roots() -> None:
    arrays, costs, roots = random_problem(3, 40)
    free = choose(arrays, np.zeros_like(costs), roots, method="optimal")
    verify_selection(arrays, np.zeros_like(costs), roots, free)
    assert (free.cost, free.gap) == (0.0, 0.0)
    nothing = choose(arrays, costs, [])
    assert nothing.cost == 0.0
    assert len(nothing.live_classes) == 0


def test_a_time_limit_of_zero_still_selects() -> None:
    arrays, costs, roots = random_problem(11, 300)
    for method in ("area", "optimal"):
        selection = choose(arrays, costs, roots, method=method, time_limit=0.0)
        verify_selection(arrays, costs, roots, selection)
        assert selection.cost <= choose(arrays, costs, roots, method="tree").cost


def test_infinite_costs_are_avoided_or_reported() -> None:
    arrays, costs, roots = random_problem(5, 60)
    selection = choose(arrays, costs, roots)
    target = next(c for c in selection.live_classes.tolist() if len(arrays.nodes_of(c)) > 1)
    costs[selection.chosen[target]] = inf
    other = choose(arrays, costs, roots)
    verify_selection(arrays, costs, roots, other)
    assert other.cost < inf
    with pytest.raises(CompileError, match=rf"class {roots[0]} is needed and has no usable e-node"):
        choose(arrays, np.full(arrays.node_count, inf), roots[:1])


def test_wrong_arguments_are_refused() -> None:
    arrays, costs, roots = random_problem(5, 20)
    with pytest.raises(CompileError, match="costs of shape"):
        choose(arrays, costs[:-1], roots)
    for wrong in (np.nan, -1e-9):
        bad = costs.copy()
        bad[3] = wrong
        with pytest.raises(CompileError, match="has the cost"):
            choose(arrays, bad, roots)
    with pytest.raises(CompileError, match="roots"):
        choose(arrays, costs, [arrays.class_count])
    with pytest.raises(ModeError, match="extract='best'"):
        choose(arrays, costs, roots, method="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [4, 12])
def test_a_chain_in_two_forms_is_changed_as_a_whole(length: int) -> None:
    # Both forms of a chain cost the same; the results are cheaper from the second. Alone no link may change.
    nodes = [("In", (0,), (), 0), ("First", (), (0,), 1), ("Second", (), (0,), 2)]
    for link in range(length):
        one, two, result = (3 + 3 * link + place for place in range(3))
        nodes += [("Link", (one,), (one - 3 if link else 1,), one)]
        nodes += [("Link", (two,), (two - 3 if link else 2,), two)]
        nodes += [("FromFirst", (result,), (one,), result), ("FromSecond", (result,), (two,), result)]
    arrays = egraph(nodes, 3 + 3 * length)
    price = {"In": 0.0, "First": 1.0, "Second": 2.0, "Link": 10.0, "FromFirst": 2.0, "FromSecond": 1.0}
    costs = [price[arrays.operator_of(node)] for node in range(arrays.node_count)]
    roots = [5 + 3 * link for link in range(length)]
    first = np.array([next(iter(arrays.nodes_of(klass))) for klass in range(arrays.class_count)])
    selection = choose(arrays, costs, roots, initial=first)
    verify_selection(arrays, costs, roots, selection)
    assert selection.cost == 2.0 + 11.0 * length
