"""What objects of a user's do by operators, indices, properties and loops, with exchanged functions."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from esat.frontend.tracing.code.builtin_functions import element_of
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import holds_unknown

_COMPARED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_PLAIN: dict[str, Callable[..., Any]] = {
    name: getattr(operator, f"{name}_" if name in ("and", "or") else name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift",
        "rshift", "neg", "pos", "invert", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow",
        "imatmul", "iand", "ior", "ixor", "ilshift", "irshift", *_COMPARED,
    )
}  # fmt: skip


class UserObjects:
    """Finds the functions of a user's behind what code does with objects.

    Parameters
    ----------
    exchanged
        A function of the user's -> what is called in its place; None for functions of others.
    """

    def __init__(self, exchanged: Callable[[Any], Any]) -> None:
        self._exchanged = exchanged
        self._methods: dict[tuple[type, str], Callable[..., Any] | None] = {}
        self._properties: dict[tuple[type, str], Callable[..., Any] | None] = {}

    def method(self, kind: type, name: str) -> Callable[..., Any] | None:
        """The method of a class that is a user's, or None."""
        key = kind, name
        if key not in self._methods:
            self._methods[key] = self._exchanged(_found(kind, name))
        return self._methods[key]

    def read(self, owner: Any, name: str) -> Any:
        """An attribute of a value, of which a user's property may be what gives it."""
        key = type(owner), name
        if key not in self._properties:
            found = _found(*key)
            getter = found.fget if type(found) is property else None
            if isinstance(found, functools.cached_property):  # what is traced is not kept
                getter = found.func
            self._properties[key] = self._exchanged(getter)
        getter = self._properties[key]
        return getattr(owner, name) if getter is None else getter(owner)

    def item(self, owner: Any, index: Any) -> Any:
        """An element of a value, which may be one of a list whose place only a call knows."""
        kind = type(owner)
        if kind is list or kind is tuple:
            return element_of(owner, index)
        if kind is np.ndarray and holds_unknown(index):
            return TracedArray(owner)[index]
        own = self.method(kind, "__getitem__")
        return owner[index] if own is None else own(owner, index)

    def iterated(self, value: Any) -> Any:
        """What a loop goes through."""
        own = self.method(type(value), "__iter__")
        return value if own is None else own(value)

    def operation(self, name: str, *operands: Any) -> Any:
        """What an operator gives."""
        left = operands[0]
        own = self.method(type(left), f"__{name}__")
        if len(operands) == 1:
            return _PLAIN[name](left) if own is None else own(left)
        right = operands[1]
        reflected = _COMPARED.get(name) or f"r{name.removeprefix('i') if name in _IN_PLACE else name}"
        other = self.method(type(right), f"__{reflected}__")
        if own is None and name in _IN_PLACE:
            own = self.method(type(left), f"__{name[1:]}__")
        if own is None and other is None:
            return _PLAIN[name](left, right)
        is_narrower = type(right) is not type(left) and issubclass(type(right), type(left))
        asked = (
            [(other, right, left), (own, left, right)]
            if is_narrower
            else [(own, left, right), (other, right, left)]
        )
        for function, whose, given in asked:
            result = NotImplemented if function is None else function(whose, given)
            if result is not NotImplemented:
                return result
        return _PLAIN[name](left, right)


_IN_PLACE = frozenset(name for name in _PLAIN if name.startswith("i") and name != "invert")


def _found(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
