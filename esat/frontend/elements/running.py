"""Running sums and products under the names of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esat.errors import AxisError, describe
from esat.frontend.arrays.shaping import atleast_1d, concatenate
from esat.graph.op import as_variable
from esat.graph.variables import Variable
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.cumulative import cumprod, cumsum
from esat.ops.arrays.shape import sizes_of
from esat.ops.cast import cast
from esat.ops.inference.axes import normalize_axis

__all__ = ["cumulative_prod", "cumulative_sum"]


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Variable:
    """Running sums along an axis.

    Parameters
    ----------
    x
        A Variable or array.
    axis
        The axis; it must be given for arrays of several.
    dtype
        What is added in; by default as by :func:`esat.sum`.
    include_initial
        Whether the sum of nothing comes first.

    Raises
    ------
    AxisError
        When there are several axes and none is given.
    """
    return _running("cumulative_sum", cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Variable:
    """Running products along an axis; see :func:`cumulative_sum`."""
    return _running("cumulative_prod", cumprod, 1, x, axis, dtype, include_initial)


def _running(
    name: str,
    accumulate: Callable[..., Variable],
    first: int,
    x: Any,
    axis: int | None,
    dtype: Any,
    include_initial: bool,
) -> Variable:
    variable: Variable = atleast_1d(as_variable(x))
    rank = variable.tensor_type.ndim
    if axis is None and rank > 1:
        raise AxisError(describe(name, [variable.type], "an array of several axes needs an axis"))
    index = normalize_axis(name, 0 if axis is None else axis, rank)
    running = accumulate(variable, index, dtype)
    if not include_initial:
        return running
    sizes = [1 if other == index else size for other, size in enumerate(sizes_of(variable))]
    return concatenate([alloc(cast(first, running.tensor_type.dtype), *sizes), running], index)
