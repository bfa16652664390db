"""What an e-graph holds beside what was extracted, as nodes that local optimizers can be asked about.

A local optimizer looks at a node, and through it at the nodes of its operands. So there is a node for each
e-node of an op that it tracks: one over the cheapest forms of its operands, and one more for each other form
of an operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from esat.classic.local import LocalOptimizer
from esat.egraph.forms import op_of
from esat.egraph.loader import NARY_FORM
from esat.egraph.terms import Term
from esat.extract.arrays import EGraphArrays
from esat.extract.decode import decoded
from esat.extract.extraction import Extraction, superseded_nodes
from esat.extract.selected import selected_terms
from esat.extract.selection import Problem
from esat.extract.tree import tree_choice
from esat.graph import FunctionGraph, Variable
from esat.graph.registry import op_constructed
from esat.records import record

MOST_FORMS = 2_000
"""Nodes that are made, at most."""


@record(frozen=True, slots=True)
class _Form:
    """An e-node, of which one operand may be another e-node than the cheapest of its class."""

    node: int
    place: int = -1
    inner: int = -1


def alternatives(
    extraction: Extraction, like: FunctionGraph, locals: Sequence[LocalOptimizer]
) -> FunctionGraph | None:
    """A graph whose outputs are the forms that local optimizers may know something of; None without any.

    Parameters
    ----------
    extraction
        What was chosen, and all there was to choose from.
    like
        The graph that was encoded: gives inputs.
    locals
        Who will be asked. Those that track nothing want to see every node there could be, and do not.
    """
    graph, arrays = extraction.graph, extraction.graph.arrays
    prices = np.where(superseded_nodes(arrays), np.inf, extraction.costs)
    cheapest = tree_choice(Problem.of(arrays, prices, graph.roots)).choice
    usable = np.isfinite(prices) & (cheapest[arrays.class_of] >= 0)
    for node, operand in zip(*_links(arrays), strict=True):
        usable[node] &= cheapest[operand] >= 0
    asked = [node for node in np.flatnonzero(usable).tolist() if _is_followed(extraction, node, locals)]
    forms = list(islice(_forms(arrays, asked, usable, cheapest), MOST_FORMS))
    if not forms:
        return None
    return FunctionGraph(like.inputs, _values(extraction, forms, cheapest.tolist()))


def _links(arrays: EGraphArrays) -> tuple[list[int], list[int]]:
    """Each e-node once an operand, and the operand's class."""
    counts = np.diff(arrays.operand_start)
    return np.repeat(np.arange(arrays.node_count), counts).tolist(), arrays.operands.tolist()


def _is_followed(extraction: Extraction, node: int, locals: Sequence[LocalOptimizer]) -> bool:
    """Whether an optimizer tracks the op, or one of the ops of a sum or product."""
    arrays = extraction.graph.arrays
    name, attributes = arrays.operator_of(node), arrays.attributes_of(node)
    if name in ("NarySum", "NaryProd"):
        ops = [op_constructed(constructor) for constructor, form in NARY_FORM.items() if form == name]
    else:
        ranks = [0] * len(arrays.operands_of(node))
        known = op_of(name, attributes, ranks, extraction.graph.terms.opaque)
        ops = [None if known is None else known.op]
    return any(op is not None and local.tracks() and local.follows(op) for op in ops for local in locals)


def _forms(
    arrays: EGraphArrays, asked: Sequence[int], usable: np.ndarray, cheapest: np.ndarray
) -> Iterator[_Form]:
    for node in asked:
        yield _Form(node)
        for place, klass in enumerate(arrays.operands_of(node).tolist()):
            for inner in arrays.nodes_of(klass):
                if usable[inner] and inner != cheapest[klass]:
                    yield _Form(node, place, inner)


def _values(extraction: Extraction, forms: Sequence[_Form], cheapest: Sequence[int]) -> list[Variable]:
    """The Variables of the forms."""
    graph, arrays = extraction.graph, extraction.graph.arrays
    nodes = [number for form in forms for number in (form.node, form.inner) if number >= 0]
    classes = [klass for node in nodes for klass in arrays.operands_of(node).tolist()]
    classes = list(dict.fromkeys([*classes, *arrays.class_of[nodes].tolist()]))
    base, shapes = selected_terms(arrays, cheapest, classes, graph.terms, extraction.values, graph.strict)
    number = dict(zip(classes, base.roots, strict=True))
    terms, types, places, roots = list(base.terms), list(base.types), list(base.places), []

    def add(node: int, operands: Sequence[int]) -> int:
        like = number[int(arrays.class_of[node])]
        terms.append(Term(arrays.operator_of(node), tuple(operands), arrays.attributes_of(node)))
        types.append(types[like])
        shapes.append(shapes[like])
        places.append(places[like])
        return len(terms) - 1

    def operands_of(node: int) -> list[int]:
        return [number[klass] for klass in arrays.operands_of(node).tolist()]

    for form in forms:
        operands = operands_of(form.node)
        if form.inner >= 0:
            operands[form.place] = add(form.inner, operands_of(form.inner))
        roots.append(add(form.node, operands))
    whole = replace(base, terms=tuple(terms), types=tuple(types), places=tuple(places), roots=tuple(roots))
    return [value for value in decoded(whole, shapes) if isinstance(value, Variable)]
