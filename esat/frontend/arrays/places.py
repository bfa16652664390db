"""Index arrays under NumPy's names: of diagonals, triangles, grids, and of elements in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from esat.errors import AxisError, DtypeError, IndexingError, ParameterError, ShapeError, describe
from esat.frontend.arrays.indexing import take
from esat.frontend.arrays.shaping import broadcast_to, moveaxis, stack
from esat.frontend.elements.numeric import clip
from esat.frontend.elements.searching import flatnonzero
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.cast import cast
from esat.ops.control import assert_
from esat.ops.inference.axes import normalize_axis
from esat.ops.inference.vectors import as_sizes

__all__ = [
    "diag_indices", "diag_indices_from", "indices", "ix_", "ravel_multi_index", "sliding_window_view",
    "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
]  # fmt: skip

Mode = Literal["raise", "wrap", "clip"]


MOST_PLACES = 1 << 27
"""Elements that an array of known sizes may have whose places are constants."""


def _constants(
    name: str, function: Callable[..., tuple[Any, ...]], count: Callable[..., int], *sizes: Any
) -> tuple[Variable, ...]:
    """Constants of what a function gives for sizes; ``count`` of these is how many numbers it makes."""
    for size in sizes:
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer))):
            raise ParameterError(describe(name, [repr(size)], "takes integers that are known"))
    made = count(*(0 if size is None else max(int(size), 0) for size in sizes))
    if made > MOST_PLACES:
        raise ParameterError(
            describe(name, list(map(str, sizes)), f"{made} places are too many for constants")
        )
    try:
        return tuple(constant(part) for part in function(*sizes))
    except ValueError as error:
        raise ParameterError(describe(name, list(map(str, sizes)), str(error))) from None


def _elements(n: int, _k: int, m: int) -> int:
    return n * (m or n)


def _sizes_from(name: str, array: Any, rank: int | None = None) -> tuple[int, ...]:
    """Sizes of an array that are known."""
    type = as_variable(array).tensor_type
    if type.ndim < 2 or (rank is not None and type.ndim != rank):
        raise ShapeError(describe(name, [type], f"takes an array of {rank or 'two or more'} axes"))
    if None in type.shape:
        raise ShapeError(describe(name, [type], "takes an array of known sizes"))
    return tuple(int(size) for size in type.shape if size is not None)


def diag_indices(n: int, ndim: int = 2) -> tuple[Variable, ...]:
    """The places of the main diagonal of an array of ``ndim`` axes of size ``n``, one vector an axis."""
    return _constants("diag_indices", np.diag_indices, lambda n, ndim: max(n, 1) * ndim, n, ndim)


def diag_indices_from(arr: Any) -> tuple[Variable, ...]:
    """The places of the main diagonal of an array whose axes have one size, which is known.

    Raises
    ------
    ShapeError
        For other arrays.
    """
    sizes = _sizes_from("diag_indices_from", arr)
    if len(set(sizes)) != 1:
        reason = "the axes have one size"
        raise ShapeError(describe("diag_indices_from", [as_variable(arr).type], reason))
    return diag_indices(sizes[0], len(sizes))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Variable, ...]:
    """The rows and columns of the elements of an ``(n, m)`` matrix on and below diagonal ``k``."""
    return _constants("tril_indices", np.tril_indices, _elements, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Variable, ...]:
    """The rows and columns of the elements of an ``(n, m)`` matrix on and above diagonal ``k``."""
    return _constants("triu_indices", np.triu_indices, _elements, n, k, m)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Variable, ...]:
    """As :func:`tril_indices`, for the sizes of a matrix, which are known."""
    rows, columns = _sizes_from("tril_indices_from", arr, 2)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Variable, ...]:
    """As :func:`triu_indices`, for the sizes of a matrix, which are known."""
    rows, columns = _sizes_from("triu_indices_from", arr, 2)
    return triu_indices(rows, k, columns)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The places of the elements of an array of a shape: one array of these for each axis, stacked.

    Parameters
    ----------
    dimensions
        The shape: integers, or scalar Variables.
    dtype
        Of the result.
    sparse
        Whether to give a tuple of arrays that broadcast to the shape in place of a stack.
    """
    sizes = as_sizes("indices", dimensions)
    rank = len(sizes)
    parts = [
        dimshuffle(cast(arange(size), np.dtype(dtype)), ("x",) * axis + (0,) + ("x",) * (rank - axis - 1))
        for axis, size in enumerate(sizes)
    ]
    if sparse:
        return tuple(parts)
    return stack([broadcast_to(part, tuple(sizes)) for part in parts])


