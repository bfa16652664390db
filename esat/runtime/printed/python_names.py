"""Readable, distinct Python names for the variables of a program."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from esat.base.quoting import identifier
from esat.graph import Constant, SharedVariable, Variable


class Identifiers:
    """Hands out one identifier a variable; no two are equal, none is a word of Python or reserved."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = {*reserved, *keyword.kwlist}
        self._names: dict[Variable, str] = {}
        self._next: dict[str, int] = {}

    def __getitem__(self, variable: Variable) -> str:
        known = self._names.get(variable)
        if known is None:
            known = self._names[variable] = self.distinct(_stem(variable))
        return known

    def distinct(self, stem: str) -> str:
        """``stem`` itself if it is free, else with the first number behind it that is."""
        name = stem
        number = self._next.get(stem, 0)
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._next[stem] = number
        self._taken.add(name)
        return name


def _stem(variable: Variable) -> str:
    if variable.name is not None:
        stem = identifier(variable.name)
    elif variable.owner is not None:
        stem = identifier(variable.owner.op.name)
    elif isinstance(variable, Constant):
        stem = "constant"
    else:
        stem = "shared" if isinstance(variable, SharedVariable) else "input"
    return stem or "_"
