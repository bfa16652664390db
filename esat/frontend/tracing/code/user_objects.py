"""What objects of a user's do by operators, indices, properties and loops, with exchanged functions."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.frontend.tracing.code.builtin_functions import element_of
from esat.frontend.tracing.texts import require_known_text
from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import holds_traced, holds_unknown
from esat.frontend.tracing.values.numbers import TracedNumber

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

    def store(self, value: Any, owner: Any, name: str) -> None:
        """Assign to an attribute, which a user's property may take."""
        found = _found(type(owner), name)
        setter = self._exchanged(found.fset) if type(found) is property else None
        if setter is None:
            setattr(owner, name, value)
        else:
            setter(owner, value)

    def item(self, owner: Any, index: Any) -> Any:
        """An element of a value, which may be one of a list whose place only a call knows."""
        kind = type(owner)
        require_known_text(index)
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
        if name in ("mul", "imul") and (_repeats(*operands) or _repeats(*operands[::-1])):
            sequence, count = operands if _repeats(*operands) else operands[::-1]
            return _PLAIN[name](sequence, operator.index(count))
        if type(left) is str:
            return _operation_on_text(name, *operands)
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


_CONVERSION = re.compile(r"%([-+ 0#]*)(\d*)(\.\d+)?([a-zA-Z%])")


def _repeats(sequence: Any, count: Any) -> bool:
    """Whether a product is a list, tuple or text several times, as with Python's and NumPy's integers."""
    if type(sequence) not in (list, tuple, str, bytes):
        return False
    if type(count) is TracedNumber:
        return count.kind in (int, bool)
    return type(count) is TracedArray and count.is_scalar and count.dtype.kind in "iu"


def _operation_on_text(name: str, left: str, *rest: Any) -> Any:
    """An operator whose first operand is a text, in which values may be written that only a call can know."""
    if name in _COMPARED:
        for one in (left, *rest):
            require_known_text(one)
    if name == "mod" and holds_traced(rest):
        values = rest[0] if type(rest[0]) is tuple else rest
        if len(values) == sum(one[-1] != "%" for one in _CONVERSION.findall(left)) and "%(" not in left:
            return _formatted(left, values)
    return _PLAIN[name](left, *rest)


def _formatted(text: str, values: Sequence[Any]) -> str:
    """``text % values``, with values that are traced."""
    given = iter(values)

    def one(match: re.Match[str]) -> str:
        flags, width, digits, kind = match.groups()
        if kind == "%":
            return "%"
        value = next(given)
        if not holds_traced(value):
            return match[0] % (value,)
        if kind in "diu":
            is_float = (value.kind if type(value) is TracedNumber else value.dtype.kind) in (float, "f")
            value, digits = (np.trunc(value) + 0.0 if is_float else value), ".0" if is_float else ""
            kind = "f" if is_float else "d"
        align = "<" if "-" in flags else ">"
        sign = next((flag for flag in "+ " if flag in flags), "")
        is_filled = "0" in flags and align == ">" and kind not in "rsa"
        align = "" if is_filled or not width else align
        kind = "" if kind in "rsa" else kind
        return format(value, f"{align}{sign}{'0' * is_filled}{width}{digits}{kind}")

    return _CONVERSION.sub(one, text)


def _found(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
