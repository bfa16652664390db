"""Leaving out e-nodes keeps the optimum."""

from math import inf

import numpy as np
import pytest
from extract.random_egraphs import cheapest_by_enumeration, egraph, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from esat.extract.backend import PYTHON
from esat.extract.bits import bits_of
from esat.extract.reduce import Reduction, reduced, strong_components
from esat.extract.selection import Problem
from esat.extract.tree import as_array, links_of, tree_choice
from esat.extract.verify import verify_arrays


def reduction_of(problem: Problem, upper_bound: float) -> Reduction:
    return reduced(problem, tree_choice(problem, links_of(problem, PYTHON), PYTHON), upper_bound)


@given(seed=st.integers(0, 100_000), size=st.integers(6, 9), cyclic=st.sampled_from([0.0, 0.3, 0.8]))
@settings(max_examples=150, deadline=None)
def test_the_optimum_stays(seed: int, size: int, cyclic: float) -> None:
    arrays, costs, roots = random_problem(seed, size, cyclic)
    optimum = cheapest_by_enumeration(arrays, costs, roots)
    for bound in (inf, optimum * 1.3, optimum):
        smaller = reduction_of(Problem.of(arrays, costs, roots), bound)
        verify_arrays(smaller.problem.arrays)
        kept = smaller.problem
        found = cheapest_by_enumeration(kept.arrays, kept.costs, kept.roots.tolist())
        assert found + smaller.fixed_cost == pytest.approx(optimum, rel=1e-9, abs=1e-18)


def test_most_e_nodes_go() -> None:
    before = after = 0
    for seed in range(10):
        arrays, costs, roots = random_problem(seed, 80)
        problem = Problem.of(arrays, costs, roots)
        tree = tree_choice(problem, links_of(problem, PYTHON), PYTHON)
        known = problem.select(as_array(tree.choice), 0.0, "tree")
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
    tree = tree_choice(problem, links_of(problem, PYTHON), PYTHON)
    known = problem.select(as_array(tree.choice), 0.0, "tree")
    smaller = reduced(problem, tree, known.cost)
    inside = tree_choice(smaller.problem, links_of(smaller.problem, PYTHON), PYTHON)
    choice = smaller.problem.live(as_array(inside.choice))
    there = smaller.expand(choice, arrays)
    cost = smaller.problem.cost_of(choice) + smaller.fixed_cost
    assert problem.cost_of(problem.live(there)) == pytest.approx(cost)
    assert smaller.restrict(there).tolist() == choice.tolist()
    without = smaller.restrict(np.full(arrays.class_count, -1))
    assert without.tolist() == [-1] * smaller.problem.arrays.class_count


def test_strong_components() -> None:
    below = {0: [1], 1: [2], 2: [0, 3], 3: [4], 4: [], 5: [5, 3]}
    found = [sorted(component) for component in strong_components(list(below), below)]
    assert sorted(found) == [[0, 1, 2], [3], [4], [5]]
    assert list(bits_of(0b101001)) == [0, 3, 5]
