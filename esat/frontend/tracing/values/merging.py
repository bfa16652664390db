"""Values of which a program takes one or the other, by a condition that is known when it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esat.frontend.tracing.values.arrays import TracedArray
from esat.frontend.tracing.values.convert import as_symbol, holds_unknown
from esat.frontend.tracing.values.numbers import TracedNumber
from esat.graph.algorithms.traversal import toposort
from esat.graph.op import Family
from esat.graph.registry import op_named
from esat.graph.tracing import Traced
from esat.graph.variables import Variable
from esat.ops.cast import cast
from esat.ops.control import ifelse

MOST_NODES = 32
"""Elementwise steps on scalars that may be computed in vain: a choice between ways costs more."""


class NoChoiceError(Exception):
    """Two values of which no program can take one or the other: their dtypes or shapes differ."""


class Merge:
    """Pairs of values, with what each chosen one is given to.

    Parameters
    ----------
    condition
        A scalar of dtype bool.
    is_cheap
        Whether values may be computed in vain; others are computed where they are taken only.
    apart
        Whether that is asked of each pair by itself.
    """

    def __init__(
        self, condition: Variable, is_cheap: Callable[[Sequence[Variable]], bool], apart: bool = False
    ) -> None:
        self.condition, self._is_cheap, self._apart = condition, is_cheap, apart
        self._pairs: list[tuple[Variable, Variable]] = []
        self._places: list[Callable[[Variable], None]] = []

    def add(self, then: Any, otherwise: Any, put: Callable[[Any], None]) -> None:
        """Add a pair of arrays or numbers, traced or known. Raises NoChoiceError."""
        pair = then, otherwise
        if not any(map(_is_unknown, pair)) and _is_equal(*pair):
            put(then)
            return
        one, other, made = paired(then, otherwise)
        self.add_variables(one, other, lambda chosen: put(made(chosen)))

    def add_variables(self, then: Variable, otherwise: Variable, put: Callable[[Variable], None]) -> None:
        """Add a pair of one type."""
        self._pairs.append((then, otherwise))
        self._places.append(put)

    def build(self) -> None:
        """Give each place what is chosen."""
        pairs = self._pairs
        if self._apart:
            cheap = [self._is_cheap(pair) for pair in pairs]
        else:
            cheap = [self._is_cheap([one for pair in pairs for one in pair])] * len(pairs)
        dear = [pair for pair, one in zip(pairs, cheap, strict=True) if not one]
        chosen = iter(ifelse(self.condition, *map(list, zip(*dear, strict=True))) if dear else ())
        for put, pair, one in zip(self._places, pairs, cheap, strict=True):
            put(op_named("switch")(self.condition, *pair) if one else next(chosen))


def paired(then: Any, otherwise: Any) -> tuple[Variable, Variable, Callable[[Variable], Any]]:
    """Two values as Variables of one dtype, and what makes of one of that type what stands for it.

    Raises
    ------
    NoChoiceError
        Where their dtypes, ranks or sizes differ.
    """
    pair = then, otherwise
    sides = [as_symbol(one) for one in pair]
    numbers = [type(one) in (int, float, complex, bool) for one in pair]
    if numbers[0] != numbers[1]:  # a number of Python's takes the type of what it meets
        number = numbers.index(True)
        wanted, plain = sides[1 - number].tensor_type, pair[number]
        if wanted.ndim == 0 and np.result_type(wanted.dtype, plain) == wanted.dtype:
            sides[number] = cast(sides[number], wanted.dtype)
    if {one.tensor_type.dtype for one in sides} == {"int64", "float64"} and not any(
        one.ndim for one in sides
    ):
        _refuse_rounded(pair)
        sides = [cast(one, "float64") for one in sides]
    if sides[0].tensor_type.dtype != sides[1].tensor_type.dtype or not _fit(*sides):
        raise NoChoiceError(differing(*pair))
    python = [_python_kind(one) for one in pair]
    kind = float if set(python) == {int, float} else python[0] if python[0] is python[1] else None
    is_scalar = sides[0].tensor_type.ndim == 0 and any(
        _python_kind(one) is not None
        or (type(one) is TracedArray and one.is_scalar)
        or isinstance(one, np.generic)
        for one in pair
    )

    def made(variable: Variable) -> Any:
        if kind is not None:
            return TracedNumber(variable, kind)
        array = TracedArray(variable, is_scalar=is_scalar)
        array.version = max((one.version for one in pair if type(one) is TracedArray), default=0)
        return array

    return sides[0], sides[1], made


def _refuse_rounded(values: Sequence[Any]) -> None:
    """Raise NoChoiceError for an integer that is no number of float64."""
    for one in values:
        if issubclass(type(one), (int, np.integer)) and int(float(one)) != one:
            raise NoChoiceError(f"is {one} or floating, and no float64 is {one}")


def _is_unknown(value: Any) -> bool:
    return isinstance(value, Traced) and holds_unknown(value)


def _is_equal(one: Any, other: Any) -> bool:
    values = [np.asarray(value.value if type(value) is TracedArray else value) for value in (one, other)]
    return (
        type(one) is type(other)
        and values[0].dtype == values[1].dtype
        and (values[0].shape == values[1].shape and values[0].tobytes() == values[1].tobytes())
    )


def _python_kind(value: Any) -> type | None:
    if type(value) is TracedNumber:
        return value.kind
    return type(value) if type(value) in (int, float, complex, bool) else None


def differing(then: Any, otherwise: Any) -> str:
    """How two values differ, for messages."""
    first, second = map(_described, (then, otherwise))
    return (
        f"is {first} in one case and {second} in another"
        if first != second
        else "is not the same in both cases"
    )


def _described(value: Any) -> str:
    if type(value) is TracedArray or isinstance(value, (np.ndarray, np.generic)):
        shape = f" of shape {value.shape}" if value.ndim else ""
        return f"{value.dtype}{shape}"
    kind = value.kind if type(value) is TracedNumber else type(value)
    return {"Unbound": "not bound", "NoneType": "None"}.get(kind.__name__, f"of type {kind.__name__}")


def _fit(one: Variable, other: Variable) -> bool:
    shapes = one.tensor_type.shape, other.tensor_type.shape
    return len(shapes[0]) == len(shapes[1]) and all(
        a == b or a is None or b is None for a, b in zip(*shapes, strict=True)
    )


def is_cheap(variables: Sequence[Variable]) -> bool:
    """Whether values can be computed on either way, taken or not: few scalars, of steps without errors."""
    if any(one.tensor_type.ndim for one in variables):
        return False
    nodes = toposort(variables)
    return len(nodes) <= MOST_NODES and all(node.op.family is Family.ELEMENTWISE for node in nodes)
