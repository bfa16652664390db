"""Where calls leave streams of random numbers, if the user says nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from esat.graph.algorithms.traversal import toposort
from esat.graph.variables import SharedVariable, Variable
from esat.ops.random.variable import RandomVariable


class StreamState(SharedVariable):
    """The shared state of a stream, which goes on with every call of a function that draws from it."""

    __slots__ = ()


def advanced(results: Iterable[Variable], stop: Collection[Variable]) -> dict[SharedVariable, Variable]:
    """State of each stream that a graph draws from -> the state after the last of its draws there.

    Draws of the same stream that the graph does not need may come between, and are then made for the state.

    Parameters
    ----------
    results
        What the graph computes.
    stop
        Its inputs: nothing beyond them belongs to it.
    """
    draws: dict[Variable, tuple[StreamState, int]] = {}
    last: dict[SharedVariable, tuple[int, Variable]] = {}
    for node in toposort(results, stop):
        if not isinstance(node.op, RandomVariable):
            continue
        before, after = node.inputs[0], node.outputs[0]
        stream, count = (before, 0) if isinstance(before, StreamState) else draws.get(before, (None, 0))
        if stream is not None:
            draws[after] = (stream, count + 1)
            last[stream] = max(last.get(stream, (0, after)), (count + 1, after), key=lambda draw: draw[0])
    return {stream: after for stream, (_, after) in last.items()}
