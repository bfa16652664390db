"""NumPy 2's dtype promotion: Python numbers are weak, arrays are strong."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from esat.base.records import record
from esat.base.scipy_extensions import special as scipy_special
from esat.errors import DtypeError, GraphError, describe
from esat.graph.calls.callers import caller
from esat.graph.constants import constant
from esat.graph.op import as_variable
from esat.graph.tracing import WeakNumber
from esat.graph.types import normalize_dtype
from esat.graph.variables import Variable


@record(frozen=True, slots=True)
class SciPyLoops:
    """The dtypes that a function of ``scipy.special`` has loops for.

    It takes the one that all operands have, and otherwise the first that every operand casts to safely.
    Which of float32 and float64 it tries first is a matter of the function, and of the release:
    ``erf`` of int8 and of float16 is float64 in SciPy 1.17, and float32 in 1.18.

    Attributes
    ----------
    function
        The ufunc that tells the order; where it is empty, ``dtypes`` are in order.
    dtypes
        All that esat computes in, real ones first.
    """

    function: str
    dtypes: tuple[str, ...]

    def in_order(self) -> tuple[str, ...]:
        """The dtypes as the installed SciPy tries them. Imports a part of SciPy."""
        if not self.function:
            return self.dtypes
        ufunc: Any = scipy_special(self.function)
        tried = dict.fromkeys(np.dtype(loop[0]).name for loop in ufunc.types)
        return tuple(dtype for dtype in tried if dtype in self.dtypes)


Loops = np.ufunc | SciPyLoops | tuple[str, ...] | None
"""How an op chooses the dtype it computes in.

As a NumPy ufunc does; as one of SciPy does; or the common dtype of the operands if it is in the tuple, else
the first one there that every operand casts to safely; or, for None, the common dtype whatever it is.
"""

Given = np.dtype[Any] | type
"""The dtype of an operand, or the Python type of a weak number."""

FLOATS = ("float16", "float32", "float64")
"""Loops of a function of real floats, chosen as NumPy's own functions do."""

_REAL = ("float64", "float32")


def special(function: str) -> SciPyLoops:
    """Loops of a function of SciPy that takes real floats."""
    return SciPyLoops(function, _REAL)


def special_complex(function: str) -> SciPyLoops:
    """Loops of a function of SciPy that takes complex numbers too."""
    return SciPyLoops(function, (*_REAL, "complex128", "complex64"))


_WEAK_EXAMPLE: dict[type, Any] = {int: 0, float: 0.0, complex: 0j}
_NARROW = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
"""Dtypes that not every integer of 64 bits fits, which NumPy finds out by its value."""


def is_weak(value: Any) -> bool:
    """Whether a value is a Python number, known or traced, which takes the dtype of what it meets."""
    return type(value) in _WEAK_EXAMPLE or isinstance(value, WeakNumber)


def _weak_type(value: Any) -> type:
    return value.kind if isinstance(value, WeakNumber) else type(value)


def given_dtypes(values: Sequence[Any]) -> tuple[Given, ...]:
    """What NumPy's type resolution takes for each value. Weak numbers among themselves count as arrays."""
    all_weak = all(map(is_weak, values))
    return tuple(_weak_type(value) if is_weak(value) and not all_weak else _strong(value) for value in values)


def _given_to(name: str, values: Sequence[Any]) -> tuple[Given, ...]:
    """What :func:`given_dtypes` gives, with errors that name the op."""
    try:
        return given_dtypes(values)
    except (DtypeError, GraphError) as error:
        shown = [value.type if isinstance(value, Variable) else reprlib.repr(value) for value in values]
        raise type(error)(describe(name, shown, str(error).removeprefix(caller()))) from error


def _strong(value: Any) -> np.dtype[Any]:
    return as_variable(value).tensor_type.numpy_dtype


def operand_dtypes(name: str, loops: Loops, values: Sequence[Any], by_result: bool = True) -> list[str]:
    """The dtype each operand of an op is cast to: one for all of them.

    Parameters
    ----------
    name
        Of the op, for errors.
    loops
        How the op chooses.
    values
        Variables, arrays and Python numbers.
    by_result
        For a ufunc: operands take the dtype of its result (integers that are divided become floats first),
        or else the common dtype of its operands.

    Raises
    ------
    DtypeError
        When the op takes no operands of these dtypes, or one that is no number.
    GraphError
        When an operand is no tensor.
    """
    return [resolve_dtype(name, loops, _given_to(name, values), by_result)] * len(values)


