"""Shared variables: values that last between calls of compiled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from esat.graph.constants import constant
from esat.graph.types import TensorType
from esat.graph.variables import SharedVariable


def shared(
    value: Any, name: str | None = None, shape: Sequence[int | None] | None = None, dtype: Any = None
) -> SharedVariable:
    """A Variable that has a value of its own.

    Parameters
    ----------
    value
        Its first value, which is copied: a number, an array, or a nested list.
    name
        For printing.
    shape
        Sizes that shall not change. By default only the rank is fixed, so that a new value may have any
        sizes; then no axis broadcasts, also one of size 1.
    dtype
        Cast the value to it first.
    """
    first = constant(value, dtype).data
    sizes = tuple(shape) if shape is not None else (None,) * first.ndim
    return SharedVariable(TensorType(first.dtype, shape=sizes), first, name)
