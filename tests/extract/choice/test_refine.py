"""Moves: changes of one class of a selection."""

import pytest
from extract.random_egraphs import random_problem

from esat.extract.choice.choose import choose
from esat.extract.choice.refine import single_moves


@pytest.mark.parametrize("seed", range(10))
def test_single_moves_are_sorted_and_none_improves_a_local_optimum(seed: int) -> None:
    arrays, costs, roots = random_problem(seed, 60, cyclic=0.4)
    selection = choose(arrays, costs, roots)
    assert single_moves(arrays, costs, roots, selection, slack=-1e-12) == ()
    moves = single_moves(arrays, costs, roots, selection)
    assert all(node in arrays.nodes_of(klass) for ((klass, node),) in moves)
    assert all(selection.chosen[klass] not in (-1, node) for ((klass, node),) in moves)
    few = single_moves(arrays, costs, roots, selection, slack=5e-6)
    assert few == moves[: len(few)]
