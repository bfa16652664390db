"""Leaving out e-nodes keeps the optimum."""

from math import inf

import networkx
import numpy as np
import pytest
from extract.random_egraphs import cheapest_by_enumeration, egraph, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from esat.extract.choice import reduce, thinning
from esat.extract.choice.reduce import ReducedProblem, reduced
from esat.extract.choice.selection import Problem
from esat.extract.choice.thinning import Scratch
from esat.extract.choice.tree import tree_choice
from esat.extract.verify import verify_arrays


def reduction_of(problem: Problem, upper_bound: float) -> ReducedProblem:
    return reduced(problem, tree_choice(problem), upper_bound)


@given(seed=st.integers(0, 100_000), size=st.integers(6, 9), cyclic=st.sampled_from([0.0, 0.3, 0.8]))
@settings(max_examples=150, deadline=None)
def test_the_optimum_stays(seed: int, size: int, cyclic: float) -> None:
    check_the_optimum_stays(seed, size, cyclic)


@given(seed=st.integers(0, 100_000), size=st.integers(6, 9), cyclic=st.sampled_from([0.0, 0.3, 0.8]))
@settings(max_examples=100, deadline=None)
def test_the_optimum_of_a_large_problem_stays(seed: int, size: int, cyclic: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce, "LARGEST", 0)  # classes are known to need their operands only
        check_the_optimum_stays(seed, size, cyclic)


def check_the_optimum_stays(seed: int, size: int, cyclic: float) -> None:
    arrays, costs, roots = random_problem(seed, size, cyclic)
    optimum = cheapest_by_enumeration(arrays, costs, roots)
    for bound in (inf, optimum * 1.3, optimum):
        smaller = reduction_of(Problem.of(arrays, costs, roots), bound)
        verify_arrays(smaller.problem.arrays)
        kept = smaller.problem
        found = cheapest_by_enumeration(kept.arrays, kept.costs, kept.roots.tolist())
        assert found + smaller.fixed_cost == pytest.approx(optimum, rel=1e-9, abs=1e-18)
        for klass in arrays.class_of[smaller.fixed].tolist():
            # Without the e-nodes of a fixed class, nothing below the bound computes the roots.
            without = np.asarray(costs).copy()
            without[list(arrays.nodes_of(klass))] = inf
            left = np.append(smaller.nodes, smaller.fixed)
            only = np.full(arrays.node_count, inf)
            only[left] = without[left]
            assert cheapest_by_enumeration(arrays, only, roots) == inf


def test_most_e_nodes_go() -> None:
    before = after = 0
    for seed in range(10):
        arrays, costs, roots = random_problem(seed, 80)
        problem = Problem.of(arrays, costs, roots)
        tree = tree_choice(problem)
        known = problem.select(tree.choice, 0.0, "tree")
        smaller = reduced(problem, tree, known.cost)
        before, after = before + arrays.node_count, after + smaller.problem.arrays.node_count
    assert after < 0.5 * before


def test_an_operand_that_may_need_the_class_is_no_excuse() -> None:
    # Class 2 is forced. Class 1 by class 2 is cheap, but class 2 may be made from class 1, then it is not.
    nodes = [("In", (0,), (), 0), ("Own", (), (0,), 1), ("From2", (), (2,), 1)]
    nodes += [("From1", (), (1,), 2), ("Direct", (), (0,), 2), ("Root", (), (1, 2), 3)]
    arrays = egraph(nodes, 4)
    price = {"In": 0.0, "Own": 5.0, "From2": 1.0, "From1": 1.0, "Direct": 20.0, "Root": 1.0}
    costs = np.array([price[arrays.operator_of(node)] for node in range(arrays.node_count)])
    smaller = reduction_of(Problem.of(arrays, costs, [3]), inf)
    kept = {smaller.problem.arrays.operator_of(node) for node in range(smaller.problem.arrays.node_count)}
    assert {"Own", "From1"} <= kept


def test_choices_go_over_and_back() -> None:
    arrays, costs, roots = random_problem(3, 60)
    problem = Problem.of(arrays, costs, roots)
    tree = tree_choice(problem)
    known = problem.select(tree.choice, 0.0, "tree")
    smaller = reduced(problem, tree, known.cost)
    inside = tree_choice(smaller.problem)
    choice = smaller.problem.live(inside.choice)
    there = smaller.expand(choice, arrays)
    cost = smaller.problem.cost_of(choice) + smaller.fixed_cost
    assert problem.cost_of(problem.live(there)) == pytest.approx(cost)
    assert smaller.restrict(there).tolist() == choice.tolist()
    without = smaller.restrict(np.full(arrays.class_count, -1))
    assert without.tolist() == [-1] * smaller.problem.arrays.class_count


def test_a_chain_without_a_choice_is_fixed_as_a_whole() -> None:
    nodes = [("In", (0,), (), 0), *((f"Op{number}", (), (number,), number + 1) for number in range(5))]
    # Class 2 can be made from class 3 as well, but that needs class 2.
    arrays = egraph([*nodes, ("Back", (), (3,), 2)], 6)
    left = reduction_of(Problem.of(arrays, np.ones(arrays.node_count), [5]), inf)
    fixed = {arrays.operator_of(node) for node in left.fixed.tolist()}
    assert fixed == {"In", "Op0", "Op1", "Op2", "Op3", "Op4"}
    assert left.nodes.size == left.problem.roots.size == 0


def test_classes_that_can_be_made_from_each_other_are_left_to_be_chosen() -> None:
    nodes = [("In", (0,), (), 0), ("Left", (), (0,), 1), ("Right", (), (0,), 2), ("Root", (), (1, 2), 3)]
    arrays = egraph([*nodes, ("FromRight", (), (2,), 1), ("FromLeft", (), (1,), 2)], 4)
    price = {"In": 0.0, "Left": 5.0, "Right": 5.0, "Root": 1.0, "FromRight": 1.0, "FromLeft": 1.0}
    costs = np.array([price[arrays.operator_of(node)] for node in range(arrays.node_count)])
    left = reduction_of(Problem.of(arrays, costs, [3]), inf)
    assert {arrays.operator_of(node) for node in left.fixed.tolist()} == {"Root"}
    assert left.classes[left.problem.roots].tolist() == [1, 2]
    assert {arrays.operator_of(node) for node in left.nodes.tolist()} == set(price) - {"Root"}


@pytest.mark.parametrize("seed", range(20))
def test_strong_components(seed: int) -> None:
    arrays, _costs, _roots = random_problem(seed, 30, cyclic=0.5)
    edges = [
        (int(arrays.class_of[node]), child)
        for node in range(arrays.node_count)
        for child in arrays.operands_of(node).tolist()
    ]
    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(range(arrays.class_count))
    component = np.zeros(arrays.class_count, np.int64)
    nothing = np.zeros(0)
    every, none = np.ones(arrays.node_count, np.int64), np.zeros(0, np.int64)
    reached = np.ones(arrays.class_count, np.int64)
    scratch = Scratch(none, none, *np.zeros((6, arrays.class_count), np.int64))
    thinning.find_components(
        arrays.links,
        thinning.Thinning(every, nothing, none, none, reached, component, nothing, nothing),
        scratch,
    )
    expected = {frozenset(found) for found in networkx.strongly_connected_components(graph)}
    alone = {frozenset([klass]) for klass in np.flatnonzero(component == 0).tolist()}
    together = {
        frozenset(np.flatnonzero(component == number).tolist()) for number in range(1, component.max() + 1)
    }
    assert expected == alone | together
