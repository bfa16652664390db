"""From a selection of e-nodes to the term DAG it stands for."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from esat.egraph.language.terms import SCALAR, Joins, Term, TermGraph, TermType
from esat.errors import UserLine
from esat.extract.arrays import EGraphArrays
from esat.extract.choice.source_order import WrittenSums
from esat.extract.prices.nary import Shape
from esat.extract.prices.value import Value
from esat.graph.algorithms.traversal import postorder_of
from esat.graph.types import DTYPES

_NARY = ("NarySum", "NaryProd")
_ROUNDED = frozenset(number for number, name in enumerate(DTYPES) if np.dtype(name).kind in "fc")
"""Numbers of the dtypes in which the order of additions matters."""


def selected_terms(
    arrays: EGraphArrays,
    chosen: Sequence[int],
    roots: Sequence[int],
    source: TermGraph,
    values: Sequence[Value | None],
    strict: Collection[int] = (),
) -> tuple[TermGraph, list[Shape]]:
    """The chosen e-nodes below the roots as terms, with the sizes they were priced with.

    Parameters
    ----------
    arrays
        The e-graph.
    chosen
        E-node of each class, -1 where none is chosen.
    roots
        Classes of the outputs.
    source
        The term DAG that was loaded: its tables and the sizes known of its terms carry over.
    values
        Shape and dtype of each class.
    strict
        E-nodes of which everything that was written together has to stay together.
    """
    rows, names, attributes = arrays.lists, arrays.operator_names, arrays.attribute_values

    def operands(klass: int) -> list[int]:
        return rows.operands_of(chosen[klass])

    order = postorder_of(list(roots), operands)
    number = {klass: position for position, klass in enumerate(order)}
    term_class = arrays.term_class.tolist()
    known = _known_types(term_class, source)
    places = _known_places(term_class, source)
    written = WrittenSums(source, term_class, chosen)
    terms: list[Term] = []
    types, shapes = [], []
    joins: dict[int, Joins] = {}
    strict_terms = []
    for klass in order:
        node, below = chosen[klass], operands(klass)
        name = names[rows.operator[node]]
        term = Term(name, tuple([number[operand] for operand in below]), attributes[rows.attribute[node]])
        type = known.get(klass) or _rule_made_type(arrays, klass)
        if name in _NARY and type.dtype in _ROUNDED:
            joins[len(terms)] = written.joins(name, klass, below, int(term.attributes[0]))
            if node in strict:
                strict_terms.append(len(terms))
        terms.append(term)
        types.append(type)
        value = values[klass]
        shapes.append(() if value is None else value.shape)
    selected = TermGraph(
        tuple(terms),
        tuple(types),
        tuple(number[root] for root in roots),
        source.inputs,
        source.arrays,
        source.opaque,
        tuple(places.get(klass) for klass in order),
        joins=joins,
        strict=frozenset(strict_terms),
    )
    selected.verify()
    return selected, shapes


def _known_types(term_class: Sequence[int], source: TermGraph) -> dict[int, TermType]:
    known: dict[int, TermType] = {}
    for term, klass in enumerate(term_class):
        if klass >= 0:
            known.setdefault(klass, source.types[term])
    return known


def _known_places(term_class: Sequence[int], source: TermGraph) -> dict[int, UserLine | None]:
    places: dict[int, UserLine | None] = {}
    for term, klass in enumerate(term_class):
        if klass >= 0 and places.get(klass) is None:
            places[klass] = source.place_of(term)
    return places


def _rule_made_type(arrays: EGraphArrays, klass: int) -> TermType:
    # An op whose results only Python types (a multi-output op) has no facts of its own.
    return TermType(
        int(arrays.facts.get("dt", {}).get(klass, 0)), int(arrays.facts.get("bp", {}).get(klass, SCALAR))
    )
