"""Arrays put together from parts, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from esat.errors import DtypeError, IndexingError, ParameterError, ShapeError, describe
from esat.frontend.arrays.indexing import set_subtensor, take
from esat.frontend.arrays.shaping import atleast_1d, concatenate, hstack, ravel
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc, arange
from esat.ops.arrays.diagonal import diag
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of, sizes_of
from esat.ops.cast import cast
from esat.ops.index.basic import subtensor
from esat.ops.inference.axes import normalize_axis

__all__ = ["append", "column_stack", "delete", "diagflat", "insert", "pad", "unstack"]

PadMode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]


def append(arr: Any, values: Any, axis: Any = None) -> Variable:
    """``values`` after the elements of ``arr`` along ``axis``; with None, all of both as a vector."""
    return concatenate([arr, values], axis)


def column_stack(tup: Sequence[Any]) -> Variable:
    """Vectors as columns, and matrices, side by side."""
    variables = [as_variable(atleast_1d(tensor)) for tensor in tup]
    return hstack([dimshuffle(v, (0, "x")) if v.tensor_type.ndim == 1 else v for v in variables])


def unstack(x: Any, axis: int = 0) -> tuple[Variable, ...]:
    """The parts of an array along ``axis``, which they do not have.

    Raises
    ------
    ShapeError
        When the size of the axis is not known.
    """
    variable = as_variable(x)
    index = normalize_axis("unstack", axis, variable.tensor_type.ndim)
    size = variable.tensor_type.shape[index]
    if size is None:
        raise ShapeError(describe("unstack", [variable.type], f"the size of axis {index} is not known"))
    before = (slice(None),) * index
    return tuple(subtensor(variable, (*before, place)) for place in range(size))


def diagflat(v: Any, k: int = 0) -> Variable:
    """The matrix with all elements of ``v`` on diagonal ``k``, zeros elsewhere."""
    return diag(ravel(v), k)


def delete(arr: Any, obj: Any, axis: Any = None) -> Variable:
    """The array without the given places along ``axis``; with None, of the flattened array.

    Parameters
    ----------
    arr
        A Variable or array.
    obj
        Integers known when the graph is built, or a slice.

    Raises
    ------
    ShapeError
        When the size of the axis is not known.
    """
    variable, index = _along("delete", arr, axis)
    size = variable.tensor_type.shape[index]
    if size is None:
        raise ShapeError(describe("delete", [variable.type], f"the size of axis {index} is not known"))
    if any(isinstance(one, Variable) for one in (obj if isinstance(obj, list | tuple) else [obj])):
        reason = "which places are left out is known when the graph is built: numbers or a slice, no Variable"
        raise DtypeError(describe("delete", [variable.type, obj], reason))
    try:
        kept = np.delete(np.arange(size), obj)
    except IndexError as error:
        raise IndexingError(describe("delete", [variable.type, f"places {obj!r}"], str(error))) from error
    return take(variable, kept, index)


def insert(arr: Any, obj: int, values: Any, axis: Any = None) -> Variable:
    """The array with ``values`` before one obj along ``axis``; with None, of the flattened array.

    Into a vector the elements of ``values`` are put one after the other; otherwise they broadcast to one
    place along ``axis``.
    """
    variable, index = _along("insert", arr, axis)
    before = (slice(None),) * index
    first = subtensor(variable, (*before, slice(None, obj)))
    last = subtensor(variable, (*before, slice(obj, None)))
    new = cast(values, variable.tensor_type.dtype)
    if variable.tensor_type.ndim == 1:
        if new.tensor_type.ndim > 1 and not all(new.tensor_type.broadcastable[:-1]):
            reason = f"{new.type} does not go into a vector"
            raise ShapeError(describe("insert", [variable.type], reason))
        return concatenate([first, ravel(atleast_1d(new)), last])
    sizes = [1 if axis == index else size for axis, size in enumerate(sizes_of(variable))]
    if new.tensor_type.ndim == variable.tensor_type.ndim - 1:
        kept = iter(range(new.tensor_type.ndim))
        new = dimshuffle(new, ["x" if a == index else next(kept) for a in range(variable.tensor_type.ndim)])
    return concatenate([first, alloc(new, *sizes), last], index)


def _along(name: str, x: Any, axis: Any) -> tuple[Variable, int]:
    variable = ravel(x) if axis is None else as_variable(x)
    return variable, normalize_axis(name, 0 if axis is None else axis, variable.tensor_type.ndim)


def pad(array: Any, pad_width: Any, mode: PadMode = "constant", constant_values: Any = 0) -> Variable:
    """The array with more elements before and after each axis.

    Parameters
    ----------
    array
        A Variable or array.
    pad_width
        How many: a number, a pair (before, after) for all axes, or a pair for each axis.
    mode
        ``"constant"``; ``"edge"``, the elements at the ends; ``"reflect"`` and ``"symmetric"``, what is seen
        in a mirror at their centers or on their borders; ``"wrap"``, the array again.
    constant_values
        For ``"constant"``: a number or scalar, a pair of them (before, after) for all axes, or one for each
        axis.

    Raises
    ------
    ParameterError
        For another mode, or a negative width.
    ShapeError
        For widths that do not fit the axes.
    """
    variable = as_variable(array)
    rank = variable.tensor_type.ndim
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        reason = "a mode is constant, edge, reflect, symmetric or wrap"
        raise ParameterError(describe("pad", [f"mode={mode!r}"], reason))
    try:
        given = np.asarray(pad_width, dtype=np.int64)
        widths = np.broadcast_to(given, (rank, 2)).tolist()
    except (TypeError, ValueError) as error:
        reason = f"widths {pad_width!r} are not one pair for each of {rank} axes"
        raise ShapeError(describe("pad", [variable.type], reason)) from error
    if np.any(given < 0):
        raise ParameterError(describe("pad", [f"pad_width={pad_width!r}"], "a width is negative"))
    if mode == "constant":
        return _surrounded(variable, widths, _constants(variable, constant_values))
    for axis, (before, after) in enumerate(widths):
        if before or after:
            variable = take(variable, _source(size_of(variable, axis), before, after, mode), axis)
    return variable


def _constants(variable: Variable, given: Any) -> Sequence[tuple[Any, Any]]:
    """What stands before and after the elements along each axis."""
    rank = variable.tensor_type.ndim
    pairs: Sequence[Any] = given if isinstance(given, (tuple, list)) else [given]
    if len(pairs) == 2 and not any(isinstance(pair, (tuple, list)) for pair in pairs):
        pairs = [pairs]
    pairs = [tuple(p) if isinstance(p, (tuple, list)) else (p,) for p in pairs]
    pairs = [pair * 2 if len(pair) == 1 else pair for pair in pairs]
    if len(pairs) == 1:
        pairs = pairs * rank
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        reason = f"constant_values {given!r} are not one pair for each of {rank} axes"
        raise ShapeError(describe("pad", [variable.type], reason))
    return pairs


def _surrounded(variable: Variable, widths: list[list[int]], values: Sequence[tuple[Any, Any]]) -> Variable:
    if any(value is not values[0][0] for pair in values for value in pair):
        return _surrounded_by_several(variable, widths, values)
    value = values[0][0] if values else 0
    sizes = sizes_of(variable)
    add = op_named("add")
    wider = [add(size, before + after) for size, (before, after) in zip(sizes, widths, strict=True)]
    whole = alloc(cast(value, variable.tensor_type.dtype), *wider)
    inner = tuple(slice(before, add(size, before)) for size, (before, _) in zip(sizes, widths, strict=True))
    return set_subtensor(subtensor(whole, inner), variable) if inner else variable


def _surrounded_by_several(
    variable: Variable, widths: list[list[int]], values: Sequence[tuple[Any, Any]]
) -> Variable:
    """Axis by axis, as NumPy does it: corners have the value of the last axis."""
    for axis, (width, pair) in enumerate(zip(widths, values, strict=True)):
        sizes: list[Any] = list(sizes_of(variable))
        ends = []
        for number, value in zip(width, pair, strict=True):
            sizes[axis] = number
            ends.append(alloc(cast(value, variable.tensor_type.dtype), *sizes))
        variable = concatenate([ends[0], variable, ends[1]], axis)
    return variable


def _source(size: Variable, before: int, after: int, mode: PadMode) -> Variable:
    """For each place of the padded axis the place that its element comes from."""
    sub, mod, minimum = op_named("sub"), op_named("mod"), op_named("minimum")
    place = sub(arange(op_named("add")(size, before + after)), before)
    last = sub(size, 1)
    if mode == "edge":
        source = op_named("maximum")(minimum(place, last), 0)
    elif mode == "wrap":
        source = mod(place, size)
    elif mode == "symmetric":
        turned = mod(place, op_named("mul")(size, 2))
        source = minimum(turned, sub(op_named("mul")(size, 2) - 1, turned))
    else:
        period = op_named("maximum")(op_named("mul")(last, 2), 1)
        turned = mod(place, period)
        source = minimum(turned, sub(period, turned))
    result: Variable = source
    return result
