"""The cheapest way to part steps between two sides: a minimum cut.

Every step has a time on the host and one on the device. What a step on the other side reads is copied once,
however many steps there read it. That is a minimum cut between the two sides, with one node a step and, for
each variable, one node a direction, so that its copy is paid once::

    device -> step     seconds on the host: cut where the step is on the host
    step -> host       seconds on the device: cut where it is on the device
    maker -> down      seconds of the copy: cut where the maker is on the device and a reader on the host
    down -> reader     never cut
    up -> maker        seconds of the copy: cut where the maker is on the host and a reader on the device
    reader -> up       never cut

It is exact for any program, in polynomial time (for two processors: Stone, "Multiprocessor scheduling with
the aid of network flow algorithms", IEEE Transactions on Software Engineering 3(1), 1977; the nodes of
variables make copies shared). What it cannot say is that a copy hides behind a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

import numpy as np

from esat.base.records import record
from esat.phases.transfer import Side

_LARGEST = 1 << 30
"""Capacities are integers of 32 bits."""

HOST, DEVICE = -1, -2
"""What reads or makes a variable that is no step: the sides themselves."""


@record(frozen=True, slots=True)
class Weight:
    """Seconds of a step on each side; infinite where it cannot run there."""

    host: float
    device: float


@record(frozen=True, slots=True)
class Flow:
    """A variable between steps.

    Attributes
    ----------
    maker
        Number of the step that makes it, or :data:`HOST` or :data:`DEVICE` where it is there beforehand.
    readers
        Numbers of the steps that read it, or of the sides where it must be at the end.
    seconds
        Of copying it to the other side.
    """

    maker: int
    readers: tuple[int, ...]
    seconds: float


def cheapest_sides(steps: Sequence[Weight], flows: Sequence[Flow]) -> tuple[Side, ...]:
    """The side of each step for which all steps and copies take the least time together.

    Where several choices take as long, fewer steps are on the device. Seconds are told apart to a billionth
    of all that could be paid.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    edges = _edges(len(steps), steps, flows)
    finite = sum(seconds for seconds in edges.values() if isfinite(seconds))
    if not finite:
        return tuple(_side(False) for _ in steps)
    # The infinite ones are larger than all others together, and never cut.
    scale = (_LARGEST - 1) / finite / 2.0
    capacities = [_LARGEST if seconds == inf else round(seconds * scale) for seconds in edges.values()]
    rows, columns = np.array(list(edges)).T
    count = 2 + len(steps) + 2 * len(flows)
    graph = csr_array((np.array(capacities, np.int32), (rows, columns)), shape=(count, count))
    graph.eliminate_zeros()
    rest = graph - maximum_flow(graph, _DEVICE_NODE, _HOST_NODE).flow
    rest.eliminate_zeros()
    reached = set(breadth_first_order(rest, _DEVICE_NODE, return_predecessors=False).tolist())
    return tuple(_side(2 + number in reached) for number in range(len(steps)))


_DEVICE_NODE, _HOST_NODE = 0, 1


def _side(reached: bool) -> Side:
    return "device" if reached else "host"


def _edges(count: int, steps: Sequence[Weight], flows: Sequence[Flow]) -> dict[tuple[int, int], float]:
    """Edge between two nodes -> seconds: the two sides come first, then steps, then variables."""
    edges: dict[tuple[int, int], float] = {}

    def add(tail: int, head: int, seconds: float) -> None:
        if tail != head:
            edges[tail, head] = edges.get((tail, head), 0.0) + seconds

    def node(number: int) -> int:
        return _HOST_NODE if number == HOST else _DEVICE_NODE if number == DEVICE else 2 + number

    for number, step in enumerate(steps):
        add(_DEVICE_NODE, 2 + number, step.host)
        add(2 + number, _HOST_NODE, step.device)
    for number, flow in enumerate(flows):
        down = 2 + count + 2 * number
        add(node(flow.maker), down, flow.seconds)
        add(down + 1, node(flow.maker), flow.seconds)
        for reader in flow.readers:
            add(down, node(reader), inf)
            add(node(reader), down + 1, inf)
    return edges


def seconds_of_sides(sides: Sequence[Side], steps: Sequence[Weight], flows: Sequence[Flow]) -> float:
    """Seconds of all steps and copies for given sides of the steps."""

    def side(number: int) -> Side:
        return "host" if number == HOST else "device" if number == DEVICE else sides[number]

    total = sum(step.host if here == "host" else step.device for step, here in zip(steps, sides, strict=True))
    for flow in flows:
        if any(side(reader) != side(flow.maker) for reader in flow.readers):
            total += flow.seconds
    return total
