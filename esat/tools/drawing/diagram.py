"""Diagrams: a graph, or a compiled function, as boxes and arrows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from esat.base.records import record
from esat.graph import Apply, Constant, SharedVariable, Variable, toposort
from esat.graph.algorithms.printing import outputs_of, program_of
from esat.graph.identity import is_among

BoxKind: TypeAlias = Literal[
    "input", "shared", "constant", "output", "apply", "view", "library", "size", "transfer"
]
ArrowKind: TypeAlias = Literal["read", "view", "overwrite"]


@record(frozen=True, slots=True)
class Box:
    """A node, or a variable that no node computes.

    Attributes
    ----------
    key
        Unique in its diagram.
    kind
        ``size`` is a node that no step runs: the shapes of the inputs decide its value.
    lines
        What stands in it.
    about
        What a reader is told who points at it.
    leads_to
        The place on a page that a click leads to; empty for none.
    """

    key: str
    kind: BoxKind
    lines: tuple[str, ...]
    about: str = ""
    leads_to: str = ""


@record(frozen=True, slots=True)
class Arrow:
    """A use of what one box computes in another.

    Attributes
    ----------
    tail, head
        Keys of the boxes.
    kind
        ``view``: the result shows the memory of what is read; ``overwrite``: it is written over it.
    about
        The variable, its type, and where it is used.
    mark
        Written beside its head: which operand it is, where that matters.
    """

    tail: str
    head: str
    kind: ArrowKind
    about: str = ""
    mark: str = ""


@record(frozen=True, slots=True)
class Cluster:
    """Nodes that are compiled together into one kernel.

    Attributes
    ----------
    key, label
        Its own name among clusters and boxes, and what is written above it.
    members
        Keys of its boxes.
    """

    key: str
    label: str
    members: tuple[str, ...]


@dataclass(slots=True)
class Diagram:
    """Boxes, arrows between them, and boxes that belong together."""

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)


def diagram_of(graph: Any) -> Diagram:
    """The diagram of a Variable, of several, of a FunctionGraph, or of a compiled function.

    Constants of one element stand in the boxes of the nodes that use them. Of a compiled function the
    kernels, and what overwrites what, are shown as well.
    """
    graph = program_of(graph)
    outputs = outputs_of(graph)
    nodes = toposort(outputs)
    overwrites: Mapping[Variable, Variable] = getattr(graph, "overwrites", {})
    steps: Sequence[Any] = getattr(graph, "steps", ())
    kinds: dict[Apply, BoxKind] = dict.fromkeys(nodes, "size" if steps else "apply")
    for step in steps:
        kinds.update(dict.fromkeys(step.nodes, "apply" if step.kind == "kernel" else step.kind))

    there = {
        node
        for step in steps
        if step.side == "device" and step.kind not in ("kernel", "transfer")
        for node in step.nodes
    }
    diagram = Diagram()
    keys: dict[Variable, str] = {}
    for number, node in enumerate(nodes):
        key = f"node{number}"
        keys.update(dict.fromkeys(node.outputs, key))
        types = ", ".join(dict.fromkeys(str(output.type) for output in node.outputs))
        place = f"\n{node.where[0]}:{node.where[1]}" if node.where else ""
        call = f"{_call_text(node)}{' @device' if node in there else ''}"
        diagram.boxes[key] = Box(key, kinds[node], (call, types), f"{node}{place}")
        for position, operand in enumerate(node.inputs):
            if not _stands_inside(operand):
                tail = keys.get(operand) or _leaf(diagram, keys, operand)
                kind = _use(node, position, overwrites)
                about = f"{operand}: {operand.type}, input {position} of {node.op}"
                mark = str(position) if _is_ordered(node) else ""
                diagram.arrows.append(Arrow(tail, key, kind, about, mark))
        for output in node.outputs:
            old = overwrites.get(output)
            if old is not None and not is_among(old, node.inputs):
                tail = keys.get(old) or _leaf(diagram, keys, old)
                about = f"{output} is written over {old}"
                diagram.arrows.append(Arrow(tail, key, "overwrite", about))
    _add_outputs(diagram, keys, outputs, getattr(graph, "updated", ()))
    for number, step in enumerate(steps):
        if step.kind == "kernel":
            members = tuple(dict.fromkeys(keys[node.outputs[0]] for node in step.nodes))
            label = f"kernel_{number}{' @device' if step.side == 'device' else ''}"
            diagram.clusters.append(Cluster(f"step{number}", label, members))
    return diagram


def _call_text(node: Apply) -> str:
    """The op, with its operands where some of them stand inside its box: ``mul(2.0, ·)``."""
    if not any(map(_stands_inside, node.inputs)):
        return str(node.op)
    shown = [_number(operand) if _stands_inside(operand) else "·" for operand in node.inputs]
    return f"{node.op}({', '.join(shown)})"


def _is_ordered(node: Apply) -> bool:
    """Whether a reader must be told which operand is which."""
    commutative = getattr(getattr(node.op, "facts", None), "commutative", False)
    return sum(not _stands_inside(operand) for operand in node.inputs) > 1 and not commutative


def _stands_inside(variable: Variable) -> bool:
    return isinstance(variable, Constant) and getattr(variable.data, "size", 0) == 1


def _number(variable: Variable) -> str:
    assert isinstance(variable, Constant)
    return variable.name or f"{variable.data.reshape(())}"


def _use(node: Apply, position: int, overwrites: Mapping[Variable, Variable]) -> ArrowKind:
    """What a node does to the memory of one of its operands."""
    written = any(position in places for places in node.op.destroy_map.values())
    if written or any(overwrites.get(output) is node.inputs[position] for output in node.outputs):
        return "overwrite"
    return "view" if any(position in places for places in node.op.view_map.values()) else "read"


def _leaf(diagram: Diagram, keys: dict[Variable, str], variable: Variable) -> str:
    """Add the box of a variable that no node computes; its key."""
    kind: BoxKind = "input"
    if isinstance(variable, Constant):
        kind = "constant"
    elif isinstance(variable, SharedVariable):
        kind = "shared"
    key = keys[variable] = f"leaf{len(keys)}"
    diagram.boxes[key] = Box(key, kind, (str(variable), str(variable.type)), f"{kind} {variable}")
    return key


def _add_outputs(
    diagram: Diagram, keys: dict[Variable, str], outputs: Sequence[Variable], updated: Sequence[Variable]
) -> None:
    count = len(outputs) - len(updated)
    names = [*(f"output {place}" for place in range(count)), *(f"new value of {one}" for one in updated)]
    for place, (output, name) in enumerate(zip(outputs, names, strict=True)):
        key = f"output{place}"
        tail = keys.get(output) or _leaf(diagram, keys, output)
        label = f"{name}: {output.name}" if output.name else name
        diagram.boxes[key] = Box(key, "output", (label,), f"{name}: {output.type}")
        diagram.arrows.append(Arrow(tail, key, "read", f"{output}: {output.type}"))
