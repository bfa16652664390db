"""The integer program beyond what enumeration can check."""

import pytest
from extract.random_egraphs import egraph, random_problem

from esat.extract.choice.choose import choose
from esat.extract.verify import verify_selection


def test_long_cycles_are_cut_off() -> None:
    # A ring of classes, each free from the next; only one entrance into the ring is cheap.
    length = 9
    nodes = [("In", (0,), (), 0)]
    for position in range(length):
        nodes.append(("Step", (position,), (1 + (position + 1) % length,), 1 + position))
        nodes.append(("Enter", (position,), (0,), 1 + position))
    arrays = egraph(nodes, length + 1)
    costs = [
        {"In": 0.0, "Step": 1e-9, "Enter": 1.0 + arrays.attributes_of(node)[0] * 1e-3}[
            arrays.operator_of(node)
        ]
        for node in range(arrays.node_count)
    ]
    roots = list(range(1, length + 1))
    selection = choose(arrays, costs, roots, method="optimal", time_limit=20.0)
    verify_selection(arrays, costs, roots, selection)
    assert selection.gap == 0.0
    assert selection.cost == pytest.approx(1.0 + (length - 1) * 1e-9, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_when_time_is_short(seed: int) -> None:
    arrays, costs, roots = random_problem(seed, 150, cyclic=0.4)
    short = choose(arrays, costs, roots, method="optimal", time_limit=0.05)
    full = choose(arrays, costs, roots, method="optimal")
    for selection in (short, full):
        verify_selection(arrays, costs, roots, selection)
    assert full.gap == 0.0
    assert full.cost <= short.cost
    assert short.lower_bound <= full.cost * (1 + 1e-9)
    assert 0.0 <= short.gap <= 1.0


def test_an_optimum_better_than_the_local_search_is_found() -> None:
    gains = 0
    for seed in range(40):
        arrays, costs, roots = random_problem(seed, 100)
        area = choose(arrays, costs, roots)
        optimal = choose(arrays, costs, roots, method="optimal", time_limit=20.0)
        assert optimal.method == "optimal"
        gains += optimal.cost < area.cost * (1 - 1e-9)
    assert gains > 0
