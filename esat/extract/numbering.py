"""Canonical numbering of classes and e-nodes.

The engine's own ids depend on what it did before. Extraction breaks ties by number, so numbers must follow
from the e-graph alone: classes of loaded terms come first, in the order of the terms; every other class is
named by a hash of its contents, from the leaves up (the idea of Weisfeiler and Leman's colour refinement,
1968; congruence closure makes one round per level enough, since two classes never hold the same e-node).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.extract.arrays import Attribute, BoolArray, EGraphArrays, IntArray, starts_of

HashArray = NDArray[np.uint64]


@record(frozen=True, eq=False)
class RawNodes:
    """E-nodes as the engine listed them, in any order, with classes numbered from 0 in any order.

    Attributes
    ----------
    operator, class_of, operand_count, attribute
        int64 ``(nodes,)``; ``attribute`` indexes ``attribute_values``.
    operands
        int64 ``(edges,)``: the operands of all e-nodes one after the other.
    place
        int64 ``(edges,)``: position of the operand in its e-node; the elements of one multiset share a
        position.
    origins
        As of :class:`~esat.extract.arrays.EGraphArrays`.
    """

    operator_names: tuple[str, ...]
    operator: IntArray
    class_of: IntArray
    operand_count: IntArray
    operands: IntArray
    place: IntArray
    attribute: IntArray
    attribute_values: tuple[tuple[Attribute, ...], ...]
    subsumed: BoolArray
    class_count: int
    term_class: IntArray
    facts: dict[str, dict[int, Attribute]]
    origins: Sequence[str] = ()


def canonical_arrays(raw: RawNodes) -> EGraphArrays:
    """The arrays of an e-graph, numbered canonically."""
    operator_names, operator_number = _sorted_names(raw.operator_names)
    operator = operator_number[raw.operator]
    owner = np.repeat(np.arange(len(operator), dtype=np.int64), raw.operand_count)
    class_number = _class_numbers(raw, owner)
    operands = class_number[raw.operands]
    operands = operands[np.lexsort((operands, raw.place, owner))]
    class_of = class_number[raw.class_of]
    attribute_order = _attribute_order(raw.attribute_values)

    start = starts_of(owner, len(operator))
    leading = [_operand_column(operands, start, position) for position in (2, 1, 0)]
    salted = _mix(operands.astype(np.uint64) + _mix(np.arange(len(operands)) - start[owner]))
    rest = _sum_by_row(salted, owner, len(operator))
    order = np.lexsort((rest, *leading, attribute_order[raw.attribute], operator, class_of))

    new_start = np.zeros(len(order) + 1, np.int64)
    np.cumsum(raw.operand_count[order], out=new_start[1:])
    gather = np.arange(len(operands)) + np.repeat(start[order] - new_start[:-1], raw.operand_count[order])
    return EGraphArrays(
        operator_names=operator_names,
        operator=operator[order],
        class_of=class_of[order],
        operand_start=new_start,
        operands=operands[gather],
        attribute=raw.attribute[order],
        attribute_values=raw.attribute_values,
        subsumed=raw.subsumed[order],
        class_start=starts_of(class_of, raw.class_count),
        term_class=np.where(raw.term_class >= 0, class_number[raw.term_class], -1),
        facts=_renumbered_facts(raw.facts, class_number),
        origins=[raw.origins[place] for place in order.tolist()] if any(raw.origins) else (),
    )


def _renumbered_facts(
    facts: dict[str, dict[int, Attribute]], class_number: IntArray
) -> dict[str, dict[int, Attribute]]:
    number = class_number.tolist()
    return {
        name: dict(sorted((number[klass], value) for klass, value in facts[name].items()))
        for name in sorted(facts)
    }


def _sorted_names(names: tuple[str, ...]) -> tuple[tuple[str, ...], IntArray]:
    by_name = sorted(range(len(names)), key=names.__getitem__)
    number = np.empty(len(names), np.int64)
    number[by_name] = np.arange(len(names))
    return tuple(names[index] for index in by_name), number


def _attribute_order(values: tuple[tuple[Attribute, ...], ...]) -> IntArray:
    """Rank of each attribute tuple; by text, since values may be NaN or of different types."""
    ranks = {text: rank for rank, text in enumerate(sorted({repr(value) for value in values}))}
    return np.array([ranks[repr(value)] for value in values], np.int64)


def _operand_column(operands: IntArray, start: IntArray, position: int) -> IntArray:
    """The operand at one position of every e-node, -1 where it has none."""
    column = np.full(len(start) - 1, -1, np.int64)
    at = start[:-1] + position
    has = at < start[1:]
    column[has] = operands[at[has]]
    return column


def _class_numbers(raw: RawNodes, owner: IntArray) -> IntArray:
    """int64 ``(classes,)``: canonical number of each raw class."""
    levels, labels, terms = _class_labels(raw, owner)
    order = np.lexsort((np.arange(raw.class_count), labels, levels, terms))
    number = np.empty(raw.class_count, np.int64)
    number[order] = np.arange(raw.class_count)
    return number


def _class_labels(raw: RawNodes, owner: IntArray) -> tuple[IntArray, HashArray, IntArray]:
    """Level, hash and first term number of each class; two classes agree in all three by collision only."""
    unknown = np.iinfo(np.int64).max
    first_term = np.full(raw.class_count, unknown, np.int64)
    numbers = np.flatnonzero(raw.term_class >= 0)
    np.minimum.at(first_term, raw.term_class[numbers], numbers)
    labels = _mix(first_term)
    levels = np.where(first_term < unknown, 0, unknown)
    operator_hash = _text_hashes(raw.operator_names)[raw.operator]
    node_hash = _mix(
        operator_hash + _text_hashes([repr(value) for value in raw.attribute_values])[raw.attribute]
    )
    place_hash = _mix(raw.place)

    nodes = np.flatnonzero(levels[raw.class_of] == unknown)
    edges = np.flatnonzero(levels[raw.class_of[owner]] == unknown)
    level = 0
    while len(nodes):
        level += 1
        waiting = np.zeros(len(raw.operator), np.bool_)
        waiting[owner[edges[levels[raw.operands[edges]] == unknown]]] = True
        ready = nodes[~waiting[nodes]]
        if not len(ready):
            break  # only e-nodes of classes without a finite term are left; they keep the engine's order
        operand_hash = _mix(labels[raw.operands[edges]] + place_hash[edges])
        hashes = _mix(node_hash + _sum_by_row(operand_hash, owner[edges], len(raw.operator)))
        classes = raw.class_of[ready]
        labels[classes] = np.iinfo(np.uint64).max
        np.minimum.at(labels, classes, hashes[ready])
        levels[classes] = level
        nodes = nodes[levels[raw.class_of[nodes]] == unknown]
        edges = edges[levels[raw.class_of[owner[edges]]] == unknown]
    return levels, labels, first_term


def _text_hashes(texts: tuple[str, ...] | list[str]) -> HashArray:
    digests = b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _sum_by_row(values: HashArray, rows: IntArray, count: int) -> HashArray:
    """Sum modulo 2**64 of the values of each row; independent of the order within a row."""
    totals = np.zeros(count, np.uint64)
    np.add.at(totals, rows, values)
    return totals


def _mix(values: NDArray[np.int64] | HashArray) -> HashArray:
    """SplitMix64's finalizer (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)."""
    bits = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
