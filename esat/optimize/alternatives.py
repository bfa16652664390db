"""What an e-graph holds beside what was extracted, as nodes that local optimizers can be asked about.

A local optimizer looks at a node, and through it at the nodes of its operands. So there is a node for each
e-node of an op that it tracks: one over the cheapest forms of its operands, and one more for each other form
of an operand.

Two kinds are asked. Users' local optimizers are Python, which may look at anything. Those that compute parts
of results from parts of operands depend on what rules cannot say: on items and sizes, and on whether the
whole is read elsewhere, without which each part of an array would get a copy of all that it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from esat.base.records import record
from esat.classic.optimizers.local import LocalOptimizer
from esat.egraph.language.forms import op_of
from esat.egraph.language.loader import NARY_FORM
from esat.egraph.language.terms import Term
from esat.extract.arrays import EGraphArrays, IntArray
from esat.extract.choice.selected import selected_terms
from esat.extract.choice.selection import Problem
from esat.extract.choice.tree import tree_choice
from esat.extract.decode import decoded
from esat.extract.extraction import Extraction, superseded_nodes
from esat.graph import FunctionGraph, Op, Variable
from esat.graph.registry import op_constructed

MOST_FORMS = 2_000
"""Nodes that are made, at most."""
_TAKEN_APART = frozenset(NARY_FORM.values())
MUCH_LARGER = 4.0
"""Elements of an array by those of a part, from which on computing the part alone may save much."""


@record(frozen=True, eq=False)
class Alternatives:
    """Forms that local optimizers may know something of.

    Attributes
    ----------
    graph
        They are its outputs.
    classes
        Variables of it, and the e-class that each belongs to: no news is that those of one class are equal.
    """

    graph: FunctionGraph
    classes: Mapping[Variable, int]


@record(frozen=True, slots=True)
class _Form:
    """An e-node, of which one operand may be another e-node than the cheapest of its class."""

    node: int
    place: int = -1
    inner: int = -1


def alternatives(
    extraction: Extraction,
    like: FunctionGraph,
    locals: Sequence[LocalOptimizer],
    lifts: Sequence[LocalOptimizer] = (),
) -> Alternatives | None:
    """The forms that local optimizers may know something of; None without any.

    Parameters
    ----------
    extraction
        What was chosen, and all there was to choose from.
    like
        The graph that was encoded: gives inputs.
    locals
        Who will be asked. Those that track nothing want to see every node there could be, and do not.
    lifts
        Who will be asked about small parts of large arrays only.
    """
    graph, arrays = extraction.graph, extraction.graph.arrays
    followed = _followed(extraction, locals)
    parts = _followed(extraction, lifts) & ~followed
    if not followed.any() and not parts.any():
        return None
    prices = np.where(superseded_nodes(arrays), np.inf, extraction.costs)
    cheapest = tree_choice(Problem.of(arrays, prices, graph.roots)).choice
    usable = np.isfinite(prices) & (cheapest[arrays.class_of] >= 0)
    counts = np.diff(arrays.operand_start)
    np.logical_and.at(usable, np.repeat(np.arange(arrays.node_count), counts), cheapest[arrays.operands] >= 0)
    asked = [
        *np.flatnonzero(followed & usable).tolist(),
        *(node for node in np.flatnonzero(parts & usable).tolist() if _is_small_part(extraction, node)),
    ]
    forms = list(islice(_forms(arrays, asked, usable, cheapest), MOST_FORMS))
    if not forms:
        return None
    values = _values(extraction, forms, cheapest.tolist())
    beside = FunctionGraph(like.inputs, list(values.values()))
    return Alternatives(beside, _classes(arrays, list(values), beside.outputs, cheapest.tolist()))


def _classes(
    arrays: EGraphArrays, forms: Sequence[_Form], outputs: Sequence[Variable], cheapest: Sequence[int]
) -> dict[Variable, int]:
    """The e-classes of what computes forms, down to ops that several stand for: these are taken apart."""
    found: dict[Variable, int] = {}
    waiting: list[tuple[int, Variable]] = []

    def note(node: int, value: Variable) -> list[Variable]:
        """The operands, which wait for their turn."""
        found[value] = int(arrays.class_of[node])
        operands = [] if value.owner is None else list(value.owner.inputs)
        classes = arrays.operands_of(node).tolist()
        if len(operands) != len(classes) or arrays.operator_of(node) in _TAKEN_APART:
            return []
        waiting.extend((cheapest[klass], one) for klass, one in zip(classes, operands, strict=True))
        return operands

    for form, output in zip(forms, outputs, strict=True):
        operands = note(form.node, output)
        if form.inner >= 0 and operands:
            note(form.inner, operands[form.place])
    while waiting:
        node, value = waiting.pop()
        if value not in found:
            note(node, value)
    return found


def _followed(extraction: Extraction, locals: Sequence[LocalOptimizer]) -> NDArray[np.bool_]:
    """Of each e-node whether an optimizer tracks its op, or one of the ops of a sum or product."""
    arrays = extraction.graph.arrays
    kinds, kind = np.unique(
        np.stack([arrays.operator, arrays.attribute, np.diff(arrays.operand_start)]),
        axis=1,
        return_inverse=True,
    )
    tracking = [local for local in locals if local.tracks()]
    found = [
        any(local.follows(op) for op in _ops_of(extraction, *one) for local in tracking)
        for one in kinds.T.tolist()
    ]
    return np.array(found, np.bool_)[kind.reshape(-1)]


def _ops_of(extraction: Extraction, operator: int, attribute: int, operands: int) -> list[Op]:
    arrays = extraction.graph.arrays
    name = arrays.operator_names[operator]
    if name in ("NarySum", "NaryProd"):
        ops = [op_constructed(constructor) for constructor, form in NARY_FORM.items() if form == name]
        return [op for op in ops if op is not None]
    known = op_of(name, arrays.attribute_values[attribute], [0] * operands, extraction.graph.terms.opaque)
    return [] if known is None else [known.op]


def _is_small_part(extraction: Extraction, node: int) -> bool:
    """Whether an operand has many more elements than what is made of it."""
    arrays, values = extraction.graph.arrays, extraction.values
    result, operands = (
        values[int(arrays.class_of[node])],
        map(values.__getitem__, arrays.operands_of(node).tolist()),
    )
    return result is not None and any(
        operand is not None and operand.size > MUCH_LARGER * result.size for operand in operands
    )


def _forms(
    arrays: EGraphArrays, asked: Sequence[int], usable: NDArray[np.bool_], cheapest: IntArray
) -> Iterator[_Form]:
    for node in asked:
        yield _Form(node)
        for place, klass in enumerate(arrays.operands_of(node).tolist()):
            for inner in arrays.nodes_of(klass):
                if usable[inner] and inner != cheapest[klass]:
                    yield _Form(node, place, inner)


def _values(extraction: Extraction, forms: Sequence[_Form], cheapest: Sequence[int]) -> dict[_Form, Variable]:
    """The Variables of the forms, but for those that have none."""
    graph, arrays = extraction.graph, extraction.graph.arrays
    nodes = [number for form in forms for number in (form.node, form.inner) if number >= 0]
    classes = [klass for node in nodes for klass in arrays.operands_of(node).tolist()]
    classes = list(dict.fromkeys([*classes, *arrays.class_of[nodes].tolist()]))
    base, shapes = selected_terms(arrays, cheapest, classes, graph.terms, extraction.values, graph.strict)
    number = dict(zip(classes, base.roots, strict=True))
    terms, types, places = list(base.terms), list(base.types), list(base.places)
    roots: list[int] = []

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
    values = zip(forms, decoded(whole, shapes), strict=True)
    return {form: value for form, value in values if isinstance(value, Variable)}
