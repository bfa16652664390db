"""Which axes have one length, as a forest of sets: loops that :mod:`esat.native` compiles."""

from __future__ import annotations

from esat.egraph.algebra.coded import Nodes
from esat.native import Integers


def unite(nodes: Nodes, is_pointwise: Integers, words: Integers, ranks: int, parent: Integers) -> None:
    """Unite the axes, numbered by ``ranks`` for each class, that have one length because of how ops
    broadcast.
    """
    for node in range(len(nodes.class_of)):
        if is_pointwise[node] == 0:
            continue
        klass = nodes.class_of[node]
        word = words[klass]
        for edge in range(nodes.start[node], nodes.start[node + 1]):
            below = nodes.operands[edge]
            other = words[below]
            if word <= 0 or other <= 0:
                continue
            for axis in range(ranks):
                if has_length(word, axis) and has_length(other, axis):
                    join(parent, klass * ranks + axis, below * ranks + axis)


def has_length(word: int, axis: int) -> bool:
    """Whether a broadcast word has an axis, and not of length 1."""
    return word >> (axis + 1) != 0 and (word >> axis) & 1 == 0


def unite_pairs(parent: Integers, left: Integers, right: Integers) -> None:
    """Unite the axes of pairs."""
    for place in range(len(left)):
        join(parent, left[place], right[place])


def join(parent: Integers, left: int, right: int) -> None:
    """Unite two sets of a forest; the smaller root stays."""
    left = root(parent, left)
    right = root(parent, right)
    if left < right:
        parent[right] = left
    else:
        parent[left] = right


def root(parent: Integers, item: int) -> int:
    """The root of an item's set; the way there becomes shorter."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


def find_all(parent: Integers) -> None:
    """Point every item to the root of its set."""
    for item in range(len(parent)):
        parent[item] = root(parent, item)
