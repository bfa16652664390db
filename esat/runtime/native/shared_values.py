"""Native functions of programs with shared variables, whose values are arguments of machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from esat.graph import SharedVariable
from esat.graph.random_type import RandomState, RandomType


def value_of(variable: SharedVariable, is_overwritten: bool) -> Callable[[], Any]:
    """What gives the value that a native function takes for a shared variable: for the state of a generator,
    which it advances, where that is."""
    if isinstance(variable.type, RandomType):
        return partial(_address, variable)
    return variable.own_value if is_overwritten else variable.look


def _address(variable: SharedVariable) -> np.ndarray:
    state: RandomState = variable.own_value()
    return state.address


def with_values(
    count: int,
    values: Sequence[Callable[[], Any]],
    lock: AbstractContextManager[Any],
    made: Callable[..., Any],
    otherwise: Callable[..., Any],
) -> Callable[..., Any]:
    """A native function that takes shared values after the arguments, as one of the arguments alone.

    Parameters
    ----------
    count
        Of the arguments.
    values
        Each gives the value of a shared variable.
    lock
        What a call holds.
    made
        The native function; it returns NotImplemented where it has done nothing.
    otherwise
        Called then, with the arguments.
    """

    def call(*arguments: Any, out: Any = None) -> Any:
        if len(arguments) == count:
            with lock:
                found = [value() for value in values]
                done = made(*arguments, *found) if out is None else made(*arguments, *found, out=out)
            if done is not NotImplemented:
                return done
        return otherwise(*arguments, out=out)

    return call
