"""``scipy.spatial.distance``: distances between rows, which are computed in float64 as SciPy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esat.errors import CallError, ShapeError, describe
from esat.graph.calls.callers import user_line
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cast import cast


def _euclidean(x: Variable, y: Variable) -> Variable:
    distance: Variable = op_named("sqrt")(_squared(x, y))
    return distance


def _squared(x: Variable, y: Variable) -> Variable:
    distance: Variable = op_named("sqr")(x - y).sum(axis=-1)
    return distance


def _cityblock(x: Variable, y: Variable) -> Variable:
    distance: Variable = abs(x - y).sum(axis=-1)
    return distance


def _chebyshev(x: Variable, y: Variable) -> Variable:
    distance: Variable = abs(x - y).max(axis=-1)
    return distance


def _cosine(x: Variable, y: Variable) -> Variable:
    sizes = (op_named("sqrt")(op_named("sqr")(one).sum(axis=-1)) for one in (x, y))
    left, right = sizes
    distance: Variable = 1.0 - (x * y).sum(axis=-1) / (left * right)
    return distance


METRICS: dict[str, Callable[[Variable, Variable], Variable]] = {
    "euclidean": _euclidean,
    "sqeuclidean": _squared,
    "cityblock": _cityblock,
    "chebyshev": _chebyshev,
    "cosine": _cosine,
}
"""Metrics by name -> distances of vectors along the last axis."""


def _metric(name: str, metric: Any, options: dict[str, Any]) -> Callable[[Variable, Variable], Variable]:
    given = [key for key, value in options.items() if value is not None]
    if given:
        raise CallError(describe(name, [f"{given[0]}=..."], "it is not known here", user_line()))
    if not isinstance(metric, str) or metric.lower() not in METRICS:
        reason = f"metrics for traced arrays are {', '.join(METRICS)}"
        raise CallError(describe(name, [f"metric={metric!r}"], reason, user_line()))
    return METRICS[metric.lower()]


def _points(name: str, value: Any, rank: int) -> Variable:
    variable = as_variable(value)
    if variable.ndim != rank:
        reason = "a matrix is wanted, a point a row" if rank == 2 else "a vector is wanted"
        raise ShapeError(describe(name, [variable.type], reason, user_line()))
    return cast(variable, "float64")


def cdist(
    left_points: Any, right_points: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any
) -> Variable:
    """The distance between each row of a matrix and each of another, as ``scipy.spatial.distance.cdist``."""
    distances = _metric("cdist", metric, {"out": out, **options})
    left, right = _points("cdist", left_points, 2), _points("cdist", right_points, 2)
    sizes = left.tensor_type.shape[1], right.tensor_type.shape[1]
    if None not in sizes and sizes[0] != sizes[1]:
        reason = f"points of {sizes[0]} and {sizes[1]} coordinates"
        raise ShapeError(describe("cdist", [left.type, right.type], reason, user_line()))
    return distances(left[:, None, :], right[None, :, :])


def pdist(all_points: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Variable:
    """The distances between rows, of each pair one, as ``scipy.spatial.distance.pdist``."""
    distances = _metric("pdist", metric, {"out": out, **options})
    points = _points("pdist", all_points, 2)
    count = points.tensor_type.shape[0]
    if count is None:
        reason = "a number of rows that is not known does not tell the pairs"
        raise ShapeError(describe("pdist", [points.type], reason, user_line()))
    first, second = np.triu_indices(count, 1)
    return distances(points[first], points[second])


def _of_vectors(name: str) -> Callable[..., Variable]:
    def distance(u: Any, v: Any, w: Any = None) -> Variable:
        distances = _metric(name, name, {"w": w})
        return distances(_points(name, u, 1), _points(name, v, 1))

    distance.__name__ = distance.__qualname__ = name
    return distance


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "scipy.spatial.distance.cdist": cdist,
    "scipy.spatial.distance.pdist": pdist,
    **{f"scipy.spatial.distance.{name}": _of_vectors(name) for name in METRICS},
}
"""SciPy's public names -> functions."""
