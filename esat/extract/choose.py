"""Choosing one e-node for each class that the roots need."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal

from esat.errors import ModeError
from esat.extract.area import area_choice
from esat.extract.arrays import EGraphArrays, FloatArray, IntArray
from esat.extract.backend import Backend, backend_for
from esat.extract.bounds import forced_bound
from esat.extract.exact import optimal_selection
from esat.extract.selection import Problem, Selection
from esat.extract.tree import as_array, links_of, tree_choice

Method = Literal["tree", "area", "optimal"]


def choose(
    arrays: EGraphArrays,
    costs: Sequence[float] | FloatArray,
    roots: Sequence[int] | IntArray,
    *,
    method: Method = "area",
    time_limit: float = inf,
    initial: IntArray | None = None,
    backend: Backend | None = None,
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
        result costs at most as much.
    backend
        Where the kernels run; by default according to the size. The result does not depend on it.

    Raises
    ------
    CompileError
        A needed class has no e-node of finite cost, or the arguments do not fit together.
    ModeError
        An unknown method.
    """
    problem = Problem.of(arrays, costs, roots)
    where = backend if backend is not None else backend_for(arrays.node_count)
    if method == "tree":
        choice = as_array(tree_choice(problem, links_of(problem, where), where).choice)
        return problem.select(choice, forced_bound(problem), method)
    if method not in ("area", "optimal"):
        raise ModeError(f"extract={method!r}: the methods are 'tree', 'area' and 'optimal'")
    share = time_limit if method == "area" else 0.2 * time_limit
    choice = area_choice(problem, where, initial, share)
    heuristic = problem.select(choice, forced_bound(problem), "area")
    if method == "area":
        return heuristic
    return optimal_selection(problem, heuristic, where, 0.8 * time_limit)
