"""What all parts of the driver's source are written with: lines, names and the objects behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from esat.graph import Constant, TensorType, Variable
from esat.phases.fusing.group import Group
from esat.runtime.entry.signatures import Fact
from esat.runtime.printed.python_names import Identifiers

_WORDS = (
    *("arguments", "buffers", "call", "flags", "frames", "key", "out", "results", "start", "stop", "_"),
    *("run", "type", "way", "ValueError", "IndexError"),
)
"""Names the driver's text uses itself."""


class Writer:
    """Lines of source, and the namespace they run in.

    Attributes
    ----------
    names
        Names of variables.
    namespace
        Name -> object, for what the source refers to.
    lines
        The body of the function, without indentation of its own.
    marks
        (number of lines before it, group) for each step: which lines belong to which step.
    """

    def __init__(self, inputs: Iterable[Variable]) -> None:
        self.names = Identifiers(_WORDS)
        self.namespace: dict[str, Any] = {}
        self.lines: list[str] = []
        self.marks: list[tuple[int, Group]] = []
        self._bound: dict[int, str] = {}
        self._facts: dict[Fact, str] = {}
        self._indent = ""
        for variable in inputs:
            self.names[variable]  # inputs are named first: they keep the user's names

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent lines under a head."""
        self.line(head)
        outside = self._indent
        self._indent += "    "
        try:
            yield
        finally:
            self._indent = outside

    def bind(self, stem: str, value: Any) -> str:
        """A global name for an object; the same one each time."""
        known = self._bound.get(id(value))
        if known is None:
            known = self._bound[id(value)] = self.names.distinct(stem)
            self.namespace[known] = value
        return known

    def dtype(self, variable: Variable) -> str:
        """The name of a variable's dtype object."""
        return self.bind(variable.tensor_type.dtype, variable.tensor_type.numpy_dtype)

    def operand(self, variable: Variable) -> str:
        """The name of a variable where it is read. Constants are bound as C-contiguous arrays."""
        name = self.names[variable]
        if isinstance(variable, Constant) and name not in self.namespace:
            data = variable.data
            self.namespace[name] = np.ascontiguousarray(data) if is_tensor(variable) and data.ndim else data
        return name

    def fact(self, fact: Fact) -> str:
        """The name of an entry of a record."""
        kind, variable = fact
        if kind == "value":
            return self.names[variable]
        known = self._facts.get(fact)
        if known is None:
            known = self._facts[fact] = self.names.distinct(f"{kind}_{self.names[variable]}")
        return known


def tuple_text(items: Sequence[str]) -> str:
    """A tuple display: ``()``, ``(a,)``, ``(a, b)``."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def targets_text(items: Sequence[str]) -> str:
    """The left side of an assignment that unpacks exactly these."""
    return tuple_text(items) if len(items) == 1 else ", ".join(items)


def is_tensor(variable: Variable) -> bool:
    """Whether a variable holds arrays."""
    return isinstance(variable.type, TensorType)
