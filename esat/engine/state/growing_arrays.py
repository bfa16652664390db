"""Arrays of an e-graph, which grow when the machine finds one full, and the functions that run on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esat.base.native import Library
from esat.engine.iterations import run
from esat.engine.plan_runs import act
from esat.engine.state import memory as at
from esat.engine.state.classes import find, unite
from esat.engine.state.containers import interned
from esat.engine.state.memory import MachineMemory
from esat.engine.state.rebuilding import rebuild
from esat.engine.state.tables import put

_EXPORTED: Sequence[Callable[..., Any]] = (run, act, rebuild, put, interned, find, unite)


@cache
def compiled() -> dict[str, Callable[..., Any]]:
    """The functions that Python calls, by name, as machine code."""
    library = Library(_EXPORTED)
    return {function.__name__: library.function(function) for function in _EXPORTED}


@cache
def interpreted() -> dict[str, Callable[..., Any]]:
    """The same as Python: some thousand times slower, for tests."""
    return {function.__name__: function for function in _EXPORTED}


_SIZES = {
    "state": at.STATE_WORDS,
    "tables": 512 * at.TABLE_WORDS,
    "sorts": 64,
    "ids": 1 << 13,
    "cells": 1 << 17,
    "rules": 1 << 15,
    "plans": 1 << 15,
    "registers": at.CONSTANTS + 256,
    "matches": 1 << 14,
    "stack": 3 * 256,
    "scratch": 1 << 12,
    "schedule": 1 << 13,
    "log": 1,
}
_FULL = {
    at.IDS_FULL: "ids",
    at.CELLS_FULL: "cells",
    at.PLANS_FULL: "plans",
    at.MATCHES_FULL: "matches",
    at.SCRATCH_FULL: "scratch",
    at.LOG_FULL: "log",
}


class GrowingArrays:
    """Holds the arrays of a machine.

    Attributes
    ----------
    memory
        What the machine's functions take; another one after an array has grown.
    functions
        The machine's functions by name.
    """

    def __init__(self) -> None:
        self.functions = compiled()
        self._arrays = {name: np.zeros(size, np.int64) for name, size in _SIZES.items()}
        self.memory = self._gathered()
        self.clear()

    def _gathered(self) -> MachineMemory:
        return MachineMemory(**self._arrays, numbers=self._arrays["registers"].view(np.float64))

    def clear(self) -> None:
        """Forget ids, cells and plans; tables must be emptied, too."""
        state = self.memory.state
        state[:] = 0
        state[at.CELLS] = state[at.PLANS] = 1

    def require(self, name: str, size: int) -> None:
        """Make an array as large as this at least; what it holds stays."""
        array = self._arrays[name]
        if size > len(array):
            larger = np.zeros(max(size, 2 * len(array)), np.int64)
            larger[: len(array)] = array
            self._arrays[name] = larger
            self.memory = self._gathered()

    def grow(self) -> None:
        """Make the arrays that are full twice as large."""
        full = int(self.memory.state[at.FULL])
        self.memory.state[at.FULL] = 0
        for flag, name in _FULL.items():
            if full & flag:
                self.require(name, 2 * len(self._arrays[name]))

    def write(self, name: str, place: int, words: Sequence[int] | NDArray[np.int64]) -> None:
        """Write words into an array, which grows for them."""
        self.require(name, place + len(words))
        self._arrays[name][place : place + len(words)] = words
