"""Loops before anything is searched: one in place of several of equal steps, without what nobody reads.

Before: one loop gives the last ``h``, another of the same steps, which a gradient needs, every ``h``; each
step computes ``exp(a)`` anew, of an ``a`` that does not change. After: ``e = exp(a)``, and one loop that
reads ``e`` and gives both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from esat.extract.prices.cost import CostModel
from esat.extract.prices.lasting import Repeated
from esat.graph import Apply, FunctionGraph, Variable
from esat.graph.algorithms.traversal import ancestors, postorder_of, toposort
from esat.ops.loops.parts import LoopParts
from esat.ops.loops.record import LoopOp, Scan, While
from esat.phases.loop_places import computed_once, moved_out

Improve = Callable[[LoopOp, Repeated | None], FunctionGraph]
"""From a loop to a better body of the same inputs and outputs; it is told what can be computed once."""

Key = tuple[Hashable, ...]


def with_better_loops(
    graph: FunctionGraph, improve: Improve, model: CostModel | None = None
) -> FunctionGraph:
    """A graph whose loops compute only what is read, once, with better bodies; itself where it has none.

    Parameters
    ----------
    graph
        The graph.
    improve
        Makes the bodies better.
    model
        Predicts the time of what may be computed outside of loops; None where sums may not be reordered, and
        all stays in its step.
    """
    if not any(isinstance(node.op, LoopOp) for node in graph.apply_nodes):
        return graph
    outputs = _rebuilt(_joined(graph.outputs), improve, model)
    return FunctionGraph(graph.inputs, outputs, clone=False)


def _joined(outputs: Sequence[Variable]) -> list[Variable]:
    """Outputs in which loops take their results from a loop that computes them as well.

    A gradient runs a loop once more with its carries kept, and a tangent one with tangents beside. Those
    have all results of the loop itself.
    """
    nodes = [node for node in toposort(outputs) if isinstance(node.op, LoopOp)]
    if len(nodes) < 2:
        return list(outputs)
    used = _read(outputs)
    found: dict[Key, Variable] = {}
    replaced: dict[Variable, Variable] = {}
    for node in sorted(nodes, key=lambda node: -len(node.outputs)):
        own = {output: _key(node, place) for place, output in enumerate(node.outputs)}
        read = {output: key for output, key in own.items() if output in used}
        if all(key in found for key in read.values()):
            replaced.update((output, found[key]) for output, key in read.items())
        else:
            for output, key in own.items():
                found.setdefault(key, output)
    return _substituted(outputs, replaced) if replaced else list(outputs)


def _key(node: Apply, place: int) -> Key:
    """What a result of a loop is: that of a loop which computes nothing else, with carries in an order that
    follows from the result."""
    parts = LoopParts.of(node)
    count, between = len(parts.carries), parts.count_of_results()
    following = dict(zip(parts.carries, parts.following, strict=True))
    kind, roots = f"control {place - count}", [] if parts.goes_on is None else [parts.goes_on]
    order: list[Variable] = []
    if place < count:
        kind, order = "last", [[*parts.carries][place]]
    elif place >= between:
        kind, roots = "kept", [parts.kept[place - between], *roots]
    parts.prune(
        [number == place for number in range(count)],
        [between + number == place for number in range(len(parts.kept))],
    )
    met: dict[Variable, None] = dict.fromkeys(order)
    met.update(dict.fromkeys(ancestors([*roots, *(following[own] for own in order)])))
    asked = set(order)
    while more := [own for own in met if own in parts.carries and own not in asked]:
        asked.update(more)
        met.update(dict.fromkeys(ancestors([following[own] for own in more])))
    parts.carries = {own: parts.carries[own] for own in met if own in parts.carries}
    parts.following = [following[own] for own in parts.carries]
    parts.sequences = {own: parts.sequences[own] for own in met if own in parts.sequences}
    parts.invariants = {own: parts.invariants[own] for own in met if own in parts.invariants}
    alone = parts.node()
    return (kind, alone.op, *alone.inputs)


def _rebuilt(outputs: Sequence[Variable], improve: Improve, model: CostModel | None) -> list[Variable]:
    """Outputs with loops that compute only what is read."""
    used = _read(outputs)
    copies: dict[Variable, Variable] = {}
    for node in toposort(outputs):
        operands = [copies.get(operand, operand) for operand in node.inputs]
        if isinstance(node.op, LoopOp):
            copies.update(_improved(node, operands, used, improve, model))
        elif any(a is not b for a, b in zip(operands, node.inputs, strict=True)):
            copies.update(zip(node.outputs, node.clone_with(operands).outputs, strict=True))
    return [copies.get(output, output) for output in outputs]


def _improved(
    node: Apply, operands: Sequence[Variable], used: set[Variable], improve: Improve, model: CostModel | None
) -> dict[Variable, Variable]:
    """Results of a loop that are read -> those of what takes its place."""
    parts = LoopParts.of(node.clone_with(operands))
    carries, between = list(parts.carries), parts.count_of_results()
    flags = [output in used for output in node.outputs]
    parts.forget_gradients()
    last = dict(zip(carries, node.outputs, strict=False))
    rows = [output for output in node.outputs[between:] if output in used]
    control = node.outputs[len(carries) : between]
    parts.prune(flags[: len(carries)], flags[between:])
    unchanged = parts.settle()
    found = {last[own]: value for own, value in unchanged.items() if last[own] in used}
    if not parts.carries and not parts.kept and parts.goes_on is None:
        return found
    plain = parts.node()
    assert isinstance(plain.op, LoopOp)
    once = None if model is None else computed_once(plain)
    made = _with_body(plain.op, improve(plain.op, once)).make_node(*plain.inputs)
    made.where = node.where
    results = moved_out(made, model) if model is not None and isinstance(made.op, Scan) else made.outputs
    found.update((last[own], results[place]) for place, own in enumerate(parts.carries))
    found.update(zip(control, results[len(parts.carries) :], strict=False))
    found.update(zip(rows, results[parts.count_of_results() :], strict=True))
    return found


def _with_body(op: LoopOp, body: FunctionGraph) -> LoopOp:
    if isinstance(op, Scan):
        return Scan(body, op.carries, op.sequences, op.reverse, op.expected, op.sparing)
    assert isinstance(op, While)
    return While(body, op.carries, op.max_steps)


def _substituted(outputs: Sequence[Variable], replaced: Mapping[Variable, Variable]) -> list[Variable]:
    """Outputs in which results of nodes have given way to others, also in what these are computed of."""

    def instead(variable: Variable) -> Variable:
        return replaced.get(variable, variable)

    def feeding(node: Apply) -> list[Apply]:
        return [one.owner for one in map(instead, node.inputs) if one.owner is not None]

    copies: dict[Variable, Variable] = {}
    final = list(map(instead, outputs))
    for node in postorder_of([one.owner for one in final if one.owner is not None], feeding):
        operands = [copies.get(operand, operand) for operand in map(instead, node.inputs)]
        if any(a is not b for a, b in zip(operands, node.inputs, strict=True)):
            copies.update(zip(node.outputs, node.clone_with(operands).outputs, strict=True))
    return [copies.get(output, output) for output in final]


def _read(outputs: Sequence[Variable]) -> set[Variable]:
    """All variables that something reads."""
    return {*outputs, *(operand for node in toposort(outputs) for operand in node.inputs)}
