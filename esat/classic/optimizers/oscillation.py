"""Which optimizers undo each other, seen from the replacements made while a graph did not rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from esat.graph import Constant, Feature, FunctionGraph, Variable
from esat.graph.function_graph import Client

Expression = tuple[object, ...]

DEPTH = 4
"""Levels of an expression that tell it from others. Those that undo each other act near each other."""

REPEATED = 4
"""A replacement made this often was undone in between, be it by a change inside of what was put in."""


class ReplacementLog(Feature):
    """Notes what is replaced by what, and by whom, while it is attached to a graph."""

    one_of_a_kind = False  # an equilibrium inside another one watches its own optimizers

    def __init__(self) -> None:
        import networkx

        self._replacements = networkx.MultiDiGraph()
        self._times: Counter[tuple[Expression, Expression, str]] = Counter()

    def on_change_input(
        self, graph: FunctionGraph, client: Client, old: Variable, new: Variable, reason: str
    ) -> None:
        before, after = expression(old), expression(new)
        if before != after:
            self._replacements.add_edge(before, after, reason)
            self._times[before, after, reason] += 1

    def culprits(self, among: Container[str]) -> tuple[str, ...]:
        """Those optimizers that lead from some expression back to itself, by name."""
        import networkx

        names = {name for (_, _, name), times in self._times.items() if times >= REPEATED and name in among}
        for component in networkx.strongly_connected_components(self._replacements):
            inside = self._replacements.subgraph(component)
            names.update(name for _, _, name in inside.edges(keys=True) if name in among)
        return tuple(sorted(names))


def expression(variable: Variable, depth: int = DEPTH) -> Expression:
    """What a Variable computes, down to some depth, as a value that outlives changes of the graph."""
    node = variable.owner
    if node is None:
        if isinstance(variable, Constant) and hasattr(variable.data, "tobytes"):
            return (variable.type, variable.data.tobytes())
        return (id(variable),)
    if depth == 0:
        return ("...",)
    return (node.op, variable.index, *(expression(operand, depth - 1) for operand in node.inputs))
