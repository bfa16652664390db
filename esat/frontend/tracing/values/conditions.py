"""Conditions of a call's numbers, as ``t > 0``: programs are found by how they are, not by the numbers.

A condition is written as an expression of Python's, since it is asked for in every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from esat.base.records import record
from esat.graph.variables import Constant, Variable

_OPERATORS = {
    "gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!=", "add": "+", "sub": "-", "mul": "*",
    "div": "/", "floor_div": "//", "mod": "%",
}  # fmt: skip
_LONGEST = 2_000
"""Characters of a condition; values of longer ones are asked for."""


@record(frozen=True, eq=False)
class NumberCondition:
    """A condition of numbers among the leaves of the arguments; those of equal texts are one.

    Attributes
    ----------
    text
        An expression of ``leaves``.
    """

    text: str
    _holds: Callable[[Sequence[Any]], Any]

    def outcome(self, leaves: Sequence[Any]) -> bool | None:
        """How it is in a call; None where Python raises an error instead."""
        try:
            return bool(self._holds(leaves))
        except ArithmeticError:
            return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberCondition) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def condition_of(variable: Variable, places: Mapping[Variable, int]) -> NumberCondition | None:
    """The condition that a scalar is, or None where Python has no operators for it.

    Parameters
    ----------
    variable
        A scalar that depends on numbers only.
    places
        Those numbers -> their places among the leaves.
    """
    text = _text(variable, places)
    if text is None or len(text) > _LONGEST:
        return None
    holds: Callable[[Sequence[Any]], Any] = eval(f"lambda leaves: {text}")
    return NumberCondition(text, holds)


def _text(variable: Variable, places: Mapping[Variable, int]) -> str | None:
    if isinstance(variable, Constant) and variable.data.size == 1:
        value = variable.data.item()
        is_named = isinstance(value, float) and not math.isfinite(value)  # inf and nan are no names
        return f"float('{value!r}')" if is_named else f"({value!r})"
    if variable in places:
        return f"leaves[{places[variable]}]"
    node = variable.owner
    if node is None or variable.tensor_type.kind not in "bif":
        return None
    parts = [_text(one, places) for one in node.inputs]
    if None in parts:
        return None
    name = getattr(node.op, "name", "")
    if name in _OPERATORS and len(parts) == 2:
        return f"({parts[0]} {_OPERATORS[name]} {parts[1]})"
    if name == "neg":
        return f"(-{parts[0]})"
    if name == "abs":
        return f"abs({parts[0]})"
    if name == "cast" and variable.tensor_type.dtype == "float64":
        return f"float({parts[0]})"
    return None
