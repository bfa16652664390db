"""Code written for the structure of arguments or of a result: it takes the one apart, and builds the other.

To take arguments apart in general is most of what a call costs. What a program was made for is known, so the
text of a guard asks whether arguments are that, and lists their leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from types import FunctionType, MappingProxyType, MemberDescriptorType
from typing import Any

import numpy as np

from esat.frontend.tracing.trees import Exact, Structure
from esat.frontend.tracing.values.conditions import NumberCondition
from esat.frontend.tracing.values.layouts import layout_key

Guard = Callable[[tuple[Any, ...]], list[Any] | None]

_CONTAINERS = {"tuple": tuple, "list": list, "dict": dict}


def guard_for(
    structure: Structure,
    known: Mapping[int, Any] = MappingProxyType({}),
    conditions: Sequence[tuple[NumberCondition, bool | None]] = (),
) -> Guard | None:
    """What gives the leaves of arguments, given by their places, that have a structure, and None of others.

    Parameters
    ----------
    structure
        Of a tuple of arguments, in a tuple with that of keywords.
    known
        Positions of leaves that are part of the program -> a number's value, or what ``layout_key`` says of
        an array's memory order.
    conditions
        Of numbers among the leaves, and how they were.

    Returns
    -------
    None where there are keywords, or something in the structure that takes more than a look: objects.
    """
    arguments, keywords = structure[2]
    text = _Text(known)
    if keywords[2] or not text.asked("arguments", arguments) or any(one is None for _, one in conditions):
        return None
    lines = [*text.lines, f"leaves = [{', '.join(text.leaves)}]"]
    if conditions:
        differ = " or ".join(f"{'not ' * bool(holds)}{one.text}" for one, holds in conditions)
        lines += ["try:", f"    if {differ}: return None", "except ArithmeticError: return None"]
    lines += ["return leaves"]
    body = "".join(f"    {line}\n" for line in lines)
    exec(compile(f"def guard(arguments):\n{body}", "<guard>", "exec"), text.names)
    guard: Guard = text.names["guard"]
    return guard


def is_array(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an array, of NumPy's or on a device."""
    return isinstance(leaf, np.ndarray) or hasattr(leaf, "__cuda_array_interface__")


def known_of(leaves: Sequence[Any], known: Collection[int]) -> dict[int, Any]:
    """What programs know of leaves: values of numbers, and memory orders of arrays."""
    return {
        place: layout_key(leaves[place]) if is_array(leaves[place]) else leaves[place]
        for place in sorted(known)
    }


class _Text:
    """The lines of a guard, the names in them, and which of these are leaves."""

    def __init__(self, known: Mapping[int, Any]) -> None:
        self.known = known
        self.names: dict[str, Any] = {
            "ndarray": np.ndarray, "layout_key": layout_key, "exact": Exact, "copysign": math.copysign
        }  # fmt: skip
        self.lines: list[str] = []
        self.leaves: list[str] = []

    def asked(self, value: str, structure: Structure) -> bool:
        """Add the questions for a value; whether there are such."""
        tag = structure[0]
        if tag == "array":
            dtype, shape = self._name(structure[1]), self._name(structure[2])
            self._unless(
                f"type({value}) is ndarray and {value}.dtype is {dtype} and {value}.shape == {shape}"
            )
            if len(self.leaves) in self.known:
                self._unless(f"layout_key({value}) == {self._name(self.known[len(self.leaves)])}")
            self.leaves.append(value)
            return True
        if tag == "number":
            self._unless(f"type({value}) is {structure[1].__name__}")
            return self._asked_number(value)
        if tag == "scalar":
            self._unless(f"type({value}) is {self._name(np.dtype(structure[1]).type)}")
            return self._asked_number(value)
        if tag == "static":
            return self._asked_part(value, structure[1], structure[2])
        if tag == "object":
            return self._asked_object(value, structure)
        keys = _keys(structure)
        if keys is None:
            return False
        self._unless(f"type({value}) is {tag} and len({value}) == {len(keys)}")
        if tag == "dict":
            self._unless(f"tuple({value}) == {self._name(tuple(keys))}")
            if not all(type(key) is str for key in keys):  # 1 == True
                self._unless(f"tuple(map(type, {value})) == {self._name(tuple(map(type, keys)))}")
        for key, part in zip(keys, structure[-1], strict=True):
            inner = f"value_{len(self.lines)}"
            self.lines.append(f"{inner} = {value}[{key!r}]")
            if not self.asked(inner, part):
                return False
        return True

    def _asked_object(self, value: str, structure: Structure) -> bool:
        """Add the questions for an object that has nothing but a dict of attributes."""
        _, kind, names, parts = structure
        members = (type(one) for base in kind.__mro__ for one in vars(base).values())
        if kind is slice or MemberDescriptorType in members:
            return False
        self._unless(f"type({value}) is {self._name(kind)}")
        attributes = f"value_{len(self.lines)}"
        self.lines.append(f"{attributes} = {value}.__dict__")
        self._unless(f"tuple({attributes}) == {self._name(names)}")
        for name, part in zip(names, parts, strict=True):
            inner = f"value_{len(self.lines)}"
            self.lines.append(f"{inner} = {attributes}[{name!r}]")
            if not self.asked(inner, part):
                return False
        return True

    def _asked_part(self, value: str, kind: type[Any], part: Any) -> bool:
        """Add the question whether a value is one that is part of the program."""
        if part is None or isinstance(part, bool | FunctionType | type | Enum):
            self._unless(f"{value} is {self._name(part)}")
        elif isinstance(part, int | str | Exact):
            given = f"exact({value})" if isinstance(part, Exact) else value
            self._unless(f"type({value}) is {self._name(kind)} and {given} == {self._name(part)}")
        else:
            return False
        return True

    def _asked_number(self, value: str) -> bool:
        """Add a number, and the question for its value where that is part of the program."""
        if len(self.leaves) in self.known:
            number = self.known[len(self.leaves)]
            is_whole = isinstance(number, (int, np.integer))
            is_real = is_whole or isinstance(number, (float, np.floating))
            if not is_real or np.isnan(number):
                return False
            self._unless(f"{value} == {self._name(number)}")
            if number == 0 and not is_whole:
                self._unless(f"copysign(1.0, {value}) == {np.copysign(1.0, number)}")
        self.leaves.append(value)
        return True

    def _unless(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def _name(self, value: Any) -> str:
        name = f"known_{len(self.names)}"
        self.names[name] = value
        return name


def _keys(structure: Structure) -> Sequence[Any] | None:
    """The keys of a tuple, list or dict; None for all else, and for keys other than strings and integers."""
    if _CONTAINERS.get(structure[0]) is not structure[1]:
        return None
    if structure[0] != "dict":
        return range(len(structure[2]))
    return structure[2] if all(type(key) in (str, int) for key in structure[2]) else None


def text_of(structure: Structure, leaves: Iterator[str]) -> str | None:
    """The expression that makes a value of a structure of its leaves; None where there is more in it than
    containers."""
    if structure[0] == "traced":
        return next(leaves)
    keys = _keys(structure)
    if keys is None:
        return None
    parts = [text_of(part, leaves) for part in structure[-1]]
    if None in parts:
        return None
    if structure[0] == "dict":
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(keys, parts, strict=True)) + "}"
    inner = "".join(f"{part}, " for part in parts)
    return f"[{inner}]" if structure[0] == "list" else f"({inner})"
