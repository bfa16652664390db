"""Python's ``type`` as traced functions have it: ``type(x) is np.ndarray`` for what stands for one."""

from __future__ import annotations

from typing import Any

import numpy as np

from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.numbers import TracedNumber


def type_of(value: Any) -> Any:
    """The type of what a value stands for."""
    if type(value) is TracedArray:
        return value.dtype.type if value.is_scalar else np.ndarray
    if type(value) is TracedNumber:
        return value.kind
    return BuiltinType if type(value) is type else type(value)


class _OfType(type):
    """What makes ``BuiltinType`` answer as ``type`` does."""

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        return type_of(*arguments) if len(arguments) == 1 and not named else type(*arguments, **named)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, type)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(subclass, type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)

    def __getattribute__(cls, name: str) -> Any:
        return getattr(type, name)

    def __getitem__(cls, parameters: Any) -> Any:
        return type[parameters]

    def __or__(cls, other: Any) -> Any:
        return type | other

    def __repr__(cls) -> str:
        return repr(type)


class BuiltinType(metaclass=_OfType):
    """Stands for ``type``: called with one argument, it is :func:`type_of`."""
