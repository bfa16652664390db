"""Programs that grow: what ``benchmarks.scale`` compiles, and with which gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Build = Callable[[Any, Sequence[Any]], Any]
"""``build(namespace, inputs)``: a result, or several in a tuple."""


@dataclass(frozen=True)
class Family:
    """Programs of any size.

    Attributes
    ----------
    name
        What tables call it.
    ranks
        Of the inputs of the program of a size.
    build
        Of the program of a size: a function of a contender's namespace and the inputs.
    size
        The size that is compiled, with twice and four times as much.
    by
        Inputs, by position, by which the sum of the result is differentiated; empty for programs without
        gradient. The program has the result, and then the gradients.
    """

    name: str
    ranks: Callable[[int], tuple[int, ...]]
    build: Callable[[int], Build]
    size: int
    by: tuple[int, ...] = ()


def _chain(size: int) -> Build:
    def build(xp: Any, inputs: Sequence[Any]) -> Any:
        value, other = inputs
        for place in range(size):
            value = xp.tanh(value) * other + (place % 7 + 0.5)
        return value

    return build


def _recurrence(size: int) -> Build:
    def build(xp: Any, inputs: Sequence[Any]) -> Any:
        matrix, value = inputs
        for _ in range(size):
            value = xp.tanh(xp.matmul(matrix, value))
        return value

    return build


def _sum_of_functions(size: int) -> Build:
    def build(xp: Any, inputs: Sequence[Any]) -> Any:
        total = xp.tanh(inputs[0])
        for place in range(1, size):
            total = total + xp.tanh(inputs[place % len(inputs)] * (place + 0.5))
        return total

    return build


def _sum_of_inputs(size: int) -> Build:
    def build(xp: Any, inputs: Sequence[Any]) -> Any:
        total = inputs[0]
        for one in inputs[1:]:
            total = total + one
        return total

    return build


def _outputs(size: int) -> Build:
    def build(xp: Any, inputs: Sequence[Any]) -> Any:
        (x,) = inputs
        return tuple(xp.tanh(x * (place + 0.5)) for place in range(size))

    return build


def _inputs(size: int) -> Build:
    def build(xp: Any, inputs: Sequence[Any]) -> Any:
        total = xp.exp(inputs[0])
        for one in inputs[1:]:
            total = total * 0.5 + xp.tanh(one)
        return total

    return build


FAMILIES: tuple[Family, ...] = (
    Family("chain", lambda size: (1, 1), _chain, 200),
    Family("chain with gradient", lambda size: (1, 1), _chain, 50, by=(0, 1)),
    Family("recurrence with gradient", lambda size: (2, 1), _recurrence, 75, by=(0, 1)),
    Family("sum of functions", lambda size: (1,) * 8, _sum_of_functions, 500),
    Family("sum of inputs", lambda size: (1,) * size, _sum_of_inputs, 500),
    Family("many outputs", lambda size: (1,), _outputs, 500),
    Family("many inputs", lambda size: (1,) * size, _inputs, 500),
)
