"""Reductions that begin with a value, and those of selected elements: NumPy's ``initial`` and ``where``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, ParameterError, ShapeError, describe
from esat.graph.constants import constant
from esat.graph.methods import NOT_GIVEN
from esat.graph.op import as_variable
from esat.graph.registry import op_named
from esat.graph.types import normalize_dtype
from esat.graph.variables import Constant, Variable
from esat.ops.arrays.creation import alloc
from esat.ops.arrays.shape import element_count, size_of
from esat.ops.cast import cast
from esat.ops.control import assert_, ifelse, specify_shape
from esat.ops.inference.axes import normalize_axes
from esat.ops.reduction import SUM, Reducer, reduce

_COMBINED_BY = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}


def folded(
    reducer: Reducer,
    operand: Any,
    axis: Any = None,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Variable:
    """A reduction with all of NumPy's arguments.

    Parameters
    ----------
    reducer, operand, axis, dtype, keepdims
        As :func:`esat.ops.reduction.reduce` takes them.
    initial
        The value to begin with, a scalar; it is converted to the dtype of the result. None where the
        reduction begins with its first element, so that there must be one.
    where
        Which elements count: bools that broadcast to the operand's shape.

    Raises
    ------
    ParameterError
        For an initial value that the dtype does not have; when the reduction has no value of nothing, and
        elements are selected without an initial value.
    ShapeError
        For an initial value with axes, and a mask that does not broadcast to the operand.
    """
    variable = as_variable(operand)
    mask = mask_of(reducer.name, variable, where)
    if mask is None and initial is NOT_GIVEN:
        return reduce(reducer, variable, axis, dtype, keepdims)
    kept = None if dtype is None else normalize_dtype(dtype)
    variable = cast(variable, reducer.operand_dtype(kept or variable.tensor_type.dtype))
    result_dtype = variable.tensor_type.dtype
    rank = variable.tensor_type.ndim
    axes = normalize_axes(reducer.name, None if _is_number(rank, axis) else axis, rank)
    start = None if initial is NOT_GIVEN or initial is None else _start(reducer, initial, result_dtype)
    if mask is not None:
        variable = op_named("switch")(mask, variable, _ignored(reducer, variable, initial, start))
    if start is None:
        if initial is None and reducer.identity is not None:
            variable = _not_empty(reducer, variable, axes)
        return _in(kept, reduce(reducer, variable, axes, None, keepdims))
    if reducer.identity is None:
        variable = _never_empty(variable, axes, start)
    combine = op_named(_COMBINED_BY[reducer.name])
    return _in(kept, combine(reduce(reducer, variable, axes, None, keepdims), start))


def _is_number(rank: int, axis: Any) -> bool:
    return rank == 0 and type(axis) is int and axis in (0, -1)


def _in(dtype: str | None, result: Variable) -> Variable:
    return result if dtype is None else cast(result, dtype)


def mask_of(name: str, variable: Variable, where: Any) -> Variable | None:
    """The bools that select elements of a variable; None where all are meant.

    Raises
    ------
    DtypeError
        For an array, or a Variable, of another dtype; what else Python takes for true or false will do.
    ShapeError
        When they do not broadcast to the shape of the variable.
    """
    if where is NOT_GIVEN or where is True:
        return None
    mask = as_variable(where)
    if isinstance(where, Variable | np.ndarray) and mask.tensor_type.kind != "b":
        shown = [variable.type, f"where={mask.type}"]
        raise DtypeError(describe(name, shown, "the mask that selects elements is bool"))
    return _fitting(name, "where", cast(mask, "bool"), variable)


def mean_of(name: str, variable: Variable, mean: Any) -> Any:
    """The mean of a variable, as it is given to what is computed about it.

    Raises
    ------
    DtypeError
        For a complex mean of real numbers.
    ShapeError
        When it does not broadcast to the shape of the variable.
    """
    given = as_variable(mean)
    if given.tensor_type.kind == "c" and variable.tensor_type.kind != "c":
        shown = [variable.type, f"mean={given.type}"]
        raise DtypeError(describe(name, shown, "the mean of real numbers is real"))
    # Python's numbers take the dtype of what they are subtracted from.
    return _fitting(name, "mean", given, variable) if given.tensor_type.ndim else mean


def _fitting(name: str, argument: str, given: Variable, variable: Variable) -> Variable:
    """What broadcasts to the shape of a variable; where that has one element, it has one too."""
    shape, wanted = given.tensor_type.shape, variable.tensor_type.shape
    lead = len(wanted) - len(shape)
    pairs = list(zip(shape, wanted[max(lead, 0) :], strict=False))
    if lead < 0 or any(one not in (1, None) and size not in (one, None) for one, size in pairs):
        shown = [variable.type, f"{argument}={given.type}"]
        raise ShapeError(describe(name, shown, f"{argument} does not broadcast to the shape of the array"))
    return specify_shape(given, [1 if size == 1 else one for one, size in pairs])


def selected_count(
    variable: Variable, axes: Sequence[int], mask: Variable | None, keepdims: bool
) -> Variable:
    """How many elements along some axes count; int64, a scalar where all do."""
    if mask is None:
        return element_count(variable, axes)
    return reduce(SUM, op_named("fill")(variable, mask), axes, None, keepdims)


def _start(reducer: Reducer, initial: Any, dtype: str) -> Variable:
    """The initial value as a scalar of a dtype; numbers that are no whole ones lose their fraction there."""
    shown = [f"initial={initial if not isinstance(initial, Variable) else initial.type}", dtype]
    kind = np.dtype(dtype).kind
    if isinstance(initial, int) and abs(initial) >= 2**63 and kind in "fc":
        initial = _as_float(initial)
    given = as_variable(initial)
    if given.tensor_type.ndim:
        raise ShapeError(describe(reducer.name, shown, "the initial value is a scalar"))
    if given.tensor_type.kind == "c" and kind not in "cb":
        raise DtypeError(
            describe(reducer.name, shown, "a complex number is no initial value of real numbers")
        )
    if isinstance(given, Constant) and kind in "iu":
        limits, number = np.iinfo(dtype), given.data[()]
        if not (math.isfinite(number) and limits.min <= int(number) <= limits.max):
            raise ParameterError(describe(reducer.name, shown, "the dtype does not have the initial value"))
    return cast(given, dtype)


def _as_float(number: int) -> float:
    return float(number) if abs(number) < 2**1024 else math.copysign(math.inf, number)


def _ignored(reducer: Reducer, variable: Variable, initial: Any, start: Variable | None) -> Variable:
    """What stands for the elements that do not count: they leave every result as it is."""
    if reducer.identity is not None and initial is not None:
        dtype = variable.tensor_type.dtype
        return constant(np.asarray(reducer.identity(dtype)).astype(dtype))
    if start is None:
        reason = "it has no value of nothing: to select elements, give an initial value"
        raise ParameterError(describe(reducer.name, [variable.type, "where=..."], reason))
    return start


def _not_empty(reducer: Reducer, variable: Variable, axes: Sequence[int]) -> Variable:
    """The variable, of which there must be elements along the axes."""
    message = f"{reducer.name}: nothing to reduce, and without an initial value it has no value for that"
    count = element_count(variable, axes)
    if isinstance(count, Constant) and count.data > 0:
        return variable
    result = reduce(reducer, variable, axes)
    empty = op_named("logical_and")(op_named("eq")(count, 0), op_named("gt")(element_count(result), 0))
    return assert_(variable, op_named("logical_not")(empty), message=message, error=ShapeError)


def _never_empty(variable: Variable, axes: Sequence[int], start: Variable) -> Variable:
    """The variable, or where there is nothing along the axes, the initial value once along them.

    What is chosen is the operand and not the result, so that the derivative has something to reduce too.
    """
    count = element_count(variable, axes)
    if isinstance(count, Constant) and count.data > 0:
        return variable
    sizes = [
        op_named("maximum")(size_of(variable, axis), 1) if axis in axes else size_of(variable, axis)
        for axis in range(variable.tensor_type.ndim)
    ]
    chosen: Variable = ifelse(op_named("gt")(count, 0), variable, alloc(start, *sizes))
    return chosen
