"""Lower bounds on the cost of any selection."""

from __future__ import annotations

from math import fsum

from esat.extract.backend import Backend
from esat.extract.kernels import UNREACHED, Floats, Links
from esat.extract.selection import Problem
from esat.extract.tree import waiting_operands


def forced_bound(problem: Problem) -> float:
    """Seconds of what every selection contains.

    The roots are forced; so are the operands that all usable e-nodes of a forced class have in common. Each
    forced class pays at least its cheapest e-node.
    """
    arrays = problem.arrays
    costs = problem.costs.tolist()
    class_start = arrays.class_start.tolist()
    start, children = arrays.operand_lists
    pending = problem.roots.tolist()
    forced = set(pending)
    paid: list[float] = []
    infinite = float("inf")
    while pending:
        klass = pending.pop()
        common: set[int] | None = None
        cheapest = infinite
        for node in range(class_start[klass], class_start[klass + 1]):
            if costs[node] == infinite:
                continue
            cheapest = min(cheapest, costs[node])
            if common is None:
                common = set(children[start[node] : start[node + 1]])
            elif common:
                common.intersection_update(children[start[node] : start[node + 1]])
        paid.append(cheapest)
        for child in common or ():
            if child not in forced:
                forced.add(child)
                pending.append(child)
    return fsum(paid)


def deepest_path(problem: Problem, links: Links, backend: Backend) -> Floats:
    """Seconds of a chain below each class that no selection of it avoids, negative where it has none."""
    arrays = problem.arrays
    nothing = backend.integers(arrays.class_count, 0)
    best = backend.floats(arrays.class_count, UNREACHED)
    choice = backend.integers(arrays.class_count, -1)
    order = backend.integers(arrays.class_count, 0)
    pending = backend.vector(waiting_operands(arrays, nothing))
    backend.settle(links, backend.vector(problem.costs), nothing, best, choice, order, pending, True)
    return best
