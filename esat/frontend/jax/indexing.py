"""Rules of gathers, scatters, and slices that begin at computed places.

A gather takes a window of an operand at each of many places, a scatter writes one. Axes that are not taken
whole become index arrays: one axis for each of the places, then one for each axis of the windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import GraphError, describe
from esat.frontend.arrays.assembling import pad
from esat.frontend.arrays.indexing import inc_subtensor, set_subtensor
from esat.frontend.arrays.shaping import broadcast_to
from esat.frontend.elements import elementwise as own
from esat.frontend.elements import reductions
from esat.frontend.elements.numeric import clip
from esat.frontend.elements.searching import where
from esat.frontend.jax.steps import Equation, Rule
from esat.graph.constants import constant
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.view import reshape, transpose
from esat.ops.cast import cast
from esat.ops.control import specify_shape


@record(frozen=True, eq=False)
class Windows:
    """Windows of an array, at places that are computed.

    Attributes
    ----------
    taken
        Axes of the array that index arrays are for.
    whole
        The others.
    index
        Index arrays, one for each of ``taken``, of one shape: places, then axes of the window.
    window_axes
        Axes of the array, as they follow in ``index`` and then in the others, that windows have.
    inside
        For each place, whether the window is within the array; None where all are.
    """

    taken: tuple[int, ...]
    whole: tuple[int, ...]
    index: tuple[Variable, ...]
    window_axes: tuple[int, ...]
    inside: Variable | None


def _windows(
    step: Equation,
    starts: Variable,
    sizes: Sequence[int],
    dropped: Sequence[int],
    start_axes: Sequence[int],
    batch_axes: Sequence[int],
    batch_places: Sequence[int],
) -> Windows:
    """Index arrays for windows.

    Parameters
    ----------
    step
        The equation; its first operand is the array.
    starts
        Where windows begin: along the last axis, one number for each of ``start_axes``.
    sizes
        Of a window, along each axis of the array.
    dropped
        Axes of size 1 that a window lacks.
    start_axes, batch_axes, batch_places
        Axes of the array that windows begin along; those that go along with axes of the places, and these.
    """
    shape = step.shape_of(0)
    places = tuple(int(size or 0) for size in starts.tensor_type.shape[:-1])
    taken = tuple(
        axis
        for axis in range(len(shape))
        if axis in batch_axes or axis in dropped or (axis in start_axes and sizes[axis] != shape[axis])
    )
    whole = tuple(axis for axis in range(len(shape)) if axis not in taken)
    lacking = {*dropped, *batch_axes}
    inner = tuple(axis for axis in taken if axis not in lacking)
    rank = len(places) + len(inner)
    begins, inside = _begins(step, starts, sizes, start_axes)
    index = []
    for axis in taken:
        if axis in batch_axes:
            place = batch_places[list(batch_axes).index(axis)]
            index.append(_spread(arange(shape[axis]), [place], rank))
            continue
        begin = begins.get(axis)
        if begin is None:
            begin = constant(np.zeros(places, np.int64))
        part = _spread(begin, range(len(places)), rank)
        if axis in inner:
            part = own.add(part, _spread(arange(int(sizes[axis])), [len(places) + inner.index(axis)], rank))
        index.append(part)
    window_axes = (*inner, *whole)
    return Windows(taken, whole, tuple(index), window_axes, inside)


def _spread(value: Variable, axes: Any, rank: int) -> Variable:
    """A value whose axes are these of ``rank`` axes, all others having size 1."""
    sizes = [1] * rank
    for axis, size in zip(axes, value.tensor_type.shape, strict=True):
        sizes[axis] = int(size or 0)
    return reshape(value, tuple(sizes))


def _begins(
    step: Equation, starts: Variable, sizes: Sequence[int], start_axes: Sequence[int]
) -> tuple[dict[int, Variable], Variable | None]:
    """Where windows begin along each axis, moved into the array, and which were within it."""
    mode = str(getattr(step.params.get("mode"), "name", step.params.get("mode")))
    shape = step.shape_of(0)
    promised = "PROMISE" in mode
    begins: dict[int, Variable] = {}
    inside: Variable | None = None
    for place, axis in enumerate(start_axes):
        begin, last = cast(starts[..., place], "int64"), shape[axis] - int(sizes[axis])
        if isinstance(starts, Constant):
            known = np.asarray(starts.data)[..., place].astype(np.int64)
            begin = constant(np.clip(known, 0, last))
            if bool(np.all((known >= 0) & (known <= last))):
                begins[axis] = begin
                continue
            fits: Variable = constant((known >= 0) & (known <= last))
        elif promised:
            begins[axis] = begin
            continue
        else:
            fits = own.bitwise_and(own.ge(begin, 0), own.le(begin, last))
            begin = clip(begin, 0, last)
        begins[axis] = begin
        inside = fits if inside is None else own.bitwise_and(inside, fits)
    return begins, None if "CLIP" in mode or promised else inside


def _gather(step: Equation) -> Variable:
    x, starts = step.operands
    numbers, sizes = step.params["dimension_numbers"], [int(size) for size in step.params["slice_sizes"]]
    batch_axes = getattr(numbers, "operand_batching_dims", ())
    windows = _windows(
        step, starts, sizes, numbers.collapsed_slice_dims, numbers.start_index_map, batch_axes,
        getattr(numbers, "start_indices_batching_dims", ()),
    )  # fmt: skip
    count = starts.tensor_type.ndim - 1
    if windows.taken:
        found = transpose(x, (*windows.taken, *windows.whole))[windows.index]
    else:
        places = [int(size or 0) for size in starts.tensor_type.shape[:-1]]
        found = broadcast_to(x, (*places, *step.shape_of(0)))
    order = _result_order(step.results[0].shape, count, numbers.offset_dims, windows.window_axes)
    found = transpose(found, order)
    if windows.inside is None:
        return found
    rank = len(step.results[0].shape)
    others = [axis for axis in range(rank) if axis not in numbers.offset_dims]
    result: Variable = where(_spread(windows.inside, others, rank), found, _fill_value(step))
    return result


def _result_order(
    shape: Sequence[int], count: int, offsets: Sequence[int], window_axes: Sequence[int]
) -> tuple[int, ...]:
    """For each axis of a result, which axis of places and window it is."""
    by_axis = {axis: count + place for place, axis in enumerate(window_axes)}
    in_window = iter([by_axis[axis] for axis in sorted(window_axes)])
    places = iter(range(count))
    return tuple(next(in_window) if axis in offsets else next(places) for axis in range(len(shape)))


def _fill_value(step: Equation) -> Variable:
    """What a gather gives outside: NaN, the least of signed and the largest of other integers."""
    value, dtype = step.params.get("fill_value"), step.results[0].dtype
    if value is not None:
        return constant(value, dtype)
    kind = np.dtype(dtype).kind
    if kind in "fc":
        return constant(np.nan, dtype)
    if kind == "b":
        return constant(True, dtype)
    return constant(np.iinfo(dtype).min if kind == "i" else np.iinfo(dtype).max, dtype)


def _scatter(how: str) -> Rule:
    def rule(step: Equation) -> Variable:
        return _scattered(step, how)

    return rule


def _scattered(step: Equation, how: str) -> Variable:
    x, starts, updates = step.operands
    numbers = step.params["dimension_numbers"]
    window = list(numbers.update_window_dims)
    batch_axes = getattr(numbers, "operand_batching_dims", ())
    lacking = {*numbers.inserted_window_dims, *batch_axes}
    inner = iter(window)
    sizes = [1 if axis in lacking else step.shape_of(2)[next(inner)] for axis in range(x.tensor_type.ndim)]
    windows = _windows(
        step, starts, sizes, numbers.inserted_window_dims, numbers.scatter_dims_to_operand_dims, batch_axes,
        getattr(numbers, "scatter_indices_batching_dims", ()),
    )  # fmt: skip
    count = updates.tensor_type.ndim - len(window)
    if not windows.taken:
        places = [size for axis, size in enumerate(step.shape_of(2)) if axis not in window]
        if math.prod(places) != 1:
            updates = _all_places(step, updates, how, window)
        return _whole(x, reshape(updates, step.shape_of(0)), windows.inside, how)
    order = _result_order(step.shape_of(2), count, window, windows.window_axes)
    updates = transpose(updates, tuple(int(axis) for axis in np.argsort(order)))
    array = transpose(x, (*windows.taken, *windows.whole))
    back = tuple(int(axis) for axis in np.argsort((*windows.taken, *windows.whole)))
    inside = windows.inside
    if inside is not None:
        inside = _spread(inside, range(count), updates.tensor_type.ndim)
    return transpose(_written(step, array, windows.index, updates, inside, how), back)


def _all_places(step: Equation, updates: Variable, how: str, window: Sequence[int]) -> Variable:
    """Updates of all places for the same window, the whole array, as one."""
    axes = tuple(axis for axis in range(updates.tensor_type.ndim) if axis not in window)
    if how == "add":
        return reductions.sum(updates, axis=axes, dtype=updates.tensor_type.dtype)
    raise _unclear(step)


def _whole(x: Variable, updates: Variable, inside: Variable | None, how: str) -> Variable:
    joined = {"add": own.add, "sub": own.sub, "mul": own.mul, "min": own.minimum, "max": own.maximum}
    result: Variable = updates if how == "set" else joined[how](x, updates)
    return result if inside is None else where(reshape(inside, (1,) * x.tensor_type.ndim), result, x)


def _written(
    step: Equation,
    array: Variable,
    index: tuple[Variable, ...],
    updates: Variable,
    inside: Variable | None,
    how: str,
) -> Variable:
    """The array with updates at places; those that are not inside are left out."""
    if how in ("add", "sub"):
        added = own.neg(updates) if how == "sub" else updates
        if inside is not None:
            added = where(inside, added, constant(0, updates.tensor_type.dtype))
        return inc_subtensor(array[index], added)
    if inside is not None:
        # What is outside goes to a row that is taken away again.
        rows = int(array.tensor_type.shape[0] or 0)
        longer = pad(array, [(0, 1), *[(0, 0)] * (array.tensor_type.ndim - 1)])
        outside = _spread_like(inside, index[0])
        index = (where(outside, index[0], rows), *index[1:])
        written = _written(step, longer, index, updates, None, how)
        return written[:rows]
    if how == "set":
        return set_subtensor(array[index], updates)
    if not step.params["unique_indices"]:
        raise _unclear(step)
    return set_subtensor(array[index], _whole(array[index], updates, None, how))


def _spread_like(inside: Variable, index: Variable) -> Variable:
    """A condition for places with as many axes as an index array has."""
    shape = inside.tensor_type.shape[: index.tensor_type.ndim]
    return reshape(inside, tuple(int(size or 0) for size in shape))


def _unclear(step: Equation) -> GraphError:
    reason = (
        f"{step.name} joins updates of places that may be named several times, which esat does for sums "
        "only; say unique_indices=True if they are not"
    )
    return GraphError(describe("from_jax", [one.type for one in step.operands], reason, step.where))


# ---- slices


def _dynamic_slice(step: Equation) -> Variable:
    x, *starts = step.operands
    sizes = [int(size) for size in step.params["slice_sizes"]]
    return specify_shape(x[_bounds(step.shape_of(0), starts, sizes)], sizes)


def _dynamic_update(step: Equation) -> Variable:
    x, updates, *starts = step.operands
    return set_subtensor(x[_bounds(step.shape_of(0), starts, step.shape_of(1))], updates)


def _bounds(shape: Sequence[int], starts: Sequence[Variable], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Slices of these sizes, moved into the array."""
    bounds = []
    for whole, start, size in zip(shape, starts, sizes, strict=True):
        if whole == size:
            bounds.append(slice(None))
        elif isinstance(start, Constant):
            begin = min(max(int(start.data), 0), whole - size)
            bounds.append(slice(begin, begin + size))
        else:
            first = clip(cast(start, "int64"), 0, whole - size)
            bounds.append(slice(first, own.add(first, size)))
    return tuple(bounds)


RULES: dict[str, Rule] = {
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "gather": _gather,
    "scatter": _scatter("set"),
    "scatter-add": _scatter("add"),
    "scatter-max": _scatter("max"),
    "scatter-min": _scatter("min"),
    "scatter-mul": _scatter("mul"),
    "scatter-sub": _scatter("sub"),
}
