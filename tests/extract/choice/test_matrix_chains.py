"""Chains of matrix products: the choice is the optimum that dynamic programming finds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from extract.random_egraphs import Node, egraph

from esat.extract.arrays import EGraphArrays, FloatArray
from esat.extract.choice.choose import choose


def chain(sizes: Sequence[int]) -> tuple[EGraphArrays, FloatArray, int]:
    """All ways to multiply matrices of these sizes, costs in seconds of multiplications, and the root."""
    length = len(sizes) - 1
    parts = [
        (first, last)
        for span in range(1, length + 1)
        for first in range(length - span + 1)
        for last in [first + span]
    ]
    number = {part: klass for klass, part in enumerate(parts)}
    nodes: list[Node] = []
    prices: dict[tuple[int, tuple[int, ...]], float] = {}
    for (first, last), klass in number.items():
        if last == first + 1:
            nodes.append(("In", (first,), (), klass))
            prices[klass, ()] = 0.0
        for middle in range(first + 1, last):
            operands = (number[first, middle], number[middle, last])
            nodes.append(("MatMul", (), operands, klass))
            prices[klass, operands] = 1e-9 * sizes[first] * sizes[middle] * sizes[last]
    arrays = egraph(nodes, len(parts))
    costs = np.array(
        [
            prices[int(arrays.class_of[node]), tuple(arrays.operands_of(node).tolist())]
            for node in range(arrays.node_count)
        ]
    )
    return arrays, costs, number[0, length]


def least_multiplications(sizes: Sequence[int]) -> int:
    """By dynamic programming (Godbole 1973)."""

    @cache
    def least(first: int, last: int) -> int:
        return min(
            (
                least(first, middle) + least(middle, last) + sizes[first] * sizes[middle] * sizes[last]
                for middle in range(first + 1, last)
            ),
            default=0,
        )

    return least(0, len(sizes) - 1)


@pytest.mark.parametrize("length", [2, 3, 8, 15, 30])
@pytest.mark.parametrize("seed", range(3))
def test_one_chain_is_multiplied_optimally(length: int, seed: int) -> None:
    rng = random.Random(100 * length + seed)
    sizes = [rng.randint(1, 600) for _ in range(length + 1)]
    arrays, costs, root = chain(sizes)
    found = choose(arrays, costs, [root])
    assert found.cost == pytest.approx(1e-9 * least_multiplications(sizes), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_bad_start_does_no_harm(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.randint(1, 600) for _ in range(21)]
    arrays, costs, root = chain(sizes)
    left_to_right = np.array([min(arrays.nodes_of(klass)) for klass in range(arrays.class_count)], np.int64)
    found = choose(arrays, costs, [root], initial=left_to_right)
    assert found.cost == pytest.approx(1e-9 * least_multiplications(sizes), rel=1e-9)


def test_overlapping_chains_cost_no_more_than_trees() -> None:
    rng = random.Random(7)
    sizes = [rng.choice([8, 16, 32, 64, 128, 256, 512]) for _ in range(31)]
    arrays, costs, root = chain(sizes)
    roots = [root, *(rng.randrange(60, arrays.class_count) for _ in range(8))]
    tree = choose(arrays, costs, roots, method="tree")
    assert choose(arrays, costs, roots).cost <= tree.cost
