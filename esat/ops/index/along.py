"""Taking and writing elements along one axis, place by place."""

from __future__ import annotations

from typing import Any

from esat.errors import ShapeError, describe
from esat.graph.op import as_variable
from esat.graph.variables import Variable
from esat.ops.arrays.creation import arange
from esat.ops.arrays.dimshuffle import dimshuffle
from esat.ops.arrays.shape import size_of
from esat.ops.arrays.view import flatten
from esat.ops.index.advanced import AdvancedSetSubtensor, AdvancedSubtensor
from esat.ops.index.entries import ARRAY
from esat.ops.inference.axes import normalize_axis


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Variable:
    """At each place of ``indices`` the element of ``arr`` that it names along ``axis``.

    Parameters
    ----------
    arr
        A Variable or array.
    indices
        Integers, of the operand's rank; sizes along the other axes as the operand's, or 1.
    axis
        The axis; None takes from all elements as a vector, ``indices`` then being one.
    """
    variable, places, index = _aligned("take_along_axis", arr, indices, axis)
    entries = (ARRAY,) * variable.tensor_type.ndim
    result: Variable = AdvancedSubtensor(entries)(variable, *_grid(variable, places, index))
    return result


def set_along_axis(operand: Any, indices: Any, values: Any, axis: Any) -> Variable:
    """A copy of ``operand`` with ``values`` at the places that ``indices`` name along ``axis``."""
    variable, places, index = _aligned("set_along_axis", operand, indices, axis)
    entries = (ARRAY,) * variable.tensor_type.ndim
    result: Variable = AdvancedSetSubtensor(entries)(variable, values, *_grid(variable, places, index))
    return result


def _aligned(name: str, operand: Any, indices: Any, axis: Any) -> tuple[Variable, Variable, int]:
    variable, places = as_variable(operand), as_variable(indices)
    if axis is None:
        variable, axis = flatten(variable), 0
    index = normalize_axis(name, axis, variable.tensor_type.ndim)
    if variable.tensor_type.ndim != places.tensor_type.ndim:
        reason = "the indices must have the rank of the array"
        raise ShapeError(describe(name, [variable.type, places.type], reason))
    return variable, places, index


def _grid(operand: Variable, places: Variable, axis: int) -> list[Variable]:
    """One index array an axis: the given one, and the place itself along the others."""
    rank = operand.tensor_type.ndim
    return [
        places
        if other == axis
        else dimshuffle(arange(size_of(operand, other)), ["x" if i != other else 0 for i in range(rank)])
        for other in range(rank)
    ]
