"""Features: plug-ins that a FunctionGraph tells of every change."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from esat.errors import GraphError
from esat.graph.op import Op
from esat.graph.variables import Apply, Variable

if TYPE_CHECKING:
    from esat.graph.function_graph import Client, FunctionGraph


class Feature:
    """Base of the plug-ins. Each method is told of one kind of change; the defaults do nothing."""

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


class ReplaceValidate(Feature):
    """Publishes ``graph.replace_validate``: replace, check with every feature, undo on failure."""

    def on_attach(self, graph: FunctionGraph) -> None:
        _publish(graph, "replace_validate", self._replace_validate(graph))
        _publish(graph, "replace_all_validate", self._replace_all_validate(graph))

    def on_detach(self, graph: FunctionGraph) -> None:
        del graph.replace_validate, graph.replace_all_validate

    def _replace_all_validate(self, graph: FunctionGraph) -> Callable[..., None]:
        def replace_all_validate(pairs: list[tuple[Variable, Variable]], reason: str = "") -> None:
            """Make all replacements or, when a feature refuses the result, none of them."""
            done: list[tuple[Client, Variable]] = []
            try:
                for old, new in pairs:
                    done += [(client, old) for client in graph.replace(old, new, reason)]
                graph.validate()
            except GraphError:
                for (client, position), old in reversed(done):
                    graph.change_input((client, position), old, f"undo {reason}")
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


def _publish(graph: FunctionGraph, name: str, method: Callable[..., Any]) -> None:
    if name in graph.__dict__:
        raise GraphError(f"another feature publishes {name!r} already")
    setattr(graph, name, method)
