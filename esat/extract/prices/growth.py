"""Choices that stay good when arrays grow: what sizes are open, nobody knows how large they will be.

A program is chosen for sizes that are assumed where nothing tells them. Of two that take about as long for
these, one may do asymptotically more: ``(x + y)[0]`` adds whole arrays, ``x[0] + y[0]`` two numbers. So where
the choice takes much longer for large arrays than another one would, large arrays have a say.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esat.egraph.language.terms import TermGraph
from esat.extract.arrays import FloatArray
from esat.extract.choice.selection import Problem, Selection
from esat.extract.choice.tree import tree_choice
from esat.extract.prices.class_values import Hints
from esat.extract.prices.expected_shapes import with_parts
from esat.extract.prices.value import UNKNOWN_SIZE

GROWTH = 256.0
"""Large sizes by assumed ones."""
MUCH = 2.0
"""Time for large arrays by that of another choice, from which on this one is looked for."""
TOLERATED = 0.05
"""Share of the time of a call with assumed sizes by which another choice may be slower for these."""


def grown(terms: TermGraph, hints: Hints | None) -> Hints | None:
    """The sizes of large arrays; None where all are known.

    Nothing is said of sparse matrices, whose stored values do not follow from their rows and columns.
    """
    known = dict(hints or {})
    symbols = {size for type in terms.types for size in type.shape if not isinstance(size, int)}
    unknown = symbols - known.keys()
    if not unknown or any(len(type.shape) > type.rank for type in terms.types):
        return None
    return with_parts(terms, known | dict.fromkeys(unknown, GROWTH * UNKNOWN_SIZE))


def good_for_growth(
    problem: Problem,
    chosen: Selection,
    large: FloatArray,
    search: Callable[[FloatArray], Selection],
    call: float,
) -> Selection:
    """The choice, or another that takes about as long and much less for large arrays.

    Parameters
    ----------
    problem
        The e-graph, and costs for the sizes that are assumed.
    chosen
        The choice for these.
    large
        float64 ``(nodes,)``: costs for large arrays.
    search
        The best choice for other costs.
    call
        Seconds of a call besides its steps: what is short beside these is no reason to grow.
    """
    if not 0.0 < chosen.cost < np.inf:
        return chosen
    growing = Problem.of(problem.arrays, large, problem.roots, problem.loops)
    known = growing.cost_of(chosen.chosen)
    other = growing.select(tree_choice(growing).choice, 0.0, "tree")
    if not known > MUCH * other.cost:
        return chosen
    tolerated = TOLERATED * (chosen.cost + call)
    found = search(problem.costs + tolerated / known * large)
    cost = problem.cost_of(found.chosen)
    if cost > chosen.cost + tolerated or growing.cost_of(found.chosen) >= known:
        return chosen
    return Selection(found.chosen, cost, min(chosen.lower_bound, cost), found.method)
