"""Axis arguments: NumPy's forms in, sorted tuples of non-negative axes out."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

from esat.errors import AxisError, describe
from esat.graph.calls.callers import user_line


def normalize_axis(name: str, axis: Any, rank: int) -> int:
    """One axis of an array of ``rank`` axes, counted from the front.

    Raises
    ------
    AxisError
        When it is not an integer or out of range.
    """
    try:
        index = operator.index(axis)
    except TypeError as error:
        reason = "an axis is an integer"
        raise AxisError(describe(name, [f"axis={reprlib.repr(axis)}"], reason, user_line())) from error
    if not -rank <= index < rank:
        raise AxisError(describe(name, [f"axis={index}"], f"out of range for {rank} axes", user_line()))
    return index % rank


def normalize_axes(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """The axes that ``axis`` names, ascending: None means all, a tuple or list several.

    Raises
    ------
    AxisError
        When one is not an integer, out of range or named twice.
    """
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, Iterable) or isinstance(axis, str):
        return (normalize_axis(name, axis, rank),)
    return tuple(sorted(ordered_axes(name, tuple(axis), rank)))


def ordered_axes(name: str, axes: Sequence[Any], rank: int) -> tuple[int, ...]:
    """Each of ``axes`` counted from the front, in the order given.

    Raises
    ------
    AxisError
        When one is not an integer, out of range or named twice.
    """
    found = tuple(normalize_axis(name, axis, rank) for axis in axes)
    if len(set(found)) != len(found):
        raise AxisError(describe(name, [f"axis={tuple(axes)}"], "an axis is named twice", user_line()))
    return found
