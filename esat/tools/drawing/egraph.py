"""The e-graph behind a compiled function: its classes, their e-nodes, what each costs, what was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from esat.base.records import record
from esat.extract.extraction import Extraction
from esat.extract.reasons.explain import written
from esat.extract.reasons.given_names import names_of_classes
from esat.graph.types import DTYPES
from esat.tools.drawing.diagram import Arrow, Box, BoxKind, Diagram

SHOWN_NODES = 5
"""E-nodes of a class that its box lists."""


@record(frozen=True, slots=True)
class ENode:
    """One way to compute a class.

    Attributes
    ----------
    text
        The expression, its operands the classes ``c1``, ...
    seconds
        Predicted for it alone.
    chosen, replaced
        Whether the program computes it; whether a rule replaced it for good.
    operator
        Its name in rules.
    """

    text: str
    seconds: float
    chosen: bool
    replaced: bool
    operator: str


@record(frozen=True, slots=True)
class EClass:
    """Equal ways to compute a value; the chosen one first, then the cheapest.

    Attributes
    ----------
    number
        It is called ``c`` and this number.
    type
        Dtype and expected sizes.
    nodes
        The ways.
    operands
        Numbers of the classes that the chosen way reads; empty where none is chosen.
    live
        Whether the program computes it.
    name
        What the user's program calls it; empty if unknown.
    """

    number: int
    type: str
    nodes: tuple[ENode, ...]
    operands: tuple[int, ...]
    live: bool
    name: str = ""


def classes_of(extraction: Extraction) -> list[EClass]:
    """The classes of an e-graph, those that the program computes first."""
    arrays, selection = extraction.graph.arrays, extraction.selection
    live = set(selection.live_classes.tolist())
    names = names_of_classes(extraction.graph.terms, arrays.term_class.tolist())
    found = []
    for klass in sorted(range(arrays.class_count), key=lambda number: (number not in live, number)):
        chosen = int(selection.chosen[klass]) if klass in live else -1
        nodes = [
            ENode(
                written(extraction.graph, node, [f"c{operand}" for operand in arrays.operands_of(node)]),
                float(extraction.costs[node]),
                node == chosen,
                bool(extraction.penalties[node] > 0.0),
                arrays.operator_of(node),
            )
            for node in arrays.nodes_of(klass)
            # A sum or product of the class alone says nothing.
            if node == chosen or set(arrays.operands_of(node).tolist()) != {klass}
        ]
        nodes.sort(key=lambda node: (not node.chosen, node.replaced, node.seconds, node.text))
        # The n-ary form and the binary op it stands for read alike: the chosen or cheaper one is shown.
        first: dict[str, ENode] = {}
        for node in nodes:
            first.setdefault(node.text, node)
        value = extraction.values[klass]
        sizes = "" if value is None else "x".join(f"{size:g}" for size in value.shape) or "scalar"
        operands = tuple(dict.fromkeys(arrays.operands_of(chosen).tolist())) if chosen >= 0 else ()
        if nodes:
            type = "" if value is None else f"{DTYPES[value.dtype]} {sizes}"
            found.append(
                EClass(klass, type, tuple(first.values()), operands, klass in live, names.get(klass, ""))
            )
    return found


def class_diagram(classes: Sequence[EClass], roots: Sequence[int]) -> Diagram:
    """The classes that the program computes, each with its cheapest ways; arrows follow the chosen one."""
    diagram = Diagram()
    for one in classes:
        if not one.live:
            continue
        key = f"c{one.number}"
        shown = [f"{'▸' if node.chosen else ' '} {node.text}  {cost_text(node)}" for node in one.nodes]
        more = len(shown) - SHOWN_NODES
        shown = [*shown[:SHOWN_NODES], *([f"  and {more} more"] if more > 0 else [])]
        kind: BoxKind = "output" if one.number in roots else "apply"
        diagram.boxes[key] = Box(key, kind, (f"{key}: {title(one)}", *shown), "", f"class{one.number}")
        diagram.arrows += [Arrow(f"c{operand}", key, "read") for operand in one.operands]
    return diagram


def title(one: EClass) -> str:
    """The type of a class, and its name if it has one."""
    return f"{one.name}, {one.type}" if one.name else one.type


def cost_text(node: ENode) -> str:
    """The price of an e-node as text."""
    if node.replaced:
        return "(replaced)"
    return f"{node.seconds * 1e6:.2f} us" if isfinite(node.seconds) else "(no price)"
