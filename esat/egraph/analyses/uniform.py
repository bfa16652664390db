"""What a Variable shows without a rule: dtype, axes of size 1, and the one value of all elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.egraph.language.terms import SCALAR, broadcast_word, dtype_number
from esat.graph import Constant, TensorType, Variable
from esat.graph.sparse_type import SparseType
from esat.graph.types import Type
from esat.ops.arrays.dimshuffle import DimShuffle


def as_tensor(type: Type) -> TensorType:
    """What rules are told of a value: of a sparse matrix its dense type, of a random state nothing."""
    if isinstance(type, TensorType):
        return type
    return type.dense if isinstance(type, SparseType) else TensorType("bool")


def uniform_value(data: NDArray[Any]) -> float | None:
    """The value all elements share, as a float that is exactly it; else None.

    Negative zero, NaN, complex numbers but real ones and integers beyond float64 have no such value: the
    e-graph's numbers cannot tell them from others.
    """
    if data.dtype.kind == "c":
        return None if np.any(data.imag) or _has_negative_zero(data.imag) else uniform_value(data.real)
    if data.size == 0:
        return None
    first = data.flat[0]
    if data.size > 1 and not bool(np.all(data == first)):
        return None
    value = float(first)
    if math.isnan(value) or (value == 0.0 and data.dtype.kind == "f" and _has_negative_zero(data)):
        return None
    exact = data.dtype.kind == "f" or (math.isfinite(value) and int(value) == int(first))
    return value if exact and abs(value) < 2.0**1023 else None


def _has_negative_zero(zeros: NDArray[Any]) -> bool:
    """Whether one of some zeros has a sign."""
    return bool(np.any(np.signbit(zeros)))


def broadcast_of(variable: Variable) -> int:
    """The broadcast word of a Variable, -1 for all-size-1 values."""
    return broadcast_word(as_tensor(variable.type).broadcastable)


def dtype_of(variable: Variable) -> int:
    """The dtype number of a Variable."""
    return dtype_number(as_tensor(variable.type).dtype)


def bare(variable: Variable) -> Variable:
    """The Variable behind views that only give a scalar another rank."""
    while (
        variable.owner is not None
        and isinstance(variable.owner.op, DimShuffle)
        and broadcast_of(variable.owner.inputs[0]) == SCALAR
    ):
        variable = variable.owner.inputs[0]
    return variable


def value_of(variable: Variable) -> float | None:
    """The one value all elements have, where it is known and a float64 can hold it."""
    variable = bare(variable)
    if isinstance(variable, Constant):
        return uniform_value(variable.data) if isinstance(variable.type, TensorType) else None
    if variable.owner is not None and variable.owner.op.constructor == "Fill":
        return value_of(variable.owner.inputs[1])
    return None


def may_shrink(name: str, scalar: Variable) -> bool:
    """Whether what is multiplied (``mul``) or divided (``div``) by a scalar may leave the range only before.

    ``sum(x / 4)`` has a value where ``sum(x)`` overflows: such a scale stays with the terms of a sum. An
    unknown divisor is taken for a number of terms, an unknown factor is not.
    """
    value = value_of(scalar)
    if name == "div":
        return value is None or abs(value) > 1.0
    return value is not None and abs(value) < 1.0
