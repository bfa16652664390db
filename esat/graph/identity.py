"""Variables in sequences, told apart by identity: their ``==`` builds a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from esat.graph.variables import Variable


def same_variables(one: Sequence[Variable], other: Sequence[Variable]) -> bool:
    """Whether two sequences hold the same Variables in the same order."""
    return len(one) == len(other) and all(left is right for left, right in zip(one, other, strict=True))


def place_of(wanted: Variable, variables: Iterable[Variable]) -> int | None:
    """The first place of a Variable among others, or None."""
    return next((place for place, variable in enumerate(variables) if variable is wanted), None)


def is_among(wanted: Variable, variables: Iterable[Variable]) -> bool:
    """Whether a Variable is one of some."""
    return any(variable is wanted for variable in variables)
