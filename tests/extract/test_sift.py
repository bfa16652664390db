"""The coarse reduction keeps the optimum, and fixes only what every selection contains."""

import numpy as np
import pytest
from extract.random_egraphs import cheapest_by_enumeration, egraph, random_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from esat.extract.backend import PYTHON
from esat.extract.selection import Problem
from esat.extract.sift import Sifted, sifted
from esat.extract.tree import links_of, tree_choice


def sifted_problem(problem: Problem) -> Sifted:
    return sifted(problem, tree_choice(problem, links_of(problem, PYTHON), PYTHON))


@given(seed=st.integers(0, 100_000), size=st.integers(6, 9), cyclic=st.sampled_from([0.0, 0.3, 0.8]))
@settings(max_examples=150, deadline=None)
def test_the_optimum_is_among_what_is_left(seed: int, size: int, cyclic: float) -> None:
    arrays, costs, roots = random_problem(seed, size, cyclic)
    left = sifted_problem(Problem.of(arrays, costs, roots))
    only = np.full(arrays.node_count, np.inf)
    kept = np.append(left.nodes, left.fixed)
    only[kept] = np.asarray(costs)[kept]
    optimum = cheapest_by_enumeration(arrays, costs, roots)
    assert cheapest_by_enumeration(arrays, only, roots) == pytest.approx(optimum, rel=1e-9, abs=1e-18)
    assert not np.intersect1d(left.nodes, left.fixed).size
    for klass in arrays.class_of[left.fixed].tolist():
        # Without the e-nodes of a fixed class, what is left computes the roots no more.
        without = only.copy()
        without[list(arrays.nodes_of(klass))] = np.inf
        assert cheapest_by_enumeration(arrays, without, roots) == np.inf


def test_a_chain_without_a_choice_is_fixed_as_a_whole() -> None:
    nodes = [("In", (0,), (), 0), *((f"Op{number}", (), (number,), number + 1) for number in range(5))]
    # Classes 2 and 3 can be made from each other as well: they are left to be chosen, with what is below.
    arrays = egraph([*nodes, ("Back", (), (3,), 2)], 6)
    costs = np.array(
        [50.0 if arrays.operator_of(node) == "Op1" else 1.0 for node in range(arrays.node_count)]
    )
    left = sifted_problem(Problem.of(arrays, costs, [5]))
    assert {arrays.operator_of(node) for node in left.fixed.tolist()} == {"Op3", "Op4"}
    assert {arrays.operator_of(node) for node in left.nodes.tolist()} == {"In", "Op0", "Op1", "Op2", "Back"}
    assert left.roots.tolist() == [2, 3]
