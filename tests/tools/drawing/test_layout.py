"""The layered layout: nothing overlaps, arrows point down, and simple pictures have no crossings."""

import itertools
import random

import pytest
from effort import assert_near_linear

from esat.tools.drawing.layout import BOX_GAP, Edge, layered


def random_diagram(seed, count):
    rng = random.Random(seed)
    sizes = {number: (rng.uniform(10, 120), rng.uniform(10, 50)) for number in range(count)}
    pairs = {tuple(sorted(rng.sample(range(count), 2))) for _ in range(2 * count)} if count > 1 else set()
    return sizes, [Edge(tail, head) for tail, head in sorted(pairs)]


@pytest.mark.parametrize("seed", range(20))
def test_boxes_stand_apart_and_arrows_lead_down(seed):
    sizes, edges = random_diagram(seed, 1 + 3 * seed)
    layout = layered(sizes, edges)
    assert layout.centers.keys() == sizes.keys()
    for one, other in itertools.combinations(sizes, 2):
        (x, y), (other_x, other_y) = layout.centers[one], layout.centers[other]
        apart_x = abs(x - other_x) - (sizes[one][0] + sizes[other][0]) / 2
        apart_y = abs(y - other_y) - (sizes[one][1] + sizes[other][1]) / 2
        assert apart_x >= BOX_GAP - 1e-6 or apart_y > 0
    for key, (x, y) in layout.centers.items():
        width, height = sizes[key]
        assert width / 2 - 1e-6 <= x <= layout.width - width / 2 + 1e-6
        assert height / 2 - 1e-6 <= y <= layout.height - height / 2 + 1e-6
    for edge, route in zip(edges, layout.routes, strict=True):
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        assert route[0] == pytest.approx(
            (layout.centers[edge.tail][0], layout.centers[edge.tail][1] + sizes[edge.tail][1] / 2)
        )
        assert route[-1][1] == pytest.approx(layout.centers[edge.head][1] - sizes[edge.head][1] / 2)


@pytest.mark.parametrize("seed", range(10))
def test_arrows_run_through_no_box(seed):
    sizes, edges = random_diagram(seed, 20)
    layout = layered(sizes, edges)
    for route in layout.routes:
        # Within a row arrows run upright, at a bend.
        for (x, top), (_, bottom) in zip(route[1:-1:2], route[2:-1:2], strict=True):
            for key, (center, middle) in layout.centers.items():
                if top <= middle <= bottom:
                    assert abs(x - center) >= sizes[key][0] / 2


def test_a_chain_is_straight_and_a_tree_has_no_crossing():
    chain = layered(dict.fromkeys(range(5), (30.0, 10.0)), [Edge(n, n + 1) for n in range(4)])
    assert len({x for x, _ in chain.centers.values()}) == 1
    leaves = [f"leaf{number}" for number in range(8)]
    edges = [Edge(leaf, f"pair{number // 2}") for number, leaf in enumerate(leaves)]
    random.Random(0).shuffle(edges)
    sizes = {key: (30.0, 10.0) for edge in edges for key in (edge.tail, edge.head)}
    tree = layered(sizes, edges)
    order = sorted(leaves, key=lambda leaf: tree.centers[leaf][0])
    parents = [f"pair{int(leaf[4:]) // 2}" for leaf in order]
    assert len([parent for parent, _ in itertools.groupby(parents)]) == 4


def test_first_and_last_rows_and_shifts():
    sizes = dict.fromkeys("abcd", (20.0, 10.0))
    layout = layered(sizes, [Edge("b", "c", tail_shift=5.0, head_shift=-5.0), Edge("a", "d")], ["a"], ["d"])
    rows = sorted({y for _, y in layout.centers.values()})
    assert layout.centers["a"][1] == rows[0]
    assert layout.centers["d"][1] == rows[-1]
    (start_x, _), (end_x, _) = layout.routes[0][0], layout.routes[0][-1]
    assert start_x == layout.centers["b"][0] + 5.0
    assert end_x == layout.centers["c"][0] - 5.0
    assert start_x == pytest.approx(end_x), "the shifts are taken into account"


def test_the_work_of_a_layout_grows_with_the_diagram():
    def drawing(count):
        sizes, edges = random_diagram(0, count)
        local = [edge for edge in edges if abs(edge.tail - edge.head) < 30]
        local += [Edge(n, n + 1) for n in range(count - 1)]
        return lambda: layered(sizes, list(dict.fromkeys(local)))

    assert_near_linear(drawing, 250)