def ix_(*args: Any) -> tuple[Variable, ...]:
    """Vectors of places as arrays that broadcast to a grid: ``x[ix_(rows, columns)]``.

    Booleans stand for the places where they are true.

    Raises
    ------
    ShapeError
        For what is no vector.
    """
    found = []
    for place, argument in enumerate(args):
        variable = as_variable(argument)
        if variable.tensor_type.ndim != 1:
            raise ShapeError(describe("ix_", [variable.type], "takes vectors"))
        if variable.tensor_type.shape[0] == 0:
            variable = cast(variable, "int64")
        if variable.tensor_type.kind == "b":
            variable = flatnonzero(variable)
        found.append(dimshuffle(variable, ("x",) * place + (0,) + ("x",) * (len(args) - place - 1)))
    return tuple(found)


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Any,
    mode: Mode | tuple[Mode, ...] = "raise",
    order: Literal["C", "F"] = "C",
) -> Variable:
    """Places among the elements of an array of shape ``dims``, from one array of places an axis.

    Parameters
    ----------
    multi_index
        Integers, an array for each axis.
    dims
        The shape.
    mode
        What becomes of places outside, for all axes or for each: "raise", "wrap", or "clip".
    order
        Whether the last axis ("C") or the first ("F") moves fastest.

    Raises
    ------
    DtypeError
        For places that are no integers.
    ParameterError
        For another number of axes, another mode or order.
    IndexingError
        At run time, for a place outside.
    """
    sizes = as_sizes("ravel_multi_index", dims)
    places = [as_variable(one) for one in multi_index]
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    if len(places) != len(sizes) or len(modes) != len(sizes):
        reason = f"there are {len(sizes)} axes, {len(places)} arrays of places, {len(modes)} modes"
        raise ParameterError(describe("ravel_multi_index", [], reason))
    if order not in ("C", "F") or not {*modes} <= {"raise", "wrap", "clip"}:
        shown = [f"mode={mode!r}", f"order={order!r}"]
        reason = 'a mode is "raise", "wrap" or "clip", an order "C" or "F"'
        raise ParameterError(describe("ravel_multi_index", shown, reason))
    total: Any = as_variable(np.int64(0))
    parts = list(zip(places, sizes, modes, strict=True))
    for place, size, own in parts if order == "C" else reversed(parts):
        if place.tensor_type.kind not in "biu":
            raise DtypeError(describe("ravel_multi_index", [place.type], "places are integers"))
        total = total * size + _inside(cast(place, "int64"), size, own)
    result: Variable = total
    return result


def _inside(place: Variable, size: Variable, mode: Mode) -> Variable:
    if mode == "clip":
        return clip(place, 0, size - 1)
    if mode == "wrap":
        wrapped: Variable = op_named("mod")(place, size)
        return wrapped
    inside = (op_named("ge")(place, 0), op_named("lt")(place, size))
    message = "ravel_multi_index: a place is out of range"
    return assert_(place, *inside, message=message, error=IndexingError)


_LARGEST_WINDOW = 1 << 24
"""The places in a window are an array of integers, which is part of the program: 128 MiB."""


def sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Variable:
    """All windows of an array, in new axes behind its own.

    Parameters
    ----------
    x
        A Variable or array.
    window_shape
        A known size, or a sequence of them, one for each axis of ``axis``.
    axis
        The axis that each size is along, or a sequence of them; None for all axes in order.

    Raises
    ------
    ParameterError
        For sizes that are not known, or are negative.
    AxisError
        For another number of axes than sizes.
    ShapeError
        For a window that is larger than an axis, where its size is known.

    Examples
    --------
    >>> import numpy as np, esat
    >>> windows = np.lib.stride_tricks.sliding_window_view
    >>> esat.jit(lambda x: windows(x, 3).max(axis=-1))(np.array([1, 5, 2, 0, 4]))
    array([5, 5, 4])
    """
    name, variable = "sliding_window_view", as_variable(x)
    sizes = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    given = range(variable.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(given) != len(sizes):
        raise AxisError(describe(name, [variable.type], f"{len(sizes)} sizes for {len(given)} axes"))
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
            raise ParameterError(
                describe(name, [repr(size)], "sizes of windows are known integers, not negative")
            )
        if size > _LARGEST_WINDOW:
            raise ParameterError(
                describe(name, [repr(size)], f"windows have at most {_LARGEST_WINDOW} elements along an axis")
            )
    result = variable
    for size, one in zip(sizes, given, strict=True):
        place = normalize_axis(name, one, variable.ndim)
        length = result.tensor_type.shape[place]
        if length is not None and length < size:
            raise ShapeError(
                describe(name, [variable.type], f"axis {place} is shorter than windows of {size}")
            )
        starts = arange(op_named("sub")(size_of(result, place), int(size) - 1))
        places = op_named("add")(dimshuffle(starts, (0, "x")), np.arange(size))
        result = moveaxis(take(result, places, place), place + 1, -1)
    return result
