"""Frozen dataclasses whose methods are written when they are first called.

``dataclasses.dataclass`` writes and compiles up to six functions for each class as it is defined. For the
two hundred and fifty classes of this package that took 200 of the 900 ms from ``import esat`` to the first
result of a process that finds all kernels on disk (Python 3.11, a shared server), which calls few of these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["record"]

_Text = tuple[str, list[str], dict[str, Any]]
"""Of a function: its parameters, the lines of its body, and what these name."""

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(
        *,
        frozen: bool,
        init: bool = True,
        repr: bool = True,  # as dataclasses call it
        eq: bool = True,
        slots: bool = False,
        weakref_slot: bool = False,
    ) -> Callable[[type], type]:
        """What ``dataclass`` with the same arguments makes of a class; ``frozen`` must be True."""
        if not frozen:
            raise TypeError("a record is frozen: classes that change are dataclasses")
        written = {"__init__": init, "__repr__": repr, "__eq__": eq, "__hash__": eq}

        def make(plain: type) -> type:
            own = [name for name, is_written in written.items() if is_written and not _has(plain, name)]
            if not plain.__doc__:
                plain.__doc__ = plain.__name__  # or dataclasses would write one, from the wrong signature
            # Where it inherits from a frozen one it must be frozen at once, which writes two methods.
            derived = any(map(dataclasses.is_dataclass, plain.__mro__[1:]))
            options = {"slots": slots, "weakref_slot": weakref_slot, "frozen": derived}
            made = dataclass(init=False, repr=False, eq=False, **options)(plain)
            made.__dataclass_params__.frozen = True
            made.__setattr__, made.__delattr__ = _refuse_assignment, _refuse_deletion
            if slots:
                made.__getstate__, made.__setstate__ = _state, _set_state
            for name in own:
                setattr(made, name, _Unwritten(made, name))
            return made

        return make


def _has(plain: type, name: str) -> bool:
    """Whether a class has a method of its own; one that has only ``__eq__`` has None for ``__hash__``."""
    return vars(plain).get(name) is not None


def _refuse_assignment(self: object, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deletion(self: object, name: str) -> None:
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(self: Any, name: str) -> bool:
    """Whether an attribute is one of a record's; classes that inherit from records may have others."""
    return "__dataclass_fields__" in vars(type(self)) or name in self.__dataclass_fields__


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


class _Unwritten:
    """Stands for a method until it is asked for: called, or inspected."""

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        return _written(self.owner, self.name).__get__(instance, owner)


def _written(owner: type, name: str) -> Any:
    """A method of a class, from now on in its place there."""
    parameters, body, named = _TEXTS[name](owner)
    source = "".join([f"def {name}({parameters}):\n", *(f"    {line}\n" for line in body)])
    exec(source, named)
    method = named[name]
    method.__qualname__ = f"{owner.__qualname__}.{name}"
    method.__module__ = owner.__module__
    if name == "__init__":
        types = {one.name: one.type for one in _fields(owner) if one.init}
        method.__annotations__ = {**types, "return": None}
    if name == "__repr__":
        method = recursive_repr()(method)
    setattr(owner, name, method)
    return method


class _Made:
    """What stands for an argument that is made anew where it is not given."""

    def __repr__(self) -> str:
        return "<factory>"  # as in the signatures of dataclasses


_MADE = _Made()


def _fields(owner: Any) -> tuple[Field[Any], ...]:
    return dataclasses.fields(owner)


def _init(owner: type) -> _Text:
    parameters, body = ["self"], []
    named: dict[str, Any] = {"_set": object.__setattr__, "_MADE": _MADE}
    has_slots = "__slots__" in vars(owner)
    for one in _fields(owner):
        value = None
        if one.default_factory is not MISSING:
            named[f"_make_{one.name}"] = one.default_factory
            value = f"_make_{one.name}()"
            if one.init:
                parameters.append(f"{one.name}=_MADE")
                value = f"{value} if {one.name} is _MADE else {one.name}"
        elif one.default is not MISSING:
            named[f"_default_{one.name}"] = one.default
            if one.init:
                parameters.append(f"{one.name}=_default_{one.name}")
                value = one.name
            elif has_slots:
                value = f"_default_{one.name}"
        elif one.init:
            parameters.append(one.name)
            value = one.name
        if value is not None:
            body.append(f"_set(self, {one.name!r}, {value})")
    if hasattr(owner, "__post_init__"):
        body.append("self.__post_init__()")
    return ", ".join(parameters), body or ["pass"], named


def _repr(owner: type) -> _Text:
    shown = ", ".join(f"{one.name}={{self.{one.name}!r}}" for one in _fields(owner) if one.repr)
    return "self", [f'return self.__class__.__qualname__ + f"({shown})"'], {}


def _compared(owner: type, of: str) -> str:
    """The tuple of the fields that make records equal."""
    return "(" + "".join(f"{of}.{one.name}, " for one in _fields(owner) if one.compare) + ")"


def _eq(owner: type) -> _Text:
    same = f"return {_compared(owner, 'self')} == {_compared(owner, 'other')}"
    return (
        "self, other",
        ["if other.__class__ is self.__class__:", f"    {same}", "return NotImplemented"],
        {},
    )


def _hash(owner: type) -> _Text:
    hashed = [one for one in _fields(owner) if (one.compare if one.hash is None else one.hash)]
    return "self", ["return hash((" + "".join(f"self.{one.name}, " for one in hashed) + "))"], {}


_TEXTS: dict[str, Callable[[type], _Text]] = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
}
