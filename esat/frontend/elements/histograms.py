"""How many numbers, or points, lie in each bin, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import ParameterError, ShapeError, describe
from esat.frontend.arrays.assembling import unstack
from esat.frontend.arrays.creation import linspace, zeros
from esat.frontend.arrays.indexing import inc_subtensor
from esat.frontend.arrays.shaping import ravel
from esat.frontend.elements import reductions
from esat.frontend.elements.numeric import clip
from esat.frontend.elements.searching import ordered_numbers
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.searching import searchsorted
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import reshape
from esat.ops.cast import cast
from esat.ops.inference.promotion import common_dtype

__all__ = ["histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def histogram(
    a: Any,
    bins: Any = 10,
    range: tuple[Any, Any] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Variable, Variable]:
    """How many elements lie in each bin, and the bounds of the bins.

    Parameters
    ----------
    a
        Real numbers, of any shape.
    bins
        The number of bins of one width, or a vector of ascending bounds. A bin has its lower bound, the last
        one its upper bound too.
    range
        Bounds of the first and the last bin; by default the smallest and the largest element, 0 and 1 where
        there is none.
    density
        Whether to divide the counts by their sum and the widths of the bins.
    weights
        What each element counts, by default 1.

    Returns
    -------
    Counts, int64 or of the dtype of the weights, or float64 for a density; and bounds, one more.

    Raises
    ------
    ParameterError
        For a number of bins less than 1.
    DtypeError
        For complex numbers.
    """
    values = ravel(ordered_numbers("histogram", a))
    bounds = _bounds("histogram", values, bins, range)
    place, inside, number = _bin_of(values, bounds)
    one = as_variable(1) if weights is None else ravel(weights)
    counts = inc_subtensor(zeros((number,), one.tensor_type.dtype)[place], op_named("switch")(inside, one, 0))
    if density:
        counts = op_named("div")(op_named("div")(counts, _widths(bounds)), reductions.sum(counts))
    return counts, bounds


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Variable, Variable, Variable]:
    """How many pairs of elements lie in each cell, and the bounds of the cells.

    Parameters
    ----------
    x, y
        Real numbers, as many of each.
    bins
        A number of bins, or a vector of bounds, for both; or a pair of them.
    range
        A pair of bounds for each of both, or of None.
    density
        Whether to divide the counts by their sum and the areas of the cells.
    weights
        What each pair counts, by default 1.

    Returns
    -------
    Counts, float64, a row for each bin of ``x``; the bounds for ``x``; those for ``y``.

    Raises
    ------
    ParameterError, DtypeError
        As :func:`histogram`.

    Examples
    --------
    >>> esat.histogram2d([0.0, 1.0, 1.0], [0.0, 1.0, 0.0], bins=2)[0].eval()
    array([[1., 0.],
           [1., 1.]])
    """
    pair = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    counts, bounds = _counted("histogram2d", (x, y), pair, range, density, weights)
    return counts, bounds[0], bounds[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Variable, tuple[Variable, ...]]:
    """How many points lie in each cell, and the bounds of the cells.

    Parameters
    ----------
    sample
        Points in the rows of a matrix of a known number of columns, or a sequence with a vector for each
        coordinate.
    bins
        A number of bins for all coordinates; or a sequence with a number, or a vector of bounds, for each.
    range
        A pair of bounds for each coordinate, or of None.
    density
        Whether to divide the counts by their sum and the volumes of the cells.
    weights
        What each point counts, by default 1.

    Returns
    -------
    Counts, float64, with an axis for each coordinate; the bounds for each.

    Raises
    ------
    ShapeError
        When it is not known how many coordinates there are.
    ParameterError, DtypeError
        As :func:`histogram`.
    """
    columns = list(sample) if isinstance(sample, (list, tuple)) else list(_columns(as_variable(sample)))
    several = bins if isinstance(bins, (list, tuple)) else (bins,) * len(columns)
    if len(several) != len(columns):
        reason = f"there are bins for {len(several)} coordinates, and {len(columns)} coordinates"
        raise ParameterError(describe("histogramdd", [], reason))
    counts, bounds = _counted("histogramdd", columns, several, range, density, weights)
    return counts, tuple(bounds)


def _columns(points: Variable) -> tuple[Variable, ...]:
    if points.tensor_type.ndim != 2:
        points = reshape(points, (size_of(points, 0), 1)) if points.tensor_type.ndim == 1 else points
    if points.tensor_type.ndim != 2 or points.tensor_type.shape[1] is None:
        reason = "takes points in the rows of a matrix of a known number of columns"
        raise ShapeError(describe("histogramdd", [points.type], reason))
    return unstack(points, 1)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Variable:
    """The bounds of the bins of :func:`histogram`; ``weights`` do not matter.

    Raises
    ------
    ParameterError, DtypeError
        As :func:`histogram`.
    """
    return _bounds("histogram_bin_edges", ravel(ordered_numbers("histogram_bin_edges", a)), bins, range)


def _counted(
    name: str, columns: Sequence[Any], bins: Sequence[Any], range: Any, density: bool | None, weights: Any
) -> tuple[Variable, list[Variable]]:
    """How many points lie in each cell, and the bounds for each coordinate."""
    ranges = (None,) * len(columns) if range is None else tuple(range)
    places, sizes, bounds = [], [], []
    counted = cast(1 if weights is None else ravel(weights), "float64")
    for values, own, limits in zip(columns, bins, ranges, strict=True):
        numbers = ravel(ordered_numbers(name, values))
        bounds.append(_bounds(name, numbers, own, limits))
        place, inside, number = _bin_of(numbers, bounds[-1])
        places.append(place)
        sizes.append(number)
        counted = op_named("switch")(inside, counted, 0)
    counts = inc_subtensor(zeros(tuple(sizes), "float64")[tuple(places)], counted)
    if density:
        total = reductions.sum(counts)
        for axis, own in enumerate(bounds):
            widths = dimshuffle(_widths(own), ("x",) * axis + (0,) + ("x",) * (len(bounds) - axis - 1))
            counts = op_named("div")(counts, widths)
        counts = op_named("div")(counts, total)
    return counts, bounds


def _bin_of(values: Variable, bounds: Variable) -> tuple[Variable, Variable, Variable]:
    """The bin of each value, whether there is one, and how many bins there are."""
    number = op_named("sub")(size_of(bounds, 0), 1)
    inside = op_named("mul")(op_named("ge")(values, bounds[0]), op_named("le")(values, bounds[-1]))
    # The last bin has its upper bound, which a search would put into the next.
    place = clip(op_named("sub")(searchsorted(bounds, values, "right"), 1), 0, op_named("sub")(number, 1))
    return place, inside, number


def _widths(bounds: Variable) -> Variable:
    widths: Variable = op_named("sub")(bounds[1:], bounds[:-1])
    return widths


def _bounds(name: str, values: Variable, bins: Any, range: tuple[Any, Any] | None) -> Variable:
    given = as_variable(bins)
    if given.tensor_type.ndim == 1:
        return given
    if isinstance(bins, Variable) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise ParameterError(
            describe(name, [f"bins={bins!r}"], "bins are a positive number or a vector of bounds")
        )
    dtype = common_dtype(name, [*(range or ()), values])
    if np.dtype(dtype).kind in "biu":
        dtype = "float64"
    lowest, highest = (cast(bound, dtype) for bound in range or _extremes(cast(values, dtype)))
    half = op_named("switch")(op_named("eq")(lowest, highest), np.asarray(0.5, dtype), 0)
    spaced: Variable = linspace(lowest - half, highest + half, int(bins) + 1)
    return spaced


def _extremes(values: Variable) -> tuple[Variable, Variable]:
    """The smallest and the largest of some floats; 0 and 1 where there are none."""
    if values.tensor_type.shape[0]:
        return reductions.min(values), reductions.max(values)
    lowest, highest = reductions.min(values, initial=np.inf), reductions.max(values, initial=-np.inf)
    missing, switch = op_named("gt")(lowest, highest), op_named("switch")
    return switch(missing, 0, lowest), switch(missing, 1, highest)
