"""Sets: the distinct elements of arrays, under NumPy's names. How many there are is known at run time
only."""

from __future__ import annotations

from typing import Any, NamedTuple

from esat.errors import ParameterError, describe
from esat.frontend.assembling import append
from esat.frontend.creation import full
from esat.frontend.elementwise import isnan
from esat.frontend.indexing import set_subtensor
from esat.frontend.searching import flatnonzero, isin, where
from esat.frontend.sequences import diff
from esat.frontend.shaping import concatenate, ravel, reshape
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.cumulative import cumsum
from esat.ops.shape import element_count, sizes_of
from esat.ops.sorting import argsort

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
    """The elements of an array in order, in runs of equal ones."""

    def __init__(self, ar: Any, equal_nan: bool) -> None:
        self.source = as_variable(ar)
        flat = ravel(self.source)
        self.order = argsort(flat)
        self.sorted = flat[self.order]
        before, after = self.sorted[:-1], self.sorted[1:]
        new = op_named("ne")(before, after)
        if equal_nan and self.source.tensor_type.kind in "fc":
            new = new & ~(isnan(before) & isnan(after))
        # As many as there are elements: the first of them begins a run, if there is one.
        self.begins = concatenate([full((1,), True), new])[: self.sorted.shape[0]]

    def first(self) -> Variable:
        """The place of the first element of each run; sorting keeps the order of equal ones."""
        result: Variable = self.order[self.begins]
        return result

    def numbers(self) -> Variable:
        """The number of the run of each element, in the array's shape."""
        run = cumsum(self.begins.astype("int64")) - 1
        blank = full((element_count(self.source),), 0, "int64")
        return reshape(set_subtensor(blank[self.order], run), sizes_of(self.source))

    def counts(self) -> Variable:
        """How many elements each run has."""
        return diff(append(flatnonzero(self.begins), element_count(self.source)))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements in ascending order.

    Parameters
    ----------
    ar
        A Variable or array; all of its elements are taken.
    return_index, return_inverse, return_counts
        Whether to give also the places where each is first; for each element of ``ar`` the place of its value
        among the results; and how often each is there.
    axis
        None.
    equal_nan
        Whether all NaN count as one.
    sorted
        Whether the order matters to the caller; it is ascending in any case.
    size
        A number of results that is known when the graph is built: further ones are left out, and
        ``fill_value``, by default the first, stands for those that are missing. Only without ``return_...``.

    Returns
    -------
    A vector, or a tuple of it and what else is asked for.

    Raises
    ------
    ParameterError
        For an axis, or a ``size`` together with further results.

    Examples
    --------
    >>> esat.unique([3, 1, 3]).eval()
    array([1, 3])
    """
    if axis is not None:
        raise ParameterError(describe("unique", [f"axis={axis!r}"], "only all elements together are taken"))
    runs = _Runs(ar, equal_nan)
    others = (return_index, return_inverse, return_counts)
    if size is not None:
        if any(others) or size < 1:
            reason = "a size is positive, and goes with no further results"
            raise ParameterError(describe("unique", [f"size={size!r}"], reason))
        return _of_size(runs, int(size), fill_value)
    values = runs.sorted[runs.begins]
    asked = [
        make() for make, wanted in zip((runs.first, runs.numbers, runs.counts), others, strict=True) if wanted
    ]
    return (values, *asked) if asked else values


def _of_size(runs: _Runs, size: int, fill_value: Any) -> Variable:
    """The first values, each at the number of its run; what comes after is written beyond the end."""
    run = cumsum(runs.begins.astype("int64")) - 1
    filling = runs.sorted[0] if fill_value is None else as_variable(fill_value).astype(runs.sorted.dtype)
    blank = full((size + 1,), filling)
    result: Variable = set_subtensor(blank[where(run < size, run, size)], runs.sorted)[:size]
    return result


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
