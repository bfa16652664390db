"""Which axes have one length, as a forest of sets: loops that :mod:`esat.base.native` compiles."""

from __future__ import annotations

from esat.base.native import Integers
from esat.egraph.algebra.finite_fields.coded import CONTRACT, DIAGONAL, ON_DIAGONAL, REDUCE, SHUFFLE, Nodes
from esat.rules.language.macros import INSERTED


def unite(nodes: Nodes, broadcasts: Integers, words: Integers, ranks: int, parent: Integers) -> None:
    """Unite the axes that have one length because of how ops work.

    Parameters
    ----------
    nodes
        The e-nodes.
    broadcasts
        By e-node, 1 for what does the same for all elements.
    words
        Broadcast words of the classes.
    ranks
        The axes of class ``c`` are ``c * ranks``, ``c * ranks + 1``, ...
    parent
        The forest.
    """
    for node in range(len(nodes.class_of)):
        klass = nodes.class_of[node]
        code = nodes.code[node]
        first = nodes.start[node]
        if broadcasts[node] == 1 or code == REDUCE:
            for edge in range(first, nodes.start[node + 1]):
                for axis in range(ranks):
                    unite_axes(words, ranks, parent, klass, axis, nodes.operands[edge], axis)
        elif code == SHUFFLE:
            word = nodes.number[node]
            for axis in range((word >> 36) & 15):
                source = (word >> (4 * axis)) & 15
                if source != INSERTED:
                    unite_axes(words, ranks, parent, klass, axis, nodes.operands[first], source)
        elif code == CONTRACT:
            unite_product(nodes, words, ranks, parent, node)
        elif code == DIAGONAL:
            unite_diagonal(nodes, words, ranks, parent, node)
        elif code == ON_DIAGONAL:
            unite_axes(words, ranks, parent, klass, 0, nodes.operands[first], 0)
            unite_axes(words, ranks, parent, klass, 1, nodes.operands[first], 0)


def unite_product(nodes: Nodes, words: Integers, ranks: int, parent: Integers, node: int) -> None:
    """Unite the axes of a product of matrices, which are the last two axes."""
    klass = nodes.class_of[node]
    left = nodes.operands[nodes.start[node]]
    right = nodes.operands[nodes.start[node] + 1]
    column = nodes.number[node] - 1
    unite_axes(words, ranks, parent, left, column, right, column - 1)
    unite_axes(words, ranks, parent, klass, column - 1, left, column - 1)
    unite_axes(words, ranks, parent, klass, column, right, column)
    for axis in range(column - 1):
        unite_axes(words, ranks, parent, klass, axis, left, axis)
        unite_axes(words, ranks, parent, klass, axis, right, axis)


def unite_diagonal(nodes: Nodes, words: Integers, ranks: int, parent: Integers, node: int) -> None:
    """Unite the axes of diagonals; of matrices not known to be square they have a length of their own."""
    klass = nodes.class_of[node]
    below = nodes.operands[nodes.start[node]]
    last = nodes.number[node] - 1
    for axis in range(last - 1):
        unite_axes(words, ranks, parent, klass, axis, below, axis)
    if last < ranks and root(parent, below * ranks + last) == root(parent, below * ranks + last - 1):
        unite_axes(words, ranks, parent, klass, last - 1, below, last)


def unite_axes(
    words: Integers, ranks: int, parent: Integers, klass: int, axis: int, other: int, of_other: int
) -> None:
    """Unite two axes, unless one is not there or has the length 1."""
    if words[klass] <= 0 or words[other] <= 0 or axis >= ranks or of_other >= ranks:
        return
    if has_length(words[klass], axis) and has_length(words[other], of_other):
        join(parent, klass * ranks + axis, other * ranks + of_other)


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
