"""Types of the subset: what its functions take and return, by their annotations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from esat.base.records import record
from esat.errors import CompileError

Scalar = Literal["int", "float", "bool"]

# Elements are numbers of NumPy, and take part in arithmetic with Python's: type checkers see a difference.
Integers = Annotated[Any, "int"]
"""A one-dimensional, contiguous array of int64."""
Floats = Annotated[Any, "float"]
"""A one-dimensional, contiguous array of float64."""

_SCALARS: dict[object, Scalar] = {int: "int", float: "float", bool: "bool"}
_DTYPES = {"int": np.dtype(np.int64), "float": np.dtype(np.float64)}


def address_of(array: np.ndarray) -> int:
    """Where an array's first element is, asked in a way that takes a fifth of the array's own."""
    flags = array.flags
    if array.size and flags.writeable and flags.forc:
        in_one_piece = array if flags.c_contiguous else array.T
        return ctypes.addressof(ctypes.c_char.from_buffer(in_one_piece))  # type: ignore[arg-type]
    return int(array.ctypes.data)


@record(frozen=True)
class ArrayType:
    """An array of numbers of 8 bytes."""

    element: Scalar

    def words(self, value: np.ndarray) -> tuple[int, int]:
        """Where the elements of an array are, and how many.

        Raises
        ------
        CompileError
            For an array of another kind.
        """
        flags = value.flags
        if value.dtype != _DTYPES[self.element] or value.ndim != 1 or not flags.c_contiguous:
            kind = f"{value.dtype} array with {value.ndim} axes and strides {value.strides}"
            raise CompileError(f"an {kind} is no contiguous vector of {_DTYPES[self.element]}")
        return address_of(value), len(value)


@record(frozen=True)
class Record:
    """Several arrays by name."""

    fields: tuple[tuple[str, ArrayType], ...]


Parameter = Scalar | ArrayType | Record


class Arrays:
    """Base of records: frozen dataclasses with fields of :data:`Integers` and :data:`Floats`.

    Where the arrays are is found out once, so that a call takes no longer for many of them.
    """

    def __post_init__(self) -> None:
        words: list[int] = []
        for name, array in record_of(type(self)).fields:
            words += array.words(getattr(self, name))
        table = (ctypes.c_int64 * len(words))(*words)
        self.__dict__.update(_table=table, _address=ctypes.addressof(table))  # dataclasses are frozen

    def __getstate__(self) -> dict[str, Any]:
        """The arrays; where they are is found out anew in a copy."""
        return {name: getattr(self, name) for name, _ in record_of(type(self)).fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        Arrays.__post_init__(self)

    @property
    def address(self) -> int:
        """Of the table with the address and the length of each array."""
        found: int = self.__dict__["_address"]
        return found


_RECORDS: dict[type, Record] = {}


def record_of(kind: type[Arrays]) -> Record:
    """The fields of a record, always the same object.

    Raises
    ------
    CompileError
        For a field that is no array.
    """
    if kind not in _RECORDS:
        arrays = {name: _array(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
        found = tuple((name, array) for name, array in arrays.items() if array is not None)
        if len(found) < len(arrays):
            raise CompileError(f"{kind.__qualname__}: a field is no array")
        _RECORDS[kind] = Record(found)
    return _RECORDS[kind]


@record(frozen=True)
class CallSignature:
    """Parameters by name, and what is returned: nothing, one number, or several."""

    parameters: dict[str, Parameter]
    results: tuple[Scalar, ...]


def name_of(function: Callable[..., Any]) -> str:
    """What a function is called in object code."""
    return f"{function.__module__}.{function.__qualname__}"


def signature_of(function: Callable[..., Any]) -> CallSignature:
    """The types of a function of the subset.

    Raises
    ------
    CompileError
        For an annotation that is not of the subset, or a missing one.
    """
    assert isinstance(function, FunctionType)
    hints = get_type_hints(function, include_extras=True)
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    if missing := [name for name in (*names, "return") if name not in hints]:
        raise CompileError(f"{function.__qualname__}: no annotation of {', '.join(missing)}")
    returned = hints["return"]
    if returned is type(None):
        results: tuple[Scalar, ...] = ()
    else:
        parts = get_args(returned) if get_origin(returned) is tuple else (returned,)
        results = tuple(_scalar(function, part) for part in parts)
    return CallSignature({name: _parameter(function, hints[name]) for name in names}, results)


def _scalar(function: FunctionType, hint: object) -> Scalar:
    if hint not in _SCALARS:
        raise CompileError(f"{function.__qualname__}: {hint} is no type of the subset")
    return _SCALARS[hint]


def _parameter(function: FunctionType, hint: object) -> Parameter:
    if isinstance(hint, type) and issubclass(hint, Arrays):
        return record_of(hint)
    array = _array(hint)
    return _scalar(function, hint) if array is None else array


def _array(hint: object) -> ArrayType | None:
    if hint == Integers:
        return ArrayType("int")
    return ArrayType("float") if hint == Floats else None
