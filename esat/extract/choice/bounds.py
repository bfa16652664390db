"""Lower bounds on the cost of any selection."""

from __future__ import annotations

from math import fsum, inf

import numpy as np

from esat.extract.choice.selection import Problem


def forced_bound(problem: Problem) -> float:
    """Seconds of what every selection contains.

    The roots are forced; so are the operands that all usable e-nodes of a forced class have in common. Each
    forced class pays at least its cheapest e-node.
    """
    arrays = problem.arrays
    forced, uses, pending = np.zeros((3, arrays.class_count), np.int64)
    forced[problem.roots] = 1
    pending[: len(problem.roots)] = problem.roots
    usable = (problem.costs < inf).astype(np.int64)
    problem.loops.spread_force(arrays.links, usable, forced, uses, pending, len(problem.roots))
    cheapest = np.full(arrays.class_count, inf)
    np.minimum.at(cheapest, arrays.class_of, problem.costs)
    return fsum(cheapest[forced == 1].tolist())
