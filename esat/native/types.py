"""Types of the subset: what its functions take and return, by their annotations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np

from esat.errors import CompileError

Scalar = Literal["int", "float", "bool"]

# Elements are numbers of NumPy, and take part in arithmetic with Python's: type checkers see a difference.
Integers = Annotated[Any, "int"]
"""A one-dimensional, contiguous array of int64."""
Floats = Annotated[Any, "float"]
"""A one-dimensional, contiguous array of float64."""

_SCALARS: dict[object, Scalar] = {int: "int", float: "float", bool: "bool"}
_DTYPES = {"int": np.dtype(np.int64), "float": np.dtype(np.float64)}


@dataclass(frozen=True)
class Array:
    """An array of numbers of 8 bytes."""

    element: Scalar

    def words(self, value: np.ndarray) -> tuple[int, int]:
        """Where the elements of an array are, and how many.

        Raises
        ------
        CompileError
            For an array of another kind.
        """
        if value.dtype != _DTYPES[self.element] or value.ndim != 1 or not value.flags.c_contiguous:
            kind = f"{value.dtype} array with {value.ndim} axes and strides {value.strides}"
            raise CompileError(f"an {kind} is no contiguous vector of {_DTYPES[self.element]}")
        if value.size and value.flags.writeable:
            # The array's own answer takes five times as long.
            return ctypes.addressof(ctypes.c_char.from_buffer(value)), value.size  # type: ignore[arg-type]
        return int(value.ctypes.data), value.size


@dataclass(frozen=True)
class Record:
    """Several arrays by name."""

    fields: tuple[tuple[str, Array], ...]


Parameter = Scalar | Array | Record


class Arrays:
    """Base of records: frozen dataclasses with fields of :data:`Integers` and :data:`Floats`.

    Where the arrays are is found out once, so that a call takes no longer for many of them.
    """

    __record: ClassVar[Record | None] = None

    def __post_init__(self) -> None:
        fields = self.record().fields
        words = [word for name, array in fields for word in array.words(getattr(self, name))]
        table = (ctypes.c_int64 * len(words))(*words)
        self.__dict__.update(_table=table, _address=ctypes.addressof(table))  # dataclasses are frozen

    @property
    def address(self) -> int:
        """Of the table with the address and the length of each array."""
        found: int = self.__dict__["_address"]
        return found

    @classmethod
    def record(cls) -> Record:
        """The fields.

        Raises
        ------
        CompileError
            For a field that is no array.
        """
        if cls.__record is None:
            hints = get_type_hints(cls, include_extras=True).items()
            arrays = {name: _array(hint) for name, hint in hints if get_origin(hint) is not ClassVar}
            found = tuple((name, array) for name, array in arrays.items() if array is not None)
            if len(found) < len(arrays):
                raise CompileError(f"{cls.__qualname__}: a field is no array")
            cls.__record = Record(found)
        return cls.__record


@dataclass(frozen=True)
class Signature:
    """Parameters by name, and what is returned: nothing, one number, or several."""

    parameters: dict[str, Parameter]
    results: tuple[Scalar, ...]


def signature_of(function: Callable[..., Any]) -> Signature:
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
    return Signature({name: _parameter(function, hints[name]) for name in names}, results)


def _scalar(function: FunctionType, hint: object) -> Scalar:
    if hint not in _SCALARS:
        raise CompileError(f"{function.__qualname__}: {hint} is no type of the subset")
    return _SCALARS[hint]


def _parameter(function: FunctionType, hint: object) -> Parameter:
    if isinstance(hint, type) and issubclass(hint, Arrays):
        return hint.record()
    array = _array(hint)
    return _scalar(function, hint) if array is None else array


def _array(hint: object) -> Array | None:
    if hint == Integers:
        return Array("int")
    return Array("float") if hint == Floats else None
