"""Sets: the distinct elements of arrays, under NumPy's names. How many there are is known at run time
only."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from esat.errors import ParameterError, ShapeError, describe
from esat.frontend.arrays.assembling import append
from esat.frontend.arrays.creation import full
from esat.frontend.arrays.indexing import set_subtensor
from esat.frontend.arrays.pieces import lexsort
from esat.frontend.arrays.shaping import concatenate, ravel, reshape
from esat.frontend.elements.elementwise import isnan
from esat.frontend.elements.reductions import any
from esat.frontend.elements.searching import flatnonzero, isin, where
from esat.frontend.elements.sequences import diff
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.cumulative import cumsum
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of, sizes_of
from esat.ops.arrays.sorting import argsort
from esat.ops.arrays.view import moveaxis
from esat.ops.inference.axes import normalize_axis

__all__ = [
    "intersect1d",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """Distinct elements, where each is first, which one each element is, and how often each is there."""

    values: Variable
    indices: Variable
    inverse_indices: Variable
    counts: Variable


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each is there."""

    values: Variable
    counts: Variable


class UniqueInverse(NamedTuple):
    """Distinct elements, and which one each element is."""

    values: Variable
    inverse_indices: Variable


class _Runs:
    """The elements of an array in order, in runs of equal ones; or its parts along an axis.

    Parameters
    ----------
    ar
        The array.
    equal_nan
        Whether NaN equals NaN; it does not within parts along an axis.
    axis
        None for elements.

    Raises
    ------
    ShapeError
        For parts of an unknown number of elements.
    """

    def __init__(self, ar: Any, equal_nan: bool, axis: int | None) -> None:
        self.source = as_variable(ar)
        self.axis = None if axis is None else normalize_axis("unique", axis, self.source.tensor_type.ndim)
        ne = op_named("ne")
        if self.axis is None:
            flat = ravel(self.source)
            self.order = argsort(flat)
            self.sorted = flat[self.order]
            before, after = self.sorted[:-1], self.sorted[1:]
            new = ne(before, after)
            if equal_nan and self.source.tensor_type.kind in "fc":
                new = new & ~(isnan(before) & isnan(after))
        else:
            moved = moveaxis(self.source, self.axis, 0)
            self.order = self._order_of_parts(moved)
            self.sorted = moved[self.order]
            others = tuple(range(1, moved.tensor_type.ndim))
            new = any(ne(self.sorted[:-1], self.sorted[1:]), axis=others)
        # As many as there are elements: the first of them begins a run, if there is one.
        self.count = size_of(self.sorted, 0)
        self.begins = concatenate([full((1,), True), new])[: self.count]
        self.run = cumsum(self.begins.astype("int64")) - 1

    def _order_of_parts(self, moved: Variable) -> Variable:
        sizes = moved.tensor_type.shape[1:]
        if None in sizes:
            reason = "parts along an axis have a known number of elements"
            raise ShapeError(describe("unique", [self.source.type], reason))
        count = math.prod(size for size in sizes if size is not None)
        if count == 0:
            return arange(size_of(moved, 0))
        flat = reshape(moved, (size_of(moved, 0), count))
        return lexsort([flat[:, place] for place in reversed(range(count))])

    def placed(self, values: Variable) -> Variable:
        """Values along the axis that was asked for."""
        return values if self.axis is None else moveaxis(values, 0, self.axis)

    def values(self) -> Variable:
        """The first element of each run."""
        return self.placed(self.sorted[self.begins])

    def first(self) -> Variable:
        """The place of the first element of each run; sorting keeps the order of equal ones."""
        result: Variable = self.order[self.begins]
        return result

    def numbers(self) -> Variable:
        """The number of the run of each element, in the array's shape; or of each part, in a vector."""
        numbers = set_subtensor(full((self.count,), 0, "int64")[self.order], self.run)
        return numbers if self.axis is not None else reshape(numbers, sizes_of(self.source))

    def counts(self) -> Variable:
        """How many elements each run has."""
        return diff(append(flatnonzero(self.begins), self.count))

    def starts(self, size: int) -> Variable:
        """Where each of so many runs begins, the end of all elements for those that are not there."""
        blank = full((size + 1,), self.count)
        slot = where(self.begins & (self.run < size), self.run, size)
        result: Variable = set_subtensor(blank[slot], arange(self.count))[:size]
        return result


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct parts along an axis.

    Parameters
    ----------
    ar
        A Variable or array.
    return_index, return_inverse, return_counts
        Whether to give also the places where each is first; for each element or part of ``ar`` the place of
        its value among the results; and how often each is there.
    axis
        None for all elements; or the axis along which parts, of a known number of elements, are compared.
    equal_nan
        Whether all NaN count as one, where elements are compared.
    sorted
        Whether the order matters to the caller; it is ascending in any case.
    size
        A number of results that is known when the graph is built, as JAX's: further ones are left out.
        ``fill_value``, by default the first, stands for those that are missing; their place is that of the
        first, and there are 0 of them.

    Returns
    -------
    An array, or a tuple of it and what else is asked for.

    Raises
    ------
    ParameterError
        For a ``size`` that is not positive.
    ShapeError
        For parts of an unknown number of elements.

    Examples
    --------
    >>> esat.unique([3, 1, 3]).eval()
    array([1, 3])
    >>> esat.unique([[2, 1], [0, 5], [2, 1]], axis=0).eval()
    array([[0, 5],
           [2, 1]])
    """
    runs = _Runs(ar, equal_nan, axis)
    asked = {"index": return_index, "inverse": return_inverse, "counts": return_counts}
    if size is None:
        makers = {"index": runs.first, "inverse": runs.numbers, "counts": runs.counts}
        found = [runs.values(), *(makers[key]() for key, wanted in asked.items() if wanted)]
    else:
        if size < 1:
            raise ParameterError(describe("unique", [f"size={size!r}"], "a size is positive"))
        results = _of_size(runs, int(size), fill_value)
        found = [results["values"], *(results[key] for key, wanted in asked.items() if wanted)]
    return tuple(found) if len(found) > 1 else found[0]


def _of_size(runs: _Runs, size: int, fill_value: Any) -> dict[str, Variable]:
    """The results for so many distinct values."""
    bounds = runs.starts(size + 1)
    starts = bounds[:-1]
    missing = op_named("eq")(starts, runs.count)
    places = where(missing, 0, starts)
    values = runs.sorted[places]
    if fill_value is not None:
        each = dimshuffle(missing, (0, *["x"] * (values.tensor_type.ndim - 1)))
        values = where(each, as_variable(fill_value).astype(values.dtype), values)
    return {
        "values": runs.placed(values),
        "index": runs.order[places],
        "inverse": runs.numbers(),
        "counts": diff(bounds),
    }


def unique_values(x: Any) -> Variable:
    """As :func:`unique`, with NaN all distinct; in ascending order, where NumPy has none."""
    result: Variable = unique(x, equal_nan=False)
    return result


def unique_counts(x: Any) -> UniqueCounts:
    """Distinct elements, NaN all distinct, and how often each is there."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    """Distinct elements, NaN all distinct, and which one each element is."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_all(x: Any) -> UniqueAll:
    """Distinct elements, NaN all distinct, where each is first, which one each is, and how often."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def union1d(ar1: Any, ar2: Any) -> Variable:
    """The distinct elements of two arrays together, in ascending order."""
    result: Variable = unique(concatenate([ravel(ar1), ravel(ar2)]))
    return result


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """The distinct elements of one array that are not in another; all, in their order, if assumed
    distinct."""
    values = ravel(ar1) if assume_unique else unique(ar1)
    result: Variable = values[~isin(values, ar2)]
    return result


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """The distinct elements that are in both of two arrays, in ascending order."""
    values: Variable = unique(concatenate([ravel(ar1), ravel(ar2)[:0]]))  # in the dtype of both
    result: Variable = values[isin(values, ar2)]
    return result


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Variable:
    """The distinct elements that are in one of two arrays only, in ascending order."""
    result: Variable = unique(concatenate([setdiff1d(ar1, ar2), setdiff1d(ar2, ar1)]))
    return result
