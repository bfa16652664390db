"""States of random generators as values: a draw makes a new state and leaves the old one as it was."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from esat.base.records import record
from esat.errors import DtypeError
from esat.graph.types import Type


class RandomState(np.random.Generator):
    """A NumPy generator that can be copied. What receives one as a value copies it before drawing."""

    @cached_property
    def address(self) -> np.ndarray:
        """Where the C interface of the bit generator is, ``bitgen_t`` of NumPy: one integer of 64 bits."""
        return np.array([self.bit_generator.ctypes.bit_generator.value], np.int64)

    def copy(self) -> RandomState:
        """An independent generator that will draw the same numbers."""
        kind: Any = type(self.bit_generator)
        fresh = kind(0)  # any seed: one drawn from the system would cost a call
        fresh.state = self.bit_generator.state
        return RandomState(fresh)

    def __reduce__(self) -> Any:
        return RandomState, (self.bit_generator,)

    def same_as(self, other: np.random.Generator) -> bool:
        """Whether both will draw the same numbers."""
        return bool(_plain(self.bit_generator.state) == _plain(other.bit_generator.state))


def _plain(state: Any) -> Any:
    """A bit generator's state with lists in place of arrays, so that it can be compared."""
    if isinstance(state, dict):
        return {key: _plain(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


@record(frozen=True, slots=True)
class RandomType(Type):
    """States of NumPy's random generators, of any bit generator."""

    def filter(self, value: object) -> RandomState:
        """``value`` as a state; a generator of NumPy's own is copied, and so not drawn from.

        Raises
        ------
        DtypeError
            When it is not a ``numpy.random.Generator``.
        """
        if isinstance(value, RandomState):
            return value
        if isinstance(value, np.random.Generator):
            return RandomState(value.bit_generator).copy()
        raise DtypeError(f"{value!r} is not a numpy.random.Generator; see numpy.random.default_rng")

    def admits(self, other: Type) -> bool:
        """Whether every value of ``other`` is a value of this type."""
        return isinstance(other, RandomType)

    def __str__(self) -> str:
        return "random state"
