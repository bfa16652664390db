"""From a selection of e-nodes to the term DAG it stands for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from esat.egraph.terms import SCALAR, Joins, Term, TermGraph, TermType
from esat.errors import UserLine
from esat.extract.arrays import EGraphArrays
from esat.extract.nary import Shape
from esat.extract.value import Value
from esat.extract.written import WrittenSums
from esat.graph.traversal import postorder_of
from esat.graph.types import DTYPES

_ROUNDED = frozenset(number for number, name in enumerate(DTYPES) if np.dtype(name).kind in "fc")
"""Numbers of the dtypes in which the order of additions matters."""


def selected_terms(
    arrays: EGraphArrays,
    chosen: Sequence[int],
    roots: Sequence[int],
    source: TermGraph,
    values: Sequence[Value | None],
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
    """

    def operands(klass: int) -> list[int]:
        return [int(operand) for operand in arrays.operands_of(int(chosen[klass]))]

    order = postorder_of(list(roots), operands)
    number = {klass: position for position, klass in enumerate(order)}
    known = _known_types(arrays, source)
    places = _known_places(arrays, source)
    written = WrittenSums(source, arrays.term_class.tolist(), chosen)
    terms: list[Term] = []
    types, shapes = [], []
    joins: dict[int, Joins] = {}
    for klass in order:
        node = int(chosen[klass])
        term = Term(
            arrays.operator_of(node),
            tuple(number[operand] for operand in operands(klass)),
            arrays.attributes_of(node),
        )
        type = known.get(klass) or _rule_made_type(arrays, klass)
        if term.constructor in ("NarySum", "NaryProd") and type.dtype in _ROUNDED:
            positives = int(term.attributes[0])
            joins[len(terms)] = written.joins(term.constructor, klass, operands(klass), positives)
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
    )
    selected.verify()
    return selected, shapes


def _known_types(arrays: EGraphArrays, source: TermGraph) -> dict[int, TermType]:
    known: dict[int, TermType] = {}
    for term, klass in enumerate(arrays.term_class.tolist()):
        if klass >= 0:
            known.setdefault(klass, source.types[term])
    return known


def _known_places(arrays: EGraphArrays, source: TermGraph) -> dict[int, UserLine | None]:
    places: dict[int, UserLine | None] = {}
    for term, klass in enumerate(arrays.term_class.tolist()):
        if klass >= 0 and places.get(klass) is None:
            places[klass] = source.place_of(term)
    return places


def _rule_made_type(arrays: EGraphArrays, klass: int) -> TermType:
    # An op whose results only Python types (a multi-output op) has no facts of its own.
    return TermType(
        int(arrays.facts.get("dt", {}).get(klass, 0)), int(arrays.facts.get("bp", {}).get(klass, SCALAR))
    )
