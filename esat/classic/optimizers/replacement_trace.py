"""Traces: a line for every replacement that optimizers make, while they make it."""

from __future__ import annotations

from collections.abc import Callable

from esat.graph import Client, Feature, FunctionGraph, Variable

Writer = Callable[[str], object]
"""What takes the lines of a trace, such as ``print``."""


class ReplacementTrace(Feature):
    """Writes who replaces what by what in a graph.

    A replacement that a feature refuses is undone: that is a line as well.

    Parameters
    ----------
    write
        Called with each line.
    """

    def __init__(self, write: Writer) -> None:
        self._write = write
        self._last: tuple[Variable, Variable, str] | None = None

    def on_change_input(
        self, graph: FunctionGraph, client: Client, old: Variable, new: Variable, reason: str
    ) -> None:
        # A replacement changes all uses of a Variable, one after the other.
        last = self._last
        if last is None or last[0] is not old or last[1] is not new or last[2] != reason:
            self._last = (old, new, reason)
            self._write(f"{reason or 'replaced'}: {_shown(old)} -> {_shown(new)}")


def _shown(variable: Variable) -> str:
    """The node that computes a Variable with its operands, or the name of one that none computes."""
    if variable.owner is None:
        return str(variable)
    return str(variable.owner) + (f".{variable.index}" if len(variable.owner.outputs) > 1 else "")
