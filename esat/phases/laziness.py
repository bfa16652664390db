"""Laziness: which nodes are needed for one side of a choice only, and so run only if it is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from esat.graph import Apply, Variable
from esat.ops.control import IfElse
from esat.phases.group import Guard


def find_guards(nodes: Sequence[Apply], outputs: Iterable[Variable]) -> dict[Apply, Guard]:
    """The conditions under which each node is needed; nodes that are needed always are left out.

    Parameters
    ----------
    nodes
        The nodes of a graph, each after those that feed it.
    outputs
        Of the graph.
    """
    if not any(isinstance(node.op, IfElse) for node in nodes):
        return {}
    wanted: dict[Variable, Guard] = dict.fromkeys(outputs, ())

    def want(variable: Variable, guard: Guard) -> None:
        known = wanted.get(variable)
        wanted[variable] = guard if known is None else _common(known, guard)

    guards: dict[Apply, Guard] = {}
    for node in reversed(nodes):
        found = [wanted[output] for output in node.outputs if output in wanted]
        guard = found[0] if found else ()
        for other in found[1:]:
            guard = _common(guard, other)
        if guard:
            guards[node] = guard
        sides: tuple[Sequence[Variable], Sequence[Variable]] = ((), ())
        if isinstance(node.op, IfElse):
            sides = node.op.branches(node.inputs)
            for side, chosen in zip(sides, (True, False), strict=True):
                for variable in side:
                    want(variable, (*guard, (node.inputs[0], chosen)))
        rest = node.inputs[: len(node.inputs) - sum(map(len, sides))]
        for variable in rest:
            want(variable, guard)
    return guards


def _common(one: Guard, other: Guard) -> Guard:
    """The conditions that two guards begin with."""
    length = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        length += 1
    return one[:length]