def common_dtype(name: str, values: Sequence[Any]) -> str:
    """The dtype NumPy's ``result_type`` gives for a mix of Variables, arrays and Python numbers."""
    return resolve_dtype(name, None, _given_to(name, values))


@lru_cache(maxsize=4096)
def resolve_dtype(name: str, loops: Loops, given: tuple[Given, ...], by_result: bool = True) -> str:
    """What :func:`operand_dtypes` gives for operands known by dtype alone."""
    if isinstance(loops, np.ufunc):
        return _ufunc_dtype(name, loops, given, by_result)
    if isinstance(loops, SciPyLoops):
        return _scipy_dtype(name, loops, given)
    examples = [
        np.empty((), dtype) if isinstance(dtype, np.dtype) else _WEAK_EXAMPLE[dtype] for dtype in given
    ]
    common = np.result_type(*examples)
    if loops is None or common.name in loops:
        return normalize_dtype(common)
    strong = [dtype for dtype in given if isinstance(dtype, np.dtype)]
    raised = common.kind not in {dtype.kind for dtype in strong}
    for candidate in loops:
        if all(np.can_cast(dtype, candidate, "safe") for dtype in (strong + [common] * raised)):
            return candidate
    raise DtypeError(describe(name, _shown(given), f"takes {', '.join(loops)}"))


def _ufunc_dtype(name: str, ufunc: np.ufunc, given: tuple[Given, ...], by_result: bool) -> str:
    try:
        resolved = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))
    except TypeError as error:
        raise DtypeError(describe(name, _shown(given), _lacking(name, given))) from error
    operands = resolved[: len(given)]
    return normalize_dtype(resolved[-1] if by_result else np.result_type(*operands))


_INSTEAD = {"neg": "~", "sub": "^"}
"""Operators of booleans in place of those that NumPy does not define for them."""


def _lacking(name: str, given: tuple[Given, ...]) -> str:
    """Why NumPy has no result."""
    are_bool = all(one is bool or (isinstance(one, np.dtype) and one.kind == "b") for one in given)
    instead = f"; use {_INSTEAD[name]}" if are_bool and name in _INSTEAD else ""
    return f"NumPy does not define it for {'booleans' if are_bool else 'these dtypes'}{instead}"


_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
"""Kinds of dtypes, lowest first, as Python numbers compare with them."""


def _scipy_dtype(name: str, loops: SciPyLoops, given: tuple[Given, ...]) -> str:
    strong = [dtype for dtype in given if isinstance(dtype, np.dtype)]
    most = max((_KINDS[dtype.kind] for dtype in strong), default=-1)
    # A Python number fits every loop, unless it is of a higher kind than the arrays.
    weak = [np.dtype(dtype) for dtype in given if not isinstance(dtype, np.dtype)]
    dtypes = [*strong, *(dtype for dtype in weak if _KINDS[dtype.kind] > most)]
    first = given[0]
    if isinstance(first, np.dtype) and first.name in loops.dtypes and all(dtype == first for dtype in given):
        return first.name

    def fitting(candidates: Sequence[str]) -> list[str]:
        return [loop for loop in candidates if all(np.can_cast(dtype, loop, "safe") for dtype in dtypes)]

    candidates = fitting(loops.dtypes)
    if not candidates:
        raise DtypeError(describe(name, _shown(given), f"takes {', '.join(sorted(loops.dtypes))}"))
    is_certain = len({np.dtype(candidate).kind for candidate in candidates}) == len(candidates)
    return candidates[0] if is_certain else fitting(loops.in_order())[0]


def _shown(given: Sequence[Given]) -> list[str]:
    return [dtype.name if isinstance(dtype, np.dtype) else f"Python {dtype.__name__}" for dtype in given]


def wrap(name: str, value: Any, dtype: str) -> Variable:
    """A Variable for an operand; a Python number becomes a Constant of ``dtype`` at once.

    Raises
    ------
    DtypeError
        When an integer does not fit ``dtype`` (NumPy raises OverflowError there).
    """
    if isinstance(value, Variable):
        return value
    if isinstance(value, WeakNumber):
        if value.kind is not int or dtype not in _NARROW:
            return value.variable
        value = value.known()  # NumPy asks whether it fits
    if is_weak(value):
        try:
            with np.errstate(over="ignore"):
                return constant(np.asarray(value, dtype=dtype))
        except OverflowError as error:
            raise DtypeError(describe(name, [value], f"the number does not fit {dtype}")) from error
    return as_variable(value)
