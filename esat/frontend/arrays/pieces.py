"""Arrays made of blocks and pieces, functions applied along axes, and parts in order, under NumPy's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from esat.errors import AxisError, CallError, ParameterError, ShapeError, describe
from esat.frontend.arrays.assembling import unstack
from esat.frontend.arrays.creation import zeros
from esat.frontend.arrays.indexing import take_along_axis
from esat.frontend.arrays.shaping import broadcast_arrays, concatenate, moveaxis, ravel, reshape, stack
from esat.frontend.elements.searching import where
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import LARGEST_SIZE
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.sorting import argsort, sort
from esat.ops.arrays.view import expand_dims
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axis
from esat.ops.inference.broadcasting import pad_rank
from esat.ops.inference.vectors import as_sizes

__all__ = [
    "apply_along_axis",
    "apply_over_axes",
    "argpartition",
    "block",
    "choose",
    "lexsort",
    "partition",
    "piecewise",
    "resize",
    "rollaxis",
    "sort_complex",
]


def block(arrays: Any) -> Variable:
    """An array of blocks in nested lists: those of the innermost lists are joined along the last axis, and
    so on.

    Raises
    ------
    ShapeError
        For lists of different depths, empty ones, and blocks that do not fit.
    """
    depth = _depth(arrays)
    leaves = list(_leaves(arrays))
    rank = max(depth, *(leaf.ndim for leaf in leaves))

    def join(nested: Any, level: int) -> Variable:
        if level == depth:
            return pad_rank(as_variable(nested), rank)
        return concatenate([join(part, level + 1) for part in nested], rank - depth + level)

    return join(arrays, 0)


def _depth(nested: Any) -> int:
    if not isinstance(nested, list):
        if isinstance(nested, tuple):
            raise ShapeError(describe("block", ["a tuple"], "blocks stand in lists"))
        return 0
    depths = {_depth(part) for part in nested}
    if len(depths) != 1:
        raise ShapeError(
            describe("block", [f"a list of {len(nested)}"], "lists are of one depth, and not empty")
        )
    return depths.pop() + 1


def _leaves(nested: Any) -> Any:
    if not isinstance(nested, list):
        yield as_variable(nested)
        return
    for part in nested:
        yield from _leaves(part)


def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: Literal["introselect"] = "introselect"
) -> Variable:
    """The elements along an axis, those at places ``kth`` as in sorted order, lesser ones before them."""
    _check_places("partition", kth, a, axis, kind)
    return sort(a, axis)


def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: Literal["introselect"] = "introselect"
) -> Variable:
    """The places that :func:`partition` takes elements from."""
    _check_places("argpartition", kth, a, axis, kind)
    return argsort(a, axis)


def _check_places(name: str, kth: Any, a: Any, axis: Any, kind: Any) -> None:
    """Raise where there is no such place, as far as it is known, or no such kind of selection."""
    if not isinstance(kind, str) or kind != "introselect":
        raise ParameterError(describe(name, [f"kind={kind!r}"], "the one kind is 'introselect'"))
    places = np.asarray(kth)
    if places.dtype.kind not in "iu":
        raise CallError(describe(name, [f"kth={kth!r}"], "places are integers"))
    variable = as_variable(a)
    shape = variable.tensor_type.shape
    size = shape[normalize_axis(name, axis, variable.ndim)] if axis is not None else None
    if size is not None and places.size and not (-size <= places.min() and places.max() < size):
        raise ParameterError(describe(name, [f"kth={kth!r}"], f"there are {size} places"))


def lexsort(keys: Any, axis: int = -1) -> Variable:
    """The order that sorts by several keys, of which the last one counts most.

    Parameters
    ----------
    keys
        Arrays of one shape, in a sequence, or an array along whose first axis they are.
    axis
        The axis of a key along which to sort.

    Returns
    -------
    int64, of the shape of a key.

    Raises
    ------
    ParameterError
        When there are no keys.
    ShapeError
        When they have several shapes.

    Examples
    --------
    >>> esat.lexsort(([3, 1, 2], [0, 1, 0])).eval()
    array([2, 0, 1])
    """
    parts = list(keys) if isinstance(keys, (list, tuple)) else list(unstack(keys))
    if not parts:
        raise ParameterError("lexsort: there is no key to sort by")
    given = [as_variable(part) for part in parts]
    shapes = [one.tensor_type.shape for one in given]
    for shape in shapes[1:]:
        pairs = list(zip(shape, shapes[0], strict=False))
        if len(shape) != len(shapes[0]) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise ShapeError(describe("lexsort", [one.type for one in given], "keys have one shape"))
    order = argsort(given[0], axis)
    for key in given[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Variable:
    """At each place the value of the function whose condition holds there, the last that does.

    Parameters
    ----------
    x
        A Variable or array.
    condlist
        Conditions: arrays of booleans of the shape of ``x``.
    funclist
        One function, or a number, for each; and one more for where none holds, by default zero. Functions are
        given all of ``x``, and compute each element by itself.
    args, kw
        Further arguments of the functions.

    Raises
    ------
    ParameterError
        When there are not so many functions.
    """
    variable = as_variable(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    others = len(funclist) - len(conditions)
    if others not in (0, 1):
        reason = f"{len(funclist)} functions for {len(conditions)} conditions"
        raise ParameterError(describe("piecewise", [variable.type], reason))
    pieces = [
        cast(part(variable, *args, **kw) if callable(part) else part, variable.dtype) for part in funclist
    ]
    default = pieces.pop() if others else cast(0, variable.dtype)
    result: Variable = op_named("fill")(variable, default)
    for condition, piece in zip(conditions, pieces, strict=True):
        result = where(cast(condition, "bool"), piece, result)
    return result


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Variable:
    """A function of vectors applied to each line along an axis, whose results stand there.

    Raises
    ------
    ShapeError
        When sizes of the other axes are not known.
    """
    variable = as_variable(arr)
    place = normalize_axis("apply_along_axis", axis, variable.ndim)
    lines = moveaxis(variable, place, -1)
    outer = lines.tensor_type.shape[:-1]
    if None in outer or 0 in outer:
        reason = "the sizes of the other axes are known, and not zero"
        raise ShapeError(describe("apply_along_axis", [variable.type], reason))
    results = [as_variable(func1d(lines[index], *args, **kwargs)) for index in np.ndindex(*outer)]  # type: ignore[arg-type]
    joined = stack(results)
    inner = joined.tensor_type.shape[1:]
    whole = reshape(joined, (*outer, *inner))
    count = len(inner)
    axes = [*range(len(outer), len(outer) + count)]
    return moveaxis(whole, axes, [place + k for k in range(count)])


def choose(a: Any, choices: Any, *, mode: str = "raise") -> Variable:
    """At each place the element of the choice that ``a`` names there.

    Parameters
    ----------
    a
        Integers.
    choices
        Arrays, or one array of them along its first axis, which are broadcast against each other and ``a``.
    mode
        What numbers out of range do: an error ("raise"), go around ("wrap"), or name the nearest ("clip").

    Raises
    ------
    ParameterError
        For another ``mode``, and no choices.
    """
    listed = list(choices) if isinstance(choices, (list, tuple)) else list(as_variable(choices))
    if not listed or mode not in ("raise", "wrap", "clip"):
        reason = "there are choices, and a mode is raise, wrap or clip"
        raise ParameterError(describe("choose", [f"{len(listed)} choices, mode={mode!r}"], reason))
    number, *parts = broadcast_arrays(as_variable(a), *listed)
    number = cast(number, "int64")
    if mode == "wrap":
        number = op_named("mod")(number, len(parts))
    elif mode == "clip":
        number = op_named("clip")(number, 0, len(parts) - 1)
    else:
        # A number out of range, negative ones too, names a place that there is not.
        number = where(number < 0, LARGEST_SIZE, number)
    chosen: Variable = take_along_axis(stack(parts), number[None], 0)[0]
    return chosen


def rollaxis(a: Any, axis: int, start: int = 0) -> Variable:
    """An axis moved to before another one."""
    variable = as_variable(a)
    ndim = variable.ndim
    place = normalize_axis("rollaxis", axis, ndim)
    before = start + ndim if start < 0 else start
    if not 0 <= before <= ndim:
        reason = f"there is no axis {start} to move before"
        raise AxisError(describe("rollaxis", [variable.type], reason))
    return moveaxis(variable, place, before - 1 if place < before else before)


def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Variable:
    """A function ``func(array, axis)`` applied along several axes, one after another, which stay with size 1.

    Raises
    ------
    ShapeError
        When the function leaves neither as many axes nor one less.
    """
    result = as_variable(a)
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    for one in given:
        axis = normalize_axis("apply_over_axes", one, result.ndim)
        found = as_variable(func(result, axis))
        if found.ndim == result.ndim - 1:
            found = expand_dims(found, axis)
        if found.ndim != result.ndim:
            reason = "the function gives an array of as many axes, or of one less"
            raise ShapeError(describe("apply_over_axes", [result.type, found.type], reason))
        result = found
    return result


def resize(a: Any, new_shape: Any) -> Variable:
    """An array of another shape, of the elements in order, from the beginning again where there are too few.

    Parameters
    ----------
    a
        A Variable or array. Of an empty one the result is zeros.
    new_shape
        An integer, or several, or scalar Variables.
    """
    flat = ravel(a)
    sizes = as_sizes("resize", new_shape)
    if flat.tensor_type.shape[0] == 0:
        return zeros(tuple(sizes), flat.dtype)
    count: Any = as_variable(np.int64(1))
    for size in sizes:
        count = count * size
    size = size_of(flat, 0)
    if flat.tensor_type.shape[0] is None:  # it may be empty: a zero is read then
        flat, size = concatenate([flat, zeros(1, flat.dtype)]), op_named("maximum")(size, 1)
    places = op_named("mod")(arange(count), size)
    return reshape(flat[places], tuple(sizes))


def sort_complex(a: Any) -> Variable:
    """The elements in ascending order along the last axis, as complex numbers.

    Raises
    ------
    AxisError
        For a scalar.
    """
    ordered = sort(a)
    if ordered.tensor_type.kind == "c":
        return ordered
    small = ordered.dtype in ("int8", "int16", "uint8", "uint16")
    return cast(ordered, "complex64" if small else "complex128")
