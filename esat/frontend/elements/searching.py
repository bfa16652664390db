"""Searching, counting and interpolation under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from esat.errors import CallError, DtypeError, IndexingError, ParameterError, ShapeError, describe
from esat.frontend.arrays.creation import zeros
from esat.frontend.arrays.indexing import inc_subtensor, take
from esat.frontend.arrays.shaping import concatenate, ravel, stack
from esat.frontend.elements import reductions
from esat.frontend.elements.integer_bounds import integer_bounds
from esat.frontend.elements.numeric import clip
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.searching import Side, searchsorted
from esat.ops.arrays.shape import element_count, size_of, sizes_of
from esat.ops.arrays.sorting import argsort
from esat.ops.arrays.view import reshape
from esat.ops.cast import cast
from esat.ops.control import assert_
from esat.ops.inference.vectors import as_sizes

__all__ = [
    "argwhere", "bincount", "compress", "digitize", "flatnonzero", "interp",
    "isin", "nonzero", "searchsorted", "unravel_index", "where",
]  # fmt: skip


def flatnonzero(a: Any) -> Variable:
    """The int64 places of the elements that are not zero in the flattened array."""
    variable = as_variable(a)
    chosen: Variable = arange(element_count(variable))[ravel(cast(variable, "bool"))]
    return chosen


def nonzero(a: Any) -> tuple[Variable, ...]:
    """The int64 places of the elements that are not zero: one vector an axis.

    Raises
    ------
    ShapeError
        For a scalar.
    """
    variable = as_variable(a)
    if variable.tensor_type.ndim == 0:
        raise ShapeError(describe("nonzero", [variable.type], "takes an array of at least one axis"))
    return _unraveled(flatnonzero(variable), sizes_of(variable))


@overload
def where(condition: Any, x: Any, y: Any, /) -> Variable: ...
@overload
def where(condition: Any, /) -> tuple[Variable, ...]: ...
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Elements of ``x`` where the condition is true, of ``y`` where it is false; see :func:`esat.switch`.

    With the condition alone the places where it is true, as :func:`esat.nonzero` gives them.

    Raises
    ------
    CallError
        When only one of ``x`` and ``y`` is given.
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise CallError(describe("where", [condition], "takes both x and y, or neither"))
    chosen: Variable = op_named("switch")(condition, x, y)
    return chosen


def argwhere(a: Any) -> Variable:
    """The places of the elements that are not zero, each a row; :func:`nonzero` transposed."""
    variable = as_variable(a)
    if variable.tensor_type.ndim == 0:
        return stack(nonzero(ravel(variable)), 1)[:, :0]
    return stack(nonzero(variable), 1)


def unravel_index(indices: Any, shape: Any) -> tuple[Variable, ...]:
    """Places in an array of ``shape``, one array an axis, from those among its elements in C order.

    Raises
    ------
    DtypeError
        For indices that are no integers.
    IndexingError
        At run time, when one is out of range.
    """
    given = as_variable(indices)
    if given.tensor_type.kind not in "biu":
        raise DtypeError(describe("unravel_index", [given.type], "places are integers"))
    sizes = as_sizes("unravel_index", shape)
    places = cast(given, "int64")
    number: Any = 1
    for size in sizes:
        number = op_named("mul")(number, size)
    inside = (op_named("ge")(places, 0), op_named("lt")(places, number))
    message = "unravel_index: a place is out of range"
    return _unraveled(assert_(places, *inside, message=message, error=IndexingError), sizes)


def _unraveled(indices: Variable, sizes: Sequence[Variable]) -> tuple[Variable, ...]:
    rest, places = indices, []
    for size in reversed(sizes):
        places.append(op_named("mod")(rest, size))
        rest = op_named("floor_div")(rest, size)
    return tuple(reversed(places))


def compress(condition: Any, a: Any, axis: Any = None) -> Variable:
    """The places along ``axis``, or the elements, where a vector as long as it is not zero."""
    variable = ravel(a) if axis is None else as_variable(a)
    return take(variable, flatnonzero(condition), 0 if axis is None else axis)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Variable:
    """Whether each element equals one of ``test_elements``, of any shape; or none, with ``invert``.

    That all are different (``assume_unique``), and how NumPy searches (``kind``), change nothing.
    """
    variable, tests = as_variable(element), ravel(test_elements)
    column = dimshuffle(variable, (*range(variable.tensor_type.ndim), "x"))
    found = reductions.any(op_named("eq")(column, tests), -1)
    result: Variable = op_named("logical_not")(found) if invert else found
    return result


def digitize(x: Any, bins: Any, right: bool = False) -> Variable:
    """The int64 number of the bin that each element lies in, bounds ``bins`` being in ascending or
    descending order; ``right`` says which of its bounds belongs to a bin.

    Raises
    ------
    DtypeError
        For complex numbers.
    ShapeError
        When the bounds are no vector.
    """
    values, bounds = ordered_numbers("digitize", x), ordered_numbers("digitize", bins)
    if bounds.tensor_type.ndim != 1:
        raise ShapeError(describe("digitize", [bounds.type], "the bounds of bins are a vector"))
    ascending = reductions.all(op_named("le")(bounds[:1], bounds[-1:]))
    side: Side = "left" if right else "right"
    place = searchsorted(op_named("switch")(ascending, bounds, bounds[::-1]), values, side)
    result: Variable = op_named("switch")(ascending, place, op_named("sub")(size_of(bounds, 0), place))
    return result


def ordered_numbers(name: str, x: Any) -> Variable:
    """Numbers that lie in bins. Raises DtypeError for complex ones."""
    variable = as_variable(x)
    if variable.tensor_type.kind == "c":
        raise DtypeError(describe(name, [variable.type], "complex numbers do not lie in bins"))
    return variable


def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Variable:
    """How often each of 0, 1, 2, ... up to the largest occurs in a vector of integers that are not negative.

    Parameters
    ----------
    x
        The integers.
    weights
        A vector with what each of them counts, in float64; without it the counts are int64.
    minlength
        The least length of the result.

    Raises
    ------
    DtypeError
        For other numbers than integers.
    ShapeError
        When ``x`` is no vector.
    ParameterError
        At run time, for a negative integer.
    """
    values = as_variable(x)
    if values.tensor_type.ndim != 1:
        raise ShapeError(describe("bincount", [values.type], "takes a vector"))
    if values.tensor_type.kind not in "biu":
        raise DtypeError(describe("bincount", [values.type], "counts integers"))
    places, bounds = cast(values, "int64"), integer_bounds(values)
    if bounds[0] < 0:
        message = "bincount: an integer is negative"
        places = assert_(places, op_named("ge")(places, 0), message=message, error=ParameterError)
    shortest = cast(minlength, "int64")
    length: Any = shortest
    if not isinstance(shortest, Constant) or bounds[1] >= shortest.data:
        least = op_named("sub")(reshape(shortest, (1,)), 1)
        length = op_named("add")(reductions.max(concatenate([places, least])), 1)
    number = 1 if weights is None else cast(weights, "float64")
    counts = zeros((length,), "int64" if weights is None else "float64")
    return inc_subtensor(counts[places], number)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None
) -> Variable:
    """The piecewise linear function through the points ``(xp, fp)`` at ``x``; float64 or complex128.

    Parameters
    ----------
    x
        Where, of any shape.
    xp, fp
        Vectors of one length that is not 0, ``xp`` ascending.
    left, right
        The values before the first and after the last point, by default those of these points.
    period
        Of the function, where it has one: ``xp`` may come in any order then.

    Raises
    ------
    ShapeError
        When ``xp`` or ``fp`` are no vectors.
    DtypeError
        For complex places.
    """
    if any(as_variable(part).tensor_type.kind == "c" for part in (x, xp)):
        types = [as_variable(part).type for part in (x, xp)]
        raise DtypeError(describe("interp", types, "places are real numbers"))
    at, places, values = cast(x, "float64"), cast(xp, "float64"), as_variable(fp)
    if places.tensor_type.ndim != 1 or values.tensor_type.ndim != 1:
        raise ShapeError(describe("interp", [places.type, values.type], "the points are two vectors"))
    values = cast(values, "complex128" if values.tensor_type.kind == "c" else "float64")
    if period is not None:
        at, places, values = _unrolled(at, places, values, float(period))
    sub, switch, minimum = op_named("sub"), op_named("switch"), op_named("minimum")
    last = sub(size_of(places, 0), 1)
    before = clip(sub(searchsorted(places, at, "right"), 1), 0, op_named("maximum")(sub(last, 1), 0))
    after = minimum(op_named("add")(before, 1), last)
    start, end = values[before], values[after]
    slope = (end - start) / (places[after] - places[before])
    value = slope * (at - places[before]) + start
    value = switch(op_named("eq")(at, places[-1]), values[-1], value)
    value = switch(op_named("lt")(at, places[0]), values[0] if left is None or period else left, value)
    result: Variable = switch(
        op_named("gt")(at, places[-1]), values[-1] if right is None or period else right, value
    )
    return result


def _unrolled(
    at: Variable, places: Variable, values: Variable, period: float
) -> tuple[Variable, Variable, Variable]:
    """One period in ascending order, with the points next to it on either side."""
    mod = op_named("mod")
    folded = mod(places, period)
    order = argsort(folded)
    folded, values = folded[order], values[order]
    places = concatenate([folded[-1:] - period, folded, folded[:1] + period])
    return mod(at, period), places, concatenate([values[-1:], values, values[:1]])
