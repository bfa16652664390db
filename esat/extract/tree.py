"""Choice by tree cost: every class takes the e-node of its cheapest tree, shared parts paid at every use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esat.extract.arrays import EGraphArrays, IntArray
from esat.extract.backend import Backend
from esat.extract.kernels import UNREACHED, Floats, Integers, Links
from esat.extract.selection import Problem


@dataclass(frozen=True, eq=False)
class TreeChoice:
    """The cheapest tree of every class, as vectors of the backend.

    Attributes
    ----------
    choice
        E-node of each class, -1 for a class without a usable finite term.
    cost
        Tree cost of each class in seconds, negative where there is none.
    order
        Classes in ascending tree cost, operands before users; the first ``count`` entries.
    """

    choice: Integers
    cost: Floats
    order: Integers
    count: int


def links_of(problem: Problem, backend: Backend) -> Links:
    """The edges of the e-graph as vectors of the backend."""
    arrays = problem.arrays
    edges = (arrays.class_of, arrays.class_start, *arrays.distinct_operands, *arrays.parents)
    return Links(*(backend.vector(vector) for vector in edges))


def tree_choice(
    problem: Problem,
    links: Links,
    backend: Backend,
    paid: Integers | None = None,
    choice: Integers | None = None,
) -> TreeChoice:
    """The cheapest tree of every class.

    Parameters
    ----------
    paid
        1 for classes that cost nothing because they are computed anyway, 0 for the others.
    choice
        The choice that paid classes keep; changed in place.
    """
    arrays = problem.arrays
    free = backend.integers(arrays.class_count, 0) if paid is None else paid
    chosen = backend.integers(arrays.class_count, -1) if choice is None else choice
    best = backend.floats(arrays.class_count, UNREACHED)
    order = backend.integers(arrays.class_count, 0)
    pending = backend.vector(waiting_operands(arrays, free))
    costs = backend.vector(problem.costs)
    count = backend.settle(links, costs, free, best, chosen, order, pending, False)
    return TreeChoice(chosen, best, order, count)


def waiting_operands(arrays: EGraphArrays, free: Integers) -> IntArray:
    """int64 ``(nodes,)``: distinct operands of each e-node that are not free."""
    start, operands = arrays.distinct_operands
    counted = np.append(0, np.cumsum(np.asarray(free)[operands] == 0))
    waiting: IntArray = counted[start[1:]] - counted[start[:-1]]
    return waiting


def as_array(vector: Integers) -> IntArray:
    """A backend's integer vector as an int64 array of its own."""
    return np.array(vector, np.int64)
