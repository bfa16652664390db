"""Arguments and results as trees: arrays and numbers in tuples, lists, dicts, named tuples and objects.

:func:`flatten` takes a value apart into its leaves and a *structure*, a hashable value that has everything
else: the kinds of containers, keys, dtypes and shapes of arrays, types of numbers, and whole values of what
is no number. Calls of equal structure run the same program.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from esat.errors import InputError
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.types import DTYPES
from esat.graph.variables import Variable

Structure: TypeAlias = tuple[Any, ...]

_NUMBERS = (float, int, complex)
_SIMPLE = (bool, str, bytes, type(None), type(Ellipsis), type, types.FunctionType, types.BuiltinFunctionType,
           types.ModuleType, enum.Enum, np.dtype, np.ufunc, range, frozenset)  # fmt: skip
_DTYPES = frozenset(map(np.dtype, DTYPES))
"""As objects: the name of a dtype is made anew each time, which took a quarter of a call. Those of other byte
orders are known by their names."""
_DEEPEST = 64
_PART = "[{!r}]"


Place: TypeAlias = str | tuple[Any, str, Any]
"""How messages call a value: a name; or what it is a part of, with how parts are written and which it is. A
name is put together when it is shown: it would take a third of a call."""


def shown(where: Place) -> str:
    """The name of a place."""
    return where if isinstance(where, str) else shown(where[0]) + where[1].format(where[2])


class Exact:
    """A value that is a part of programs, equal to others of its type and its bits alone: ``1``, ``1.0`` and
    ``True`` are told apart, ``0.0`` and ``-0.0``, also in tuples and slices; NaN is equal to itself.

    Attributes
    ----------
    value
        The value.
    """

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._key = _exact(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


def _exact(value: Any) -> Any:
    kind = type(value)
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if isinstance(value, (float, complex)):
        return kind, complex(value).real.hex(), complex(value).imag.hex()
    if isinstance(value, tuple):
        return kind, tuple(map(_exact, value))
    if isinstance(value, frozenset):
        return kind, frozenset(map(_exact, value))
    if isinstance(value, slice):  # which Python hashes from 3.12 on
        return kind, tuple(map(_exact, (value.start, value.stop, value.step)))
    return kind, value


def static(value: Any) -> Structure:
    """The structure of a value that is a part of programs as a whole.

    Raises
    ------
    TypeError
        Where it cannot be hashed.
    """
    is_loose = isinstance(value, (tuple, frozenset, float, complex, np.generic, slice))
    kept = Exact(value) if is_loose else value
    hash(kept)
    return ("static", type(value), kept)


def flatten(value: Any, leaves: list[Any], where: Place = "the arguments", depth: int = 0) -> Structure:
    """The structure of a value, whose leaves are appended to a list.

    Parameters
    ----------
    value
        Arrays and numbers in tuples, lists, dicts, dataclasses, and objects with attributes.
    leaves
        Gets arrays, NumPy's scalars, Python numbers and traced objects in order.
    where
        How messages call the value.

    Raises
    ------
    InputError
        For arrays of other dtypes than numbers, and what is neither an array nor can be a key.
    """
    kind = type(value)
    if kind is np.ndarray or isinstance(value, np.generic):
        if value.dtype not in _DTYPES and value.dtype.name not in DTYPES:
            raise InputError(f"{shown(where)}: arrays of {value.dtype} cannot take part in a program")
        leaves.append(value)
        return ("array", value.dtype, value.shape) if kind is np.ndarray else ("scalar", value.dtype)
    if kind is tuple or kind is dict or kind is list:
        return _container(value, leaves, where, depth + 1)
    if kind in _NUMBERS:
        leaves.append(value)
        return ("number", kind)
    if kind is TracedArray or kind is TracedNumber or isinstance(value, Variable):
        leaves.append(value)
        return ("traced",)
    described = getattr(value, "__cuda_array_interface__", None)
    if isinstance(described, dict):  # an array on a device, of whatever library
        leaves.append(value)
        return ("array", np.dtype(described["typestr"]), tuple(described["shape"]))
    if depth > _DEEPEST:
        raise InputError(f"{shown(where)}: it has more than {_DEEPEST} levels, or contains itself")
    if isinstance(value, (tuple, list, dict)):
        return _container(value, leaves, where, depth + 1)
    if isinstance(value, _SIMPLE):
        return static(value)
    return _object(value, leaves, where, depth + 1)


def _container(value: Any, leaves: list[Any], where: Place, depth: int) -> Structure:
    if depth > _DEEPEST + 1:
        raise InputError(f"{shown(where)}: it has more than {_DEEPEST} levels, or contains itself")
    if isinstance(value, dict):
        parts = tuple([flatten(part, leaves, (where, _PART, key), depth) for key, part in value.items()])
        keys = tuple(value)
        if {*map(type, keys)} <= {str}:
            return ("dict", type(value), keys, parts)
        return ("dict", type(value), keys, Exact(keys), parts)
    parts = tuple([flatten(part, leaves, (where, _PART, place), depth) for place, part in enumerate(value)])
    return ("list" if isinstance(value, list) else "tuple", type(value), parts)


def _object(value: Any, leaves: list[Any], where: Place, depth: int) -> Structure:
    if isinstance(value, np.ndarray):
        raise InputError(f"{shown(where)}: a {type(value).__name__} is not taken; pass a plain array")
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        reason = "its draws would be the same in every call; draw from an esat.random.RandomStream"
        raise InputError(f"{shown(where)}: a {type(value).__name__} is not taken: {reason}")
    if isinstance(value, Iterator):
        reason = "what goes through it once is not there in the next call; pass a list or an array"
        raise InputError(f"{shown(where)}: a {type(value).__name__} is not taken: {reason}")
    if isinstance(value, slice):
        attributes: dict[str, Any] | None = {"start": value.start, "stop": value.stop, "step": value.step}
    else:
        attributes = _attributes(value)
    if attributes is None:
        try:
            return static(value)
        except (TypeError, ValueError):
            reason = "is neither an array nor can it be hashed"
            raise InputError(f"{shown(where)}: a {type(value).__name__} {reason}") from None
    names = tuple(attributes)
    parts = tuple(flatten(part, leaves, (where, ".{}", name), depth) for name, part in attributes.items())
    return ("object", type(value), names, parts)


def _attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an object that has nothing else; None for others."""
    kind = type(value)
    if not _made_of_attributes(kind):  # type: ignore[arg-type]
        return None
    places = {
        name: part.__get__(value)
        for base in reversed(kind.__mro__)
        for name, part in vars(base).items()
        if isinstance(part, types.MemberDescriptorType) and hasattr(value, name)
    }
    found = getattr(value, "__dict__", None)
    if not isinstance(found, dict):
        return places or None
    return {**places, **found}


