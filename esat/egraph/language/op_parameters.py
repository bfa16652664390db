"""Parameters of ops, as rules write them behind the operands.

Numbers and strings stand for themselves, variables for any parameter. ``(none)`` is Python's None,
``(tuple a b)`` a tuple. An index is a tuple with an entry an axis: a number, ``(slice start stop)`` or
``(slice start stop step)``, ``(slice)`` for a whole axis, ``(operand)`` and ``(array)`` for a number and an
index array that the next operand holds, and ``(new-axis)``. Anything else computes with numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from esat.ops.index.entries import ARRAY, NEW_AXIS, OPERAND, Slice
from esat.rules.language.reader import Sexp, head_of, is_string, is_variable, string_value

Parameter = object
"""What an op was made with: a number, or what else stands in its record."""

CONSTANTS: Mapping[str, Parameter] = {
    "none": None,
    "operand": OPERAND,
    "array": ARRAY,
    "new-axis": NEW_AXIS,
}
"""What forms without parts stand for."""
TRUTH: Mapping[str, bool] = {"true": True, "false": False}
PARTS: Mapping[str, tuple[int, ...] | None] = {
    "tuple": None,
    "slice": (0, 2, 3),
    **dict.fromkeys(CONSTANTS, (0,)),
}
"""How many parts forms may have; None: any number."""
_WHOLE: tuple[Sexp, ...] = ("0", ("none",), "1")

Bindings = dict[str, Parameter]
Number = Callable[[Sexp, Mapping[str, Parameter]], Parameter]
"""The value of what computes with numbers; raises Unknown where it has none."""


def matches_parameter(pattern: Sexp, value: Parameter, bindings: Bindings, number: Number) -> bool:
    """Whether a parameter is what a pattern says; binds variables that stand for it, or for parts of it."""
    if isinstance(pattern, str) and is_variable(pattern):
        return pattern == "_" or bindings.setdefault(pattern, value) == value
    name = head_of(pattern)
    if name == "slice":
        wanted = (*pattern[1:], *_WHOLE[len(pattern) - 1 :])
        return isinstance(value, Slice) and _match_all(wanted, _bounds(value), bindings, number)
    if name == "tuple":
        return isinstance(value, tuple) and _match_all(pattern[1:], value, bindings, number)
    return bool(parameter_of(pattern, bindings, number) == value)


def parameter_of(term: Sexp, bindings: Mapping[str, Parameter], number: Number) -> Parameter:
    """The parameter that a term stands for; raises Unknown where it computes with what is no number."""
    if isinstance(term, str):
        if term in bindings or term in TRUTH:
            return bindings[term] if term in bindings else TRUTH[term]
        return string_value(term) if is_string(term) else number(term, bindings)
    name = head_of(term)
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name not in PARTS:
        return number(term, bindings)
    parts = [parameter_of(part, bindings, number) for part in term[1:]]
    if name == "tuple":
        return tuple(parts)
    made = Slice(*parts)  # type: ignore[arg-type]  # what is no bound, the op refuses
    return Slice() if made.is_full else made


def _match_all(
    patterns: Sequence[Sexp], values: Sequence[Parameter], bindings: Bindings, number: Number
) -> bool:
    return len(patterns) == len(values) and all(
        matches_parameter(pattern, value, bindings, number)
        for pattern, value in zip(patterns, values, strict=True)
    )


def _bounds(value: Slice) -> tuple[Parameter, ...]:
    """Start, stop and step; a step that is left out is one, and from there a start is zero."""
    start, stop, step = value.parts()
    step = 1 if step is None else step
    return 0 if start is None and isinstance(step, int) and step > 0 else start, stop, step
