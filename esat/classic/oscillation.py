"""Which optimizers undo each other: cycles among the replacements made while a graph did not rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import networkx

from esat.graph import Apply, Constant, Variable

Expression = tuple[object, ...]
Replacement = tuple[Variable, Variable]

DEPTH = 4
"""Levels of an expression that tell it from others. Those that undo each other act near each other."""


class ReplacementLog:
    """Expressions that were replaced by others, and by which optimizer."""

    def __init__(self) -> None:
        self._graph = networkx.MultiDiGraph()

    def add(self, replacements: Iterable[tuple[Expression, Expression]], name: str) -> None:
        """Note what an optimizer replaced by what."""
        for old, new in replacements:
            self._graph.add_edge(old, new, name=name)

    def culprits(self) -> tuple[str, ...]:
        """Names of the optimizers that lead from some expression back to itself, sorted."""
        names: set[str] = set()
        for component in networkx.strongly_connected_components(self._graph):
            inside = self._graph.subgraph(component)
            names.update(name for _, _, name in inside.edges(data="name"))
        return tuple(sorted(names))


def expressions(pairs: Sequence[Replacement]) -> list[tuple[Expression, Expression]]:
    """What pairs of Variables compute, as values that stay what they are when the graph changes."""
    return [(expression(old), expression(new)) for old, new in pairs]


def expression(variable: Variable, depth: int = DEPTH) -> Expression:
    """What a Variable computes, down to some depth; deeper operands are all alike."""
    node = variable.owner
    if node is None:
        return _leaf(variable)
    if depth == 0:
        return ("...",)
    return (node.op, variable.index, *_operands(node, depth))


def _operands(node: Apply, depth: int) -> Iterator[Expression]:
    for operand in node.inputs:
        yield expression(operand, depth - 1)


def _leaf(variable: Variable) -> Expression:
    if isinstance(variable, Constant) and hasattr(variable.data, "tobytes"):
        return (variable.type, variable.data.tobytes())
    return (id(variable),)