@functools.lru_cache(512)
def _made_of_attributes(kind: type) -> bool:
    """Whether instances have nothing but attributes: functions of NumPy's have more, and so have subclasses
    of numbers and exceptions, which only C code can make."""
    try:
        object.__new__(kind)
    except TypeError:
        return False
    return True


def unflatten(structure: Structure, leaves: Iterator[Any], made: Callable[[Any], None] | None = None) -> Any:
    """The value of a structure with other leaves.

    Parameters
    ----------
    structure, leaves
        What :func:`flatten` gave, or other leaves in its order.
    made
        Told of each object that is made anew, with attributes set.
    """
    tag = structure[0]
    if tag in ("array", "scalar", "number", "traced"):
        return next(leaves)
    if tag == "static":
        value = structure[2]
        return value.value if type(value) is Exact else value
    kind, parts = structure[1], structure[-1]
    values = [unflatten(part, leaves, made) for part in parts]
    if tag == "dict":
        return _dict_of(kind, dict(zip(structure[2], values, strict=True)))
    if tag in ("list", "tuple"):
        return kind(*values) if hasattr(kind, "_fields") else kind(values)
    if kind is slice:
        return slice(*values)
    instance = object.__new__(kind)
    for name, value in zip(structure[2], values, strict=True):
        if isinstance(getattr(kind, name, None), types.MemberDescriptorType):
            object.__setattr__(instance, name, value)
        else:  # past properties of the same name
            instance.__dict__[name] = value
    if made is not None:
        made(instance)
    return instance


def static_values(structure: Structure) -> Iterator[Any]:
    """The values that are in a structure as wholes."""
    tag = structure[0]
    if tag == "static":
        yield unflatten(structure, iter(()))
    elif tag not in ("array", "scalar", "number", "traced"):
        for part in structure[-1]:
            yield from static_values(part)


def _dict_of(kind: type, items: dict[Any, Any]) -> Any:
    if kind is dict:
        return items
    made: Any = dict.__new__(kind)
    made.update(items)
    return made
