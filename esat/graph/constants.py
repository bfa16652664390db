"""Wrapping of Python and NumPy values as Constants."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from esat.errors import DtypeError
from esat.graph.calls.callers import caller
from esat.graph.types import TensorType, check_unmasked, normalize_dtype
from esat.graph.variables import Constant, Variable

MOST_LEVELS = 64
"""Levels of lists within lists, as NumPy's arrays have axes at most."""


def constant(value: Any, dtype: Any = None, name: str | None = None) -> Constant:
    """A Constant that holds ``value``.

    Parameters
    ----------
    value
        A number, a nested list of numbers or an array.
    dtype
        Its dtype; by default NumPy's choice for the value.

    Raises
    ------
    DtypeError
        When the value is not numeric, or contains Variables (use ``esat.stack``).
    """
    if isinstance(value, Constant) and dtype is None:
        return value
    if isinstance(value, list | tuple):
        fault = _fault(value)
        if fault:
            raise DtypeError(f"{caller()}{reprlib.repr(value)} {fault}")
    check_unmasked(value)
    try:
        array = np.asarray(value)
        if dtype is not None:
            array = array.astype(normalize_dtype(dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise DtypeError(f"{caller()}{reprlib.repr(value)} is not a numeric array: {error}") from error
    if array.dtype.kind not in "biufc":
        raise DtypeError(f"{caller()}{reprlib.repr(value)} is not numeric: its dtype is {array.dtype}")
    return Constant(TensorType(array.dtype, shape=array.shape), array, name)


def _fault(nested: list[Any] | tuple[Any, ...]) -> str:
    """Why nested lists are no array of numbers that NumPy could make, as far as lists tell; or nothing."""
    if _levels(nested) is None:
        return "has too many levels, or contains itself"
    return "contains Variables; build the array with esat.stack" if holds_variable(nested) else ""


def holds_variable(nested: list[Any] | tuple[Any, ...]) -> bool:
    """Whether there is a Variable in nested lists, which do not contain themselves."""
    levels = _levels(nested)
    return levels is not None and any(isinstance(part, Variable) for level in levels for part in level)


def _levels(nested: list[Any] | tuple[Any, ...]) -> list[list[Any]] | None:
    """The lists and Variables in nested lists by their depth, each once; None where that has no end."""
    levels: list[list[Any]] = [[nested]]
    for _ in range(MOST_LEVELS):
        lists = [one for one in levels[-1] if not isinstance(one, Variable)]
        if not lists:
            return levels
        found = {id(part): part for one in lists for part in one if isinstance(part, list | tuple | Variable)}
        levels.append(list(found.values()))
    return None
