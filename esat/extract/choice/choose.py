"""Choosing one e-node for each class that the roots need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from time import perf_counter
from typing import Literal

from esat.errors import ModeError
from esat.extract.arrays import EGraphArrays, FloatArray, IntArray
from esat.extract.choice.area import area_choice, closed
from esat.extract.choice.bounds import forced_bound
from esat.extract.choice.compiled_loops import ExtractionBackend
from esat.extract.choice.integer_program import optimal_selection
from esat.extract.choice.reduce import ROUNDS, reduced
from esat.extract.choice.selection import Problem, Selection
from esat.extract.choice.tree import TreeChoice, tree_choice

Method = Literal["tree", "area", "optimal"]

REDUCTIONS_BEFORE_PROGRAM = 5
"""Rounds of leaving out e-nodes before an integer program; local search gains less by them than they take."""


def choose(
    arrays: EGraphArrays,
    costs: Sequence[float] | FloatArray,
    roots: Sequence[int] | IntArray,
    *,
    method: Method = "area",
    time_limit: float = inf,
    initial: IntArray | None = None,
    backend: ExtractionBackend | None = None,
) -> Selection:
    """Select a DAG that computes the roots.

    Parameters
    ----------
    costs
        ``(nodes,)`` seconds of each e-node, its operands given; infinite where it must not be chosen.
    roots
        Classes to compute.
    method
        ``"tree"``: the cheapest tree of each class, fast and blind to sharing; ``"area"``: the cost of the
        DAG, by local search; ``"optimal"``: from there on to a proven optimum, by integer programming.
    time_limit
        Seconds; the best selection so far is returned when they are over.
    initial
        int64 ``(classes,)``: e-nodes of a known selection, -1 elsewhere. Unless the method is ``"tree"``, the
        result costs at most as much. Part of a selection will do: it is a start of the search.
    backend
        What runs the loops, compiled ones by default. The result does not depend on it.

    Raises
    ------
    CompileError
        A needed class has no e-node of finite cost, or the arguments do not fit together.
    ModeError
        An unknown method.
    """
    if method not in ("tree", "area", "optimal"):
        raise ModeError(f"extract={method!r}: the methods are 'tree', 'area' and 'optimal'")
    deadline = perf_counter() + time_limit
    problem = Problem.of(arrays, costs, roots, backend)
    tree = tree_choice(problem)
    known = problem.select(tree.choice, 0.0, "tree")
    if method == "tree":
        return replace(known, lower_bound=min(forced_bound(problem), known.cost))
    start = known.chosen if initial is None else closed(problem, initial)
    if initial is not None and (start[problem.roots] >= 0).all():
        given = problem.select(start, 0.0, "area")
        known = given if given.cost <= known.cost else known
    found = _search(problem, tree, known, start, method, deadline)
    if found.cost < known.cost:
        return found
    return replace(known, method=method, lower_bound=min(found.lower_bound, known.cost))


def _search(
    problem: Problem,
    tree: TreeChoice,
    known: Selection,
    start: IntArray,
    method: Method,
    deadline: float,
) -> Selection:
    """The best selection that local search, and then integer programming, finds on the reduced problem."""
    rounds = REDUCTIONS_BEFORE_PROGRAM if method == "optimal" else ROUNDS
    smaller = reduced(problem, tree, known.cost, rounds)
    choice = area_choice(smaller.problem, smaller.restrict(start), deadline)
    found = smaller.problem.select(choice, forced_bound(smaller.problem), "area")
    if method == "optimal":
        found = optimal_selection(smaller.problem, found, deadline - perf_counter())
    chosen = smaller.expand(found.chosen, problem.arrays)
    bound = inf if found.gap == 0.0 else found.lower_bound + smaller.fixed_cost  # inf: as much as it costs
    return problem.select(chosen, bound, method)
