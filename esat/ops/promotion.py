"""NumPy 2's dtype promotion: Python numbers are weak, arrays are strong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.errors import DtypeError, describe
from esat.graph.constants import constant
from esat.graph.types import normalize_dtype
from esat.graph.variables import Variable

_WEAK = {bool: np.dtype(bool), int: int, float: float, complex: complex}


def is_weak(value: Any) -> bool:
    """Whether a value is a Python number, which takes the dtype of what it meets."""
    return type(value) in (int, float, complex)


def dtype_of(value: Any) -> Any:
    """What NumPy's type resolution takes for a value: a dtype, or a Python type for a weak number."""
    if isinstance(value, Variable):
        return value.tensor_type.numpy_dtype
    if is_weak(value):
        return _WEAK[type(value)]
    return constant(value).tensor_type.numpy_dtype


def operand_dtypes(name: str, ufunc: np.ufunc | Callable[..., Any], values: Sequence[Any]) -> list[str]:
    """The dtype each operand is cast to, as ``ufunc`` would.

    Raises
    ------
    DtypeError
        When NumPy has no loop for these dtypes.
    """
    given = [dtype_of(value) for value in values]
    if not isinstance(ufunc, np.ufunc):
        return [common_dtype(name, values)] * len(values)
    try:
        resolved = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    except TypeError as error:
        raise DtypeError(describe(name, given, f"no loop for these dtypes ({error})")) from error
    loop = list(resolved[: len(given)])
    if len(set(loop)) > 1:
        loop = [np.result_type(*loop)] * len(loop)
    return [normalize_dtype(dtype) for dtype in loop]


def common_dtype(name: str, values: Sequence[Any]) -> str:
    """The dtype NumPy's ``result_type`` gives for a mix of Variables, arrays and Python numbers."""
    examples = [value if is_weak(value) else np.empty((), dtype_of(value)) for value in values]
    try:
        return normalize_dtype(np.result_type(*examples))
    except (TypeError, ValueError) as error:
        raise DtypeError(describe(name, map(dtype_of, values), str(error))) from error


def wrap(name: str, value: Any, dtype: str) -> Variable:
    """A Variable for an operand; a Python number becomes a Constant of ``dtype`` at once.

    Raises
    ------
    DtypeError
        When an integer does not fit ``dtype`` (NumPy raises OverflowError there).
    """
    if isinstance(value, Variable):
        return value
    if is_weak(value):
        try:
            return constant(np.asarray(value, dtype=dtype))
        except OverflowError as error:
            raise DtypeError(describe(name, [value], f"the number does not fit {dtype}")) from error
    return constant(value)
