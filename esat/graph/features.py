"""Features: plug-ins that a FunctionGraph tells of every change."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from esat.errors import CycleError, GraphError
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import Op
from esat.graph.variables import Apply, Variable

if TYPE_CHECKING:
    from esat.graph.function_graph import Client, FunctionGraph

GAP = 1 << 40
"""Distance of the ranks that nodes have at first, so that many replacements fit in between."""


class Feature:
    """Base of the plug-ins. Each method is told of one kind of change; the defaults do nothing.

    Attributes
    ----------
    finds_cycles
        Whether its ``validate`` refuses graphs that depend on themselves.
    one_of_a_kind
        Whether attaching a second one does nothing.
    """

    finds_cycles = False
    one_of_a_kind = True

    def on_attach(self, graph: FunctionGraph) -> None:
        """The feature now belongs to ``graph``. Raise GraphError to refuse."""

    def on_detach(self, graph: FunctionGraph) -> None:
        """The feature no longer belongs to ``graph``."""

    def on_import(self, graph: FunctionGraph, node: Apply) -> None:
        """``node`` became part of the graph."""

    def on_prune(self, graph: FunctionGraph, node: Apply) -> None:
        """``node`` is no longer part of the graph."""

    def on_change_input(
        self, graph: FunctionGraph, client: Client, old: Variable, new: Variable, reason: str
    ) -> None:
        """``client`` now uses ``new`` where it used ``old``."""

    def validate(self, graph: FunctionGraph) -> None:
        """Raise GraphError when the graph, as it is now, must not be kept."""


class TopologicalOrder(Feature):
    """Keeps a rank for every node, higher than the ranks of the nodes that feed it.

    A replacement makes a cycle iff what is put in depends on a user of what is replaced. As such a
    dependence leads to higher ranks only, few nodes have to be looked at to rule it out.
    """

    finds_cycles = True

    def __init__(self) -> None:
        self._rank: dict[Apply, int] = {}
        self._cyclic = False

    def on_attach(self, graph: FunctionGraph) -> None:
        self._number(graph)

    def on_detach(self, graph: FunctionGraph) -> None:
        self._rank.clear()

    def on_import(self, graph: FunctionGraph, node: Apply) -> None:
        self._rank[node] = 1 + self._highest(node.inputs)

    def on_prune(self, graph: FunctionGraph, node: Apply) -> None:
        del self._rank[node]

    def on_change_input(
        self, graph: FunctionGraph, client: Client, old: Variable, new: Variable, reason: str
    ) -> None:
        user = client[0]
        source = None if new in graph.input_set else new.owner
        if user == "output" or source is None or self._cyclic:
            return
        pending = [(user, self._rank[source])]
        while pending:
            node, above = pending.pop()
            if self._rank[node] > above:
                continue
            if node is source:
                self._cyclic = True
                return
            self._rank[node] = above + 1
            pending += [
                (user, above + 1)
                for output in node.outputs
                for user, _ in graph.clients[output]
                if user != "output"
            ]

    def validate(self, graph: FunctionGraph) -> None:
        if self._cyclic:
            self._number(graph)

    def would_cycle(self, graph: FunctionGraph, old: Variable, new: Variable) -> bool:
        """Whether ``new`` depends on a present user of ``old``."""
        users = {user for user, _ in graph.clients[old] if user != "output"}
        if not users:
            return False
        lowest = min(self._rank[user] for user in users)
        seen: set[Apply] = set()
        pending = [new]
        while pending:
            variable = pending.pop()
            node = variable.owner
            if node is None or variable in graph.input_set or node in seen:
                continue
            seen.add(node)
            rank = self._rank.get(node)
            if rank is not None and rank < lowest:
                continue
            if node in users:
                return True
            pending += node.inputs
        return False

    def _number(self, graph: FunctionGraph) -> None:
        """Rank all nodes afresh. Raises CycleError where that cannot be done."""
        self._cyclic = False
        try:
            nodes = toposort([node.outputs[0] for node in graph.apply_nodes], graph.input_set)
        except CycleError:
            self._cyclic = True
            raise
        self._rank = {node: (position + 1) * GAP for position, node in enumerate(nodes)}

    def _highest(self, variables: Iterable[Variable]) -> int:
        ranks = (self._rank.get(variable.owner, 0) for variable in variables if variable.owner is not None)
        return max(ranks, default=0)


class ReplaceValidate(Feature):
    """Publishes ``graph.replace_validate``: replace, check with every feature, undo on failure.

    A replacement that would make the graph depend on itself is refused before it is made.
    """

    def on_attach(self, graph: FunctionGraph) -> None:
        graph.attach_feature(TopologicalOrder())
        _publish(graph, "replace_validate", self._replace_validate(graph))
        _publish(graph, "replace_all_validate", self._replace_all_validate(graph))

    def on_detach(self, graph: FunctionGraph) -> None:
        del graph.replace_validate, graph.replace_all_validate

    def _replace_all_validate(self, graph: FunctionGraph) -> Callable[..., None]:
        def replace_all_validate(pairs: list[tuple[Variable, Variable]], reason: str = "") -> None:
            """Make all replacements or, when anything is raised meanwhile, none of them."""
            for old, _ in pairs:
                if old not in graph.clients:
                    raise GraphError(f"{old} is not part of this graph")
            done: list[tuple[Client, Variable]] = []
            try:
                for old, new in pairs:
                    # An earlier replacement may have made this one needless.
                    if old in graph.clients and old is not new:
                        _refuse_cycle(graph, old, new, reason)
                        done += [(client, old) for client in graph.clients[old]]
                        graph.replace(old, new, reason)
                graph.validate()
            except BaseException:
                for client, old in reversed(done):
                    # Features that raise again are told of all of it; what they raised first is what counts.
                    with contextlib.suppress(Exception):
                        graph.change_input(client, old, f"undo {reason}")
                raise

        return replace_all_validate

    def _replace_validate(self, graph: FunctionGraph) -> Callable[..., None]:
        def replace_validate(old: Variable, new: Variable, reason: str = "") -> None:
            """Replace ``old`` by ``new`` or, when a feature refuses the result, change nothing."""
            graph.replace_all_validate([(old, new)], reason)

        return replace_validate


class NodeFinder(Feature):
    """Publishes ``graph.get_nodes(op)``: the Apply nodes of an op, in order of their import."""

    def __init__(self) -> None:
        self._nodes: dict[Op, dict[Apply, None]] = {}

    def on_attach(self, graph: FunctionGraph) -> None:
        def get_nodes(op: Op) -> list[Apply]:
            """The nodes of the graph that apply ``op``."""
            return list(self._nodes.get(op, ()))

        _publish(graph, "get_nodes", get_nodes)
        for node in graph.toposort():
            self.on_import(graph, node)

    def on_detach(self, graph: FunctionGraph) -> None:
        self._nodes.clear()
        del graph.get_nodes

    def on_import(self, graph: FunctionGraph, node: Apply) -> None:
        self._nodes.setdefault(node.op, {})[node] = None

    def on_prune(self, graph: FunctionGraph, node: Apply) -> None:
        del self._nodes[node.op][node]


def _refuse_cycle(graph: FunctionGraph, old: Variable, new: Variable, reason: str) -> None:
    begin = time.perf_counter()
    order = graph.feature_of(TopologicalOrder)
    cyclic = order is not None and order.would_cycle(graph, old, new)
    graph.validate_seconds += time.perf_counter() - begin
    if cyclic:
        by = f" by {reason}" if reason else ""
        raise CycleError(f"{old} cannot be replaced{by} with {new}, which depends on a use of {old}")


def _publish(graph: FunctionGraph, name: str, method: Callable[..., Any]) -> None:
    if name in graph.__dict__:
        raise GraphError(f"another feature publishes {name!r} already")
    setattr(graph, name, method)
