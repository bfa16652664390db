"""Checks of arguments where they are read: errors that name the call, the argument, and what it should be."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from esat.errors import CallError, describe
from esat.graph.calls.callers import user_line

Kind = TypeVar("Kind")


def instance_of(call: str, argument: str, value: object, kind: type[Kind]) -> Kind:
    """The value of an argument that has to be of a class.

    Parameters
    ----------
    call
        What the user called.
    argument
        The parameter's name.
    value
        What was given for it.
    kind
        The class.

    Raises
    ------
    CallError
        When it is of another.
    """
    if isinstance(value, kind):
        return value
    raise _wrong(call, argument, value, "text" if kind is str else f"a {kind.__name__}")


def mapping_of(call: str, argument: str, value: Any) -> Mapping[Any, Any]:
    """The value of an argument that is a mapping; nothing is an empty one.

    Raises
    ------
    CallError
        When it is none.
    """
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise _wrong(call, argument, value, "a mapping")


def elements_of(call: str, argument: str, values: Any) -> tuple[Any, ...]:
    """The values of an argument that has some, and is no text.

    Raises
    ------
    CallError
        When it has none.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _wrong(call, argument, values, "a sequence")
    return tuple(values)


def sequence_of(call: str, argument: str, values: Any, kind: type[Kind]) -> tuple[Kind, ...]:
    """The same, where all have to be of a class."""
    found = elements_of(call, argument, values)
    for value in found:
        if not isinstance(value, kind):
            wanted = "texts" if kind is str else f"values of class {kind.__name__}"
            raise _wrong(call, argument, value, f"a sequence of {wanted}, with no such element")
    return found


def _wrong(call: str, argument: str, value: object, wanted: str) -> CallError:
    return CallError(
        describe(call, [f"{argument}={type(value).__name__}"], f"{argument} is {wanted}", user_line())
    )


def flag_of(call: str, argument: str, value: object) -> bool:
    """The value of an argument that is True or False, or a number that stands for one.

    Raises
    ------
    CallError
        When it is something else.
    """
    if isinstance(value, int | np.bool_ | np.integer):
        return bool(value)
    raise _wrong(call, argument, value, "True or False")


def stream_of(call: str, file: Any) -> Any:
    """What is printed to: standard output where no file is given.

    Raises
    ------
    CallError
        When it is nothing that can be written to.
    """
    if file is not None and not callable(getattr(file, "write", None)):
        raise _wrong(call, "file", file, "open for writing")
    return sys.stdout if file is None else file


def index_of(call: str, argument: str, value: Any) -> int:
    """The value of an argument that is an integer, of Python's or NumPy's.

    Raises
    ------
    CallError
        When it is none.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise _wrong(call, argument, value, "an integer") from None
