"""Alternatives, moves and local search under a price of the whole."""

from dataclasses import replace

import pytest
from extract.random_egraphs import cheapest_by_enumeration, egraph, random_problem

from esat.extract.choose import choose
from esat.extract.refine import alternatives, refine, single_moves
from esat.extract.selection import Selection
from esat.extract.verify import verify_selection


@pytest.mark.parametrize("seed", range(25))
def test_alternatives_cost_what_the_best_selection_with_them_costs_or_more(seed: int) -> None:
    arrays, costs, roots = random_problem(seed, 8, cyclic=0.4)
    selection = choose(arrays, costs, roots, method="optimal")
    for klass in range(arrays.class_count):
        found = alternatives(arrays, costs, [*roots], selection, klass, limit=10)
        assert [entry.cost for entry in found] == sorted(entry.cost for entry in found)
        for entry in found:
            assert entry.node in arrays.nodes_of(klass)
            assert entry.node != selection.chosen[klass]
            forced = costs.copy()
            others = [node for node in arrays.nodes_of(klass) if node != entry.node]
            forced[others] = float("inf")
            optimum = cheapest_by_enumeration(arrays, forced, [*roots, klass])
            assert entry.cost >= optimum * (1 - 1e-12)
            assert entry.cost < float("inf")


def test_alternatives_are_limited_and_leave_out_the_impossible() -> None:
    nodes = [("In", (0,), (), 0), ("Neg", (), (1,), 2), ("Neg", (), (2,), 1)]
    nodes += [("Exp", (number,), (0,), 1) for number in range(4)]
    arrays = egraph(nodes, 3)
    price = {"In": lambda _: 0.0, "Neg": lambda _: 0.5, "Exp": lambda attributes: 1.0 + attributes[0]}
    costs = [price[arrays.operator_of(node)](arrays.attributes_of(node)) for node in range(arrays.node_count)]
    selection = choose(arrays, costs, [1, 2])
    assert selection.cost == 1.5
    found = alternatives(arrays, costs, [1, 2], selection, 1)
    assert [entry.cost for entry in found] == [2.5, 3.5, 4.5]  # Neg of class 2 would need class 1 itself
    assert len(alternatives(arrays, costs, [1, 2], selection, 1, limit=2)) == 2


def test_an_alternative_may_turn_its_users_around() -> None:
    # 1 is made from the input and 2 from 1; making 1 from 2 needs another way to 2.
    nodes = [
        ("In", (0,), (), 0),
        ("A", (), (0,), 1),
        ("B", (), (1,), 2),
        ("C", (), (2,), 1),
        ("D", (), (0,), 2),
    ]
    arrays = egraph(nodes, 3)
    price = {"In": 0.0, "A": 1.0, "B": 1.0, "C": 1.0, "D": 5.0}
    costs = [price[arrays.operator_of(node)] for node in range(arrays.node_count)]
    selection = choose(arrays, costs, [1, 2])
    assert [entry.cost for entry in alternatives(arrays, costs, [1, 2], selection, 1)] == [6.0]


@pytest.mark.parametrize("seed", range(10))
def test_refine_lowers_a_price_that_is_no_sum(seed: int) -> None:
    arrays, costs, roots = random_problem(seed, 60)
    selection = choose(arrays, costs, roots)

    def price(candidate: Selection) -> float:
        """A fixed charge for each kind of operator used, as a kernel launch would be."""
        used = {arrays.operator_of(node) for node in candidate.chosen if node >= 0}
        return candidate.cost + 4e-6 * len(used)

    moves = single_moves(arrays, costs, roots, selection)
    refined = refine(arrays, selection, roots, price, moves, costs=costs)
    verify_selection(arrays, costs, roots, refined)
    assert price(refined) <= price(selection)
    assert (refined is selection) == (price(refined) == price(selection))


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
    tree = choose(arrays, costs, roots, method="tree")
    if tree.cost > selection.cost * 1.2:
        better = single_moves(arrays, costs, roots, tree, slack=-1e-12)
        assert refine(arrays, tree, roots, lambda s: s.cost, better, costs=costs).cost < tree.cost


def test_refine_takes_a_move_the_sum_refuses_and_stops_in_time() -> None:
    nodes = [("In", (0,), (), 0), ("Cheap", (), (0,), 1), ("Fusible", (), (0,), 1)]
    arrays = egraph(nodes, 2)
    price = {"In": 0.0, "Cheap": 1.0, "Fusible": 1.5}
    costs = [price[arrays.operator_of(node)] for node in range(arrays.node_count)]
    selection = choose(arrays, costs, [1])

    def fused(candidate: Selection) -> float:
        return 0.1 if arrays.operator_of(int(candidate.chosen[1])) == "Fusible" else candidate.cost

    moves = single_moves(arrays, costs, [1], selection)
    refined = refine(arrays, selection, [1], fused, moves, costs=costs)
    assert refined.cost == 1.5
    assert refined.method == "area+refine"
    assert single_moves(arrays, costs, [1], selection, slack=0.1) == ()
    assert refine(arrays, selection, [1], fused, moves, costs=costs, time_limit=-1.0) is selection
    impossible = [((1, 0),), ((0, 1),)]
    assert refine(arrays, selection, [1], fused, impossible, costs=costs) is selection
    assert replace(refined, method="area").live_classes.tolist() == [0, 1]
