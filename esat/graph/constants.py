"""Wrapping of Python and NumPy values as Constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.errors import DtypeError
from esat.graph.callers import caller
from esat.graph.types import TensorType, check_unmasked, normalize_dtype
from esat.graph.variables import Constant, Variable


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
    if _contains_variable(value):
        raise DtypeError(f"{caller()}{value!r} contains Variables; build the array with esat.stack")
    check_unmasked(value)
    try:
        array = np.asarray(value)
        if dtype is not None:
            array = array.astype(normalize_dtype(dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise DtypeError(f"{caller()}{value!r} is not a numeric array: {error}") from error
    if array.dtype.kind not in "biufc":
        raise DtypeError(f"{caller()}{value!r} is not numeric: its dtype is {array.dtype}")
    return Constant(TensorType(array.dtype, shape=array.shape), array, name)


def _contains_variable(value: Any) -> bool:
    if isinstance(value, Variable):
        return True
    return isinstance(value, (list, tuple)) and any(map(_contains_variable, value))
