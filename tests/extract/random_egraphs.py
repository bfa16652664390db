"""E-graphs for the tests of extraction, and a brute-force search to compare with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import numpy as np

from esat.extract.arrays import Attribute, EGraphArrays, FloatArray
from esat.extract.numbering import RawNodes, canonical_arrays

Node = tuple[str, tuple[Attribute, ...], tuple[int, ...], int]
"""Operator, attributes, operand classes, class."""


def egraph(nodes: Sequence[Node], class_count: int, terms: Sequence[int] | None = None) -> EGraphArrays:
    """Arrays of these e-nodes; classes keep their numbers if ``terms`` is left out."""
    return canonical_arrays(raw_nodes(nodes, class_count, range(class_count) if terms is None else terms))


def raw_nodes(nodes: Sequence[Node], class_count: int, terms: Sequence[int]) -> RawNodes:
    names = tuple(dict.fromkeys(node[0] for node in nodes))
    keys = list(dict.fromkeys((node[0], node[1]) for node in nodes))
    return RawNodes(
        operator_names=names,
        operator=np.array([names.index(node[0]) for node in nodes], np.int64),
        class_of=np.array([node[3] for node in nodes], np.int64),
        operand_count=np.array([len(node[2]) for node in nodes], np.int64),
        operands=np.array([klass for node in nodes for klass in node[2]], np.int64),
        place=np.array([place for node in nodes for place in range(len(node[2]))], np.int64),
        attribute=np.array([keys.index((node[0], node[1])) for node in nodes], np.int64),
        attribute_values=tuple(attributes for _name, attributes in keys),
        subsumed=np.zeros(len(nodes), np.bool_),
        class_count=class_count,
        term_class=np.array(terms, np.int64),
        facts={},
    )


def random_nodes(seed: int, class_count: int, cyclic: float = 0.2) -> list[Node]:
    """E-nodes of which every class has a finite term; a share of them may close cycles."""
    rng = random.Random(seed)
    leaves = max(2, class_count // 5)
    nodes: list[Node] = [("In", (number,), (), number) for number in range(leaves)]
    for klass in range(leaves, class_count):
        for alternative in range(rng.randint(1, 4)):
            highest = class_count if alternative and rng.random() < cyclic else klass
            lowest = max(0, highest - 25) if rng.random() < 0.7 else 0
            operands = tuple(rng.randrange(lowest, highest) for _ in range(rng.randint(1, 3)))
            operator = rng.choice(["Add", "Exp", "MatMul", "Mul"])
            if any(known[:1] + known[2:3] == (operator, operands) for known in nodes):
                nodes.append((operator, (len(nodes),), operands, klass))
            else:
                nodes.append((operator, (), operands, klass))
    return nodes


def random_costs(arrays: EGraphArrays, seed: int) -> FloatArray:
    """Seconds; leaves are free, and some costs are equal."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(1, 20, arrays.node_count) * 1e-6
    if seed % 3 == 0:
        costs *= rng.uniform(0.5, 2.0, arrays.node_count)
    return np.where(arrays.arity == 0, 0.0, costs)


def random_problem(
    seed: int, class_count: int, cyclic: float = 0.2
) -> tuple[EGraphArrays, FloatArray, list[int]]:
    """An e-graph, costs and roots."""
    arrays = egraph(random_nodes(seed, class_count, cyclic), class_count)
    roots = random.Random(seed).sample(range(class_count // 2, class_count), 1 + seed % 3)
    return arrays, random_costs(arrays, seed), roots


def cheapest_by_enumeration(arrays: EGraphArrays, costs: FloatArray, roots: Sequence[int]) -> float:
    """The cost of the best selection, by trying every choice for every class."""
    best = float("inf")
    for nodes in product(*(arrays.nodes_of(klass) for klass in range(arrays.class_count))):
        needed: dict[int, bool] = {}

        def complete(klass: int, nodes: tuple[int, ...] = nodes, needed: dict[int, bool] = needed) -> bool:
            if klass in needed:
                return needed[klass]  # False while it is being completed: a cycle
            needed[klass] = False
            for child in arrays.operands_of(nodes[klass]).tolist():
                if not complete(child):
                    return False
            needed[klass] = True
            return True

        if all(complete(root) for root in roots):
            best = min(best, sum(costs[nodes[klass]] for klass in needed))
    return best
